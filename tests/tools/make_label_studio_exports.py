"""Start Label Studio on this machine, label with several users through its API, and export.

Run by hand, with Label Studio in a virtual environment of its own:

    python tests/tools/make_label_studio_exports.py path/to/label-studio OUT [--port 8281]

It talks to 127.0.0.1 only. OUT gets every export of two projects: `sentiment` (one control, with a
cancelled answer, an empty one, a draft, a ground truth and an answer that was given twice) and
`several` (several choices, ratings and a taxonomy).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

ADMIN, PASSWORD, TOKEN = (
    "admin@example.com",
    "only-for-loopback-1",
    "0123456789abcdef" * 2 + "01234567",
)
USERS = ("ann@example.com", "bob@example.com", "cem@example.com")
FORMATS = {"JSON": "json", "JSON_MIN": "json", "CSV": "csv", "TSV": "tsv"}

SENTIMENT = """
<View><Text name="text" value="$text"/>
<Choices name="sentiment" toName="text"><Choice value="Positive"/><Choice value="Negative"/>
</Choices></View>
"""
SEVERAL = """
<View><Text name="text" value="$question"/>
<Choices name="topics" toName="text" choice="multiple"><Choice value="A"/><Choice value="B"/>
</Choices><Rating name="stars" toName="text"/>
<Taxonomy name="kind" toName="text"><Choice value="Animal"><Choice value="Cat"/>
<Choice value="Dog"/></Choice></Taxonomy></View>
"""


class Client:
    """A user of the server; requests never leave this machine."""

    def __init__(self, port: int, token: str = "") -> None:
        self.base, self.token = f"http://127.0.0.1:{port}", token
        handlers = (
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPCookieProcessor(CookieJar()),
        )
        self.opener = urllib.request.build_opener(*handlers)

    def send(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> bytes:
        headers = {"Authorization": f"Token {self.token}"} if self.token else {}
        headers |= {"Content-Type": kind} if kind else {}
        request = urllib.request.Request(self.base + path, body, headers, method=method)
        with self.opener.open(request, timeout=60) as answer:
            return answer.read()

    def call(self, method: str, path: str, body: object = None):
        content = None if body is None else json.dumps(body).encode()
        answer = self.send(method, path, content, "application/json")
        return json.loads(answer) if answer else None


def start(executable: str, port: int, folder: str) -> subprocess.Popen:
    command = [executable, "start", "--init", "-b", "--internal-host", "127.0.0.1"]
    command += ["-p", str(port), "--data-dir", folder, "--username", ADMIN]
    command += ["--password", PASSWORD, "--user-token", TOKEN, "--enable-legacy-api-token"]
    quiet = {"COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "false"}
    quiet |= {"SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": ""}
    with Path(folder, "log.txt").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | quiet)


def wait(client: Client, seconds: int = 240) -> None:
    for _ in range(seconds):
        try:
            client.call("GET", "/api/version")
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(1)
    raise TimeoutError("Label Studio does not answer.")


def sign_up(admin: Client, port: int, email: str) -> Client:
    """Create a user through an invitation; return the client of the user."""
    link = admin.call("GET", "/api/invite")["invite_url"]
    user = Client(port)
    path = "/user/signup/?" + urllib.parse.urlsplit(link).query
    page = user.send("GET", path).decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    form = {"csrfmiddlewaretoken": token[1], "email": email, "password": PASSWORD}
    user.send(
        "POST", path, urllib.parse.urlencode(form).encode(), "application/x-www-form-urlencoded"
    )
    user.token = user.call("GET", "/api/current-user/token")["token"]
    return user


def create_project(admin: Client, title: str, config: str, tasks: list) -> tuple[int, list[int]]:
    project = admin.call("POST", "/api/projects", {"title": title, "label_config": config})["id"]
    admin.call("POST", f"/api/projects/{project}/import", tasks)
    listed = admin.call("GET", f"/api/tasks?project={project}&page_size=100")["tasks"]
    return project, sorted(task["id"] for task in listed)


def answer(user: Client, task: int, control: str, kind: str, value: object, **more: object) -> None:
    result = {"from_name": control, "to_name": "text", "type": kind, "value": {kind: value}}
    annotate(user, task, [result], **more)


def annotate(user: Client, task: int, result: list, **more: object) -> None:
    body = {"result": result, "lead_time": 1.5, **more}
    user.call("POST", f"/api/tasks/{task}/annotations/", body)


def label_sentiment(admin: Client, users: list[Client]) -> int:
    texts = [{"text": f'Text {k},\nwith "quotes" and é', "label": "old"} for k in range(6)]
    project, tasks = create_project(admin, "sentiment", SENTIMENT, texts)
    for k, task in enumerate(tasks[:5]):
        for j, user in enumerate(users):
            side = "Positive" if (k + (j == 2 and k % 2)) % 2 == 0 else "Negative"
            answer(user, task, "sentiment", "choices", [side])
    answer(users[0], tasks[0], "sentiment", "choices", ["Negative"])
    answer(admin, tasks[1], "sentiment", "choices", ["Negative"], ground_truth=True)
    annotate(users[1], tasks[1], [], was_cancelled=True)
    annotate(users[2], tasks[2], [])
    draft = {"from_name": "sentiment", "to_name": "text", "type": "choices"}
    body = {"result": [draft | {"value": {"choices": ["Negative"]}}], "lead_time": 1}
    users[0].call("POST", f"/api/tasks/{tasks[3]}/drafts", body)
    return project


def label_several(admin: Client, users: list[Client]) -> int:
    texts = [{"question": f"Q{k}", "answer": f"A{k}"} for k in range(4)]
    project, tasks = create_project(admin, "several", SEVERAL, texts)
    for k, task in enumerate(tasks):
        for j, user in enumerate(users):
            values = {
                ("topics", "choices"): ["A", "B"] if (j + k) % 3 == 0 else ["B"],
                ("stars", "rating"): 1 + (j + k) % 3,
                ("kind", "taxonomy"): [["Animal", "Cat" if (j + k) % 2 else "Dog"]],
            }
            result = [
                {"from_name": name, "to_name": "text", "type": kind, "value": {kind: value}}
                for (name, kind), value in values.items()
            ]
            annotate(user, task, result)
    return project


def export(admin: Client, project: int, title: str, out: Path) -> None:
    for name, ending in FORMATS.items():
        for suffix, all_tasks in (("", "false"), ("_all", "true")):
            query = f"exportType={name}&download_all_tasks={all_tasks}"
            content = admin.send("GET", f"/api/projects/{project}/export?{query}")
            (out / f"{title}_{name}{suffix}.{ending}").write_bytes(content)
    path = f"/api/tasks?project={project}&fields=all&page_size=100"
    (out / f"{title}_rest_tasks.json").write_bytes(admin.send("GET", path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("executable")
    parser.add_argument("out", type=Path)
    parser.add_argument("--port", type=int, default=8281)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        server = start(given.executable, given.port, folder)
        try:
            admin = Client(given.port, TOKEN)
            wait(admin)
            users = [sign_up(admin, given.port, email) for email in USERS]
            export(admin, label_sentiment(admin, users), "sentiment", given.out)
            export(admin, label_several(admin, users), "several", given.out)
            print(admin.call("GET", "/api/version")["release"], "wrote to", given.out)
        finally:
            server.terminate()
            server.wait(timeout=60)


if __name__ == "__main__":
    main()
