"""A small doccano in a thread, with the habits of 1.8.4 that matter to the connection.

A token that is not accepted is answered by 403, and a wrong password by 400; members see their own
labels only, unless the project is collaborative; an export is ready at the second look, has a file
for each member, and metadata take the place of its columns; the metrics fail if somebody who has
labelled is no longer a member; an unknown path is answered by a page.
"""

from __future__ import annotations

import io
import json
import zipfile

from fake_server import FakeServer

PASSWORD = "correct horse battery"
NAMES = ("Positive", "Negative", "Neutral")
_FORBIDDEN = 403, {"detail": "You do not have permission to perform this action."}


class FakeDoccano(FakeServer):
    """The state of a server with one project, number 7, of user 1, and what tests do to it."""

    def __init__(self, n_examples=0, members=()):
        super().__init__()
        self.users = dict(enumerate(("admin", *members), start=1))
        self.members = list(self.users)
        self.tokens = {}
        self.types = {number: {"id": number, "text": name} for number, name in enumerate(NAMES, 11)}
        self.examples, self.labels, self.tasks, self.page_sizes = {}, [], {}, []
        self.project = {
            "id": 7,
            "project_type": "DocumentClassification",
            "collaborative_annotation": False,
        }
        for number in range(1, n_examples + 1):
            self.add_example(number, f"text {number}")

    def add_example(self, number, text, **meta):
        self.examples[number] = {"id": number, "text": text, "upload_name": "", "meta": meta}

    def label(self, example, user, name):
        kind = next(number for number, each in self.types.items() if each["text"] == name)
        self.labels.append({"example": example, "user": user, "label": kind})

    def user_of(self, place, authorization):
        return self.tokens.get(authorization.removeprefix("Token "))

    def handle(self, place, query, body, user):
        if user is None and place != "POST /v1/auth/login/":
            return 403, {"detail": "Invalid token."}
        status, said = super().handle(place, query, body, user)
        if status == 404 and "/projects/" not in place:
            return 200, b"<!doctype html>"
        return status, said

    def log_in(self, query, body, user):
        known = {name: number for number, name in self.users.items()}
        if body["username"] not in known or body["password"] != PASSWORD:
            return 400, {"non_field_errors": ["Unable to log in with provided credentials."]}
        token = f"token-{self.tick()}"
        self.tokens[token] = known[body["username"]]
        return 200, {"key": token}

    def list_members(self, query, body, user):
        if user != 1:
            return _FORBIDDEN
        return 200, [{"user": user, "username": self.users[user]} for user in self.members]

    def list_examples(self, query, body, user):
        rows = list(self.examples.values())
        start, size = int(query["offset"]), int(query["limit"])
        self.page_sizes.append(size)
        return 200, {"count": len(rows), "results": rows[start : start + size]}

    def list_categories(self, query, body, user, example):
        shared = self.project["collaborative_annotation"]
        found = [label for label in self.labels if label["example"] == example]
        return 200, [label for label in found if shared or label["user"] == user]

    def start_export(self, query, body, user):
        if user != 1:
            return _FORBIDDEN
        task = f"task-{self.tick()}"
        self.tasks[task] = 1
        return 200, {"task_id": task}

    def read_export(self, query, body, user):
        if self.tasks[query["taskId"]]:
            self.tasks[query["taskId"]] -= 1
            return 200, {"status": "Not ready"}
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for member in self.members:
                lines = [json.dumps(self.record(example, member)) for example in self.examples]
                archive.writestr(f"{self.users[member]}.jsonl", "\n".join(lines) + "\n")
        return 200, content.getvalue()

    def record(self, example, member):
        shown = self.examples[example]
        given = [label for label in self.labels if label["example"] == example]
        names = [self.types[each["label"]]["text"] for each in given if each["user"] == member]
        record = {"id": example, "text": shown["text"], **shown["meta"]}
        intents = self.project["project_type"] == "IntentDetectionAndSlotFilling"
        return record | {"cats" if intents else "label": names, "Comments": []}

    def count_labels(self, query, body, user):
        if not {label["user"] for label in self.labels} <= set(self.members):
            return 500, b"<!doctype html>"
        names = {number: each["text"] for number, each in self.types.items()}
        counts = {self.users[user]: dict.fromkeys(names.values(), 0) for user in self.members}
        for label in self.labels:
            counts[self.users[label["user"]]][names[label["label"]]] += 1
        return 200, counts

    def read_progress(self, query, body, user):
        done = [{"user": self.users[user], "done": 0} for user in self.members]
        return 200, {"total": len(self.examples), "progress": done}

    ROUTES = (
        ("POST /v1/auth/login/", log_in),
        ("GET /v1/projects/7", lambda self, *_: (200, self.project)),
        ("GET /v1/projects/7/members", list_members),
        ("GET /v1/projects/7/category-types", lambda self, *_: (200, list(self.types.values()))),
        ("GET /v1/projects/7/examples", list_examples),
        (r"GET /v1/projects/7/examples/(\d+)/categories", list_categories),
        ("POST /v1/projects/7/download", start_export),
        ("GET /v1/projects/7/download", read_export),
        ("GET /v1/projects/7/metrics/category-distribution", count_labels),
        ("GET /v1/projects/7/metrics/member-progress", read_progress),
    )
