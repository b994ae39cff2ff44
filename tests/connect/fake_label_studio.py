"""A small Label Studio in a thread, with the habits of 1.23 that matter to the connection.

Importing predictions appends, and is refused as a whole if a task is unknown; hiding predictions
blanks the model version; a version can only be set if it has predictions; deleting the current
version unsets it; a task with enough annotations is not given out; answers and uploads need a
token; an upload that is gone is an internal error.
"""

from __future__ import annotations

import json
from io import BytesIO

from fake_server import FakeServer
from PIL import Image

TOKEN = "5ca1ab1e5ca1ab1e5ca1ab1e5ca1ab1e5ca1ab1e"
NAMES = ("Positive", "Negative", "Neutral")


def choice(name):
    value = {"choices": [name]}
    return [{"from_name": "sentiment", "to_name": "text", "type": "choices", "value": value}]


class FakeLabelStudio(FakeServer):
    """The state of a server with one project, number 7, and what tests do to it."""

    def __init__(self, n_tasks=0, users=()):
        super().__init__()
        self.tokens = {TOKEN: 1}
        self.users = {1: "admin@example.com"}
        for number, email in enumerate(users, start=2):
            self.users[number], self.tokens[f"token-of-{email}"] = email, number
        self.tasks, self.annotations, self.predictions, self.views, self.hooks = {}, {}, [], {}, {}
        self.files, self.page_sizes = {}, []
        control = {"type": "Choices", "to_name": ["text"], "labels": list(NAMES)}
        self.project = {
            "id": 7,
            "parsed_label_config": {"sentiment": control},
            "show_collab_predictions": True,
            "model_version": "",
            "maximum_annotations": 1,
        }
        for number in range(1, n_tasks + 1):
            self.add_task(number, {"text": f"text {number}"})

    def add_task(self, number, data):
        self.tasks[number] = {"id": number, "data": data, "updated_at": self.tick()}

    def upload(self, task, pixels):
        """Give a task an image, uint8 of shape (height, width, 3)."""
        stream, path = BytesIO(), f"/data/upload/7/{task}-photo.png"
        Image.fromarray(pixels).save(stream, "PNG")
        self.files[path] = stream.getvalue()
        self.tasks[task]["data"] = {"image": path}

    def answer(self, task, user, name, **fields):
        number = self.tick()
        self.tasks[task]["updated_at"] = number
        self.annotations[number] = {
            **{"id": number, "task": task, "completed_by": user, "result": choice(name)},
            **{"was_cancelled": False, "ground_truth": False},
            **fields,
        }
        return number

    def delete_task(self, task):
        del self.tasks[task]
        self.annotations = {k: a for k, a in self.annotations.items() if a["task"] != task}
        self.predictions = [p for p in self.predictions if p["task"] != task]

    def versions(self):
        listed = [prediction["model_version"] for prediction in self.predictions]
        return {version: listed.count(version) for version in listed}

    def user_of(self, place, authorization):
        kind, _, token = authorization.partition(" ")
        return self.tokens.get(token) if kind in ("Token", "Bearer") else None

    def handle(self, place, query, body, user):
        if user is None and "token/refresh" not in place:
            return 401, {"detail": "Invalid token."}
        if place.startswith("GET /data/upload/"):
            file = self.files.get(place.removeprefix("GET "))
            return (500, {"detail": "None"}) if file is None else (200, file)
        return super().handle(place, query, body, user)

    def list_tasks(self, query, body, user):
        asked = json.loads(query.get("query", "{}"))
        rows = sorted(self.tasks.values(), key=lambda task: task["id"])
        if asked.get("ordering") == ["-tasks:updated_at"]:
            rows.sort(key=lambda task: -task["updated_at"])
        rows = [task for task in rows if self.passes(task, asked.get("filters"))]
        size, page = int(query["page_size"]), int(query["page"])
        self.page_sizes.append(size)
        if page > 1 and (page - 1) * size >= len(rows):
            return 404, {"detail": "Invalid page."}
        include = query["include"].split(",")
        listed = [self.show(task, include) for task in rows[(page - 1) * size : page * size]]
        return 200, {"tasks": listed, "total": len(rows)}

    def show(self, task, include):
        answers = [a for a in self.annotations.values() if a["task"] == task["id"]]
        whole = task | {"annotations": answers[::-1], "drafts": [], "predictions": []}
        shown = {name: whole[name] for name in include if name in whole}
        if "annotations" in shown:  # The list of fields applies to what is nested too.
            kept = [{k: v for k, v in a.items() if k in include} for a in answers[::-1]]
            shown["annotations"] = kept
        return shown

    @staticmethod
    def passes(task, filters):
        if not filters:
            return True
        known = {"equal": lambda a, b: a == b, "greater": lambda a, b: a > b}
        results = [known[each["operator"]](task["id"], each["value"]) for each in filters["items"]]
        return any(results) if filters["conjunction"] == "or" else all(results)

    def read_project(self, query, body, user):
        marked = sum(answer["ground_truth"] for answer in self.annotations.values())
        counts = {"task_number": len(self.tasks), "ground_truth_number": marked}
        counts["total_annotations_number"] = len(self.annotations)
        counts["total_predictions_number"] = len(self.predictions)
        return 200, self.project | counts

    def change_project(self, query, body, user):
        version = body.get("model_version", "")
        if version not in ("", self.project["model_version"]) and version not in self.versions():
            return 400, {"detail": "Validation error", "validation_errors": "Model version"}
        if body.get("show_collab_predictions") is False:
            self.project["model_version"] = ""
        self.project.update(body)
        return 200, self.project

    def import_predictions(self, query, body, user):
        if any(each["task"] not in self.tasks for each in body):
            return 400, {"detail": "Validation error", "validation_errors": "invalid task"}
        self.predictions += body
        return 201, {"created": len(body)}

    def delete_version(self, query, body, user):
        version = body["model_version"]
        self.predictions = [p for p in self.predictions if p["model_version"] != version]
        if self.project["model_version"] == version:
            self.project["model_version"] = None
        return 200, {"deleted_predictions": 1}

    def write_view(self, query, body, user, view=None):
        view = view or self.tick()
        operators = [f["operator"] for f in body["data"].get("filters", {}).get("items", [])]
        if set(operators) - {"equal", "greater"}:  # The page of the Data Manager would not load.
            return 500, {"detail": "unknown operator"}
        self.views[view] = {"id": view, "data": body["data"], "project": body["project"]}
        return 201, self.views[view]

    def next_task(self, query, body, user):
        done = {a["task"] for a in self.annotations.values() if a["completed_by"] == user}
        scores = {
            p["task"]: p["score"]
            for p in self.predictions
            if p["model_version"] == self.project["model_version"]
        }
        rows = [
            task
            for task in self.tasks.values()
            if self.passes(task, body.get("filters"))
            and task["id"] not in done
            and self.n_answers(task["id"]) < self.project["maximum_annotations"]
        ]
        if not rows:
            return 404, {"detail": "There are no tasks"}
        return 200, min(rows, key=lambda task: (scores.get(task["id"], 0), task["id"]))

    def n_answers(self, task):
        return sum(answer["task"] == task for answer in self.annotations.values())

    def annotate(self, query, body, user, task):
        if task not in self.tasks:
            return 404, {"detail": "Not found."}
        name = body["result"][0]["value"]["choices"][0]
        return 201, self.annotations[self.answer(task, user, name)]

    def mark(self, query, body, user, annotation):
        if annotation not in self.annotations:
            return 404, {"detail": "Not found."}
        self.annotations[annotation].update(body)
        return 200, self.annotations[annotation]

    def list_users(self, query, body, user):
        return 200, [{"id": number, "email": email} for number, email in self.users.items()]

    def add_hook(self, query, body, user):
        number = self.tick()
        self.hooks[number] = body | {"id": number}
        return 201, self.hooks[number]

    def delete_hook(self, query, body, user, number):
        del self.hooks[number]
        return 204, None

    def refresh(self, query, body, user):
        if body["refresh"] != "personal.access.token":
            return 401, {"detail": "Token is invalid"}
        self.tokens = {key: who for key, who in self.tokens.items() if "short" not in key}
        self.tokens[f"short-{self.tick()}"] = 1
        return 200, {"access": next(key for key in self.tokens if key.startswith("short"))}

    ROUTES = (
        ("GET /api/tasks/", list_tasks),
        ("GET /api/users/", list_users),
        ("GET /api/projects/7/", read_project),
        ("PATCH /api/projects/7/", change_project),
        ("GET /api/projects/7/model-versions/", lambda self, *_: (200, self.versions())),
        ("DELETE /api/projects/7/model-versions/", delete_version),
        ("POST /api/projects/7/import/predictions", import_predictions),
        ("GET /api/dm/views/", lambda self, *_: (200, list(self.views.values()))),
        ("POST /api/dm/views/", write_view),
        (r"PATCH /api/dm/views/(\d+)/", write_view),
        ("POST /api/dm/actions/", next_task),
        (r"POST /api/tasks/(\d+)/annotations/", annotate),
        (r"PATCH /api/annotations/(\d+)/", mark),
        ("GET /api/webhooks/", lambda self, *_: (200, list(self.hooks.values()))),
        ("POST /api/webhooks/", add_hook),
        (r"DELETE /api/webhooks/(\d+)/", delete_hook),
        ("POST /api/token/refresh/", refresh),
    )
