"""Labels in a real doccano, and what `annotrace connect doccano` reads of them: the same, exactly.

usage: ANNOTRACE_DOCCANO_PASSWORD=... python tests/tools/doccano_pull.py URL ADMIN [--examples 600]

The server must run on this machine, with `doccano task` beside it; ADMIN is its administrator. Four
users and some projects are added. One JSON line per check is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

from click.testing import CliRunner

from annotrace.cli.main import main as annotrace
from annotrace.connect import Doccano
from annotrace.connect.json_api import is_local

VARIABLE, PASSWORD = "ANNOTRACE_DOCCANO_PASSWORD", "Simul8ted!"
CLASSES = ("positive", "negative", "it's a/b, \u00fc", "neutral")
ROLE = "annotator"


class Server:
    """A doccano server, as an administrator and annotators use it."""

    def __init__(self, url, admin, password):
        assert is_local(url), "Only a server on this machine."
        self.url, self.admin, self.password = url, admin, password
        self.token = self.log_in(admin, password)
        stamp = f"{time.time():.0f}"
        self.names = [f"{name}.{stamp}" for name in ("ann", "bo", "cy", "di")]
        self.users = {name: self.add_user(name) for name in self.names}
        self.tokens = {name: self.log_in(name, PASSWORD) for name in self.names}
        roles = self.call("GET", "/v1/roles")
        self.role = next(role["id"] for role in roles if role["name"] == ROLE)

    def call(self, method, path, body=None, token=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token != "":
            headers["Authorization"] = f"Token {token or self.token}"
        request = Request(self.url + path, data, headers, method=method)
        with build_opener(ProxyHandler({})).open(request, timeout=120) as response:
            return json.loads(response.read() or b"null")

    def log_in(self, name, password):
        body = {"username": name, "password": password}
        return self.call("POST", "/v1/auth/login/", body, "")["key"]

    def add_user(self, name):
        body = {"username": name, "password1": PASSWORD, "password2": PASSWORD}
        return self.call("POST", "/v1/users/create", body)["id"]

    def tool(self, project, **options):
        return Doccano(self.url, project, self.admin, self.password, **options)


class Project:
    """A project for texts, and what its members have labelled."""

    def __init__(self, server, n_examples, **settings):
        self.server, self.given = server, {}
        body = {"name": "pull", "description": "pull", "single_class_classification": True}
        kind = {"project_type": "DocumentClassification"}
        kind["resourcetype"] = "TextClassificationProject"
        self.number = server.call("POST", "/v1/projects", body | kind | settings)["id"]
        self.path = f"/v1/projects/{self.number}"
        for user in server.users.values():
            server.call("POST", f"{self.path}/members", {"user": user, "role": server.role})
        types = (
            server.call("POST", f"{self.path}/category-types", {"text": name}) for name in CLASSES
        )
        self.types = {each["text"]: each["id"] for each in types}
        self.examples = [self.add_example(k) for k in range(n_examples)]

    def add_example(self, k):
        # Every third one has metadata called `id`, which replace its number in the export.
        meta = {"key": f"key {k}"} | ({"id": f"row-{k}"} if k % 3 == 0 else {})
        body = {"text": f"text {k}\u2028\n\u201cquoted\u201d", "meta": meta}
        return self.server.call("POST", f"{self.path}/examples", body)["id"]

    def label(self, k, who, name):
        path = f"{self.path}/examples/{self.examples[k]}/categories"
        self.server.call("POST", path, {"label": self.types[name]}, self.server.tokens[who])
        self.given[k, who] = name

    def clear(self, k, who):
        path = f"{self.path}/examples/{self.examples[k]}/categories"
        self.server.call("DELETE", path, token=self.server.tokens[who])
        del self.given[k, who]

    def expected(self, names):
        return Counter((names[k], who, label) for (k, who), label in self.given.items())

    def check(self, pulled, names):
        """Compare a pull with what was given; return the sizes."""
        assert pulled.answers() == self.expected(names)
        assert sorted(pulled.data) == sorted(names)
        assert sorted(map(str, pulled.table.items.tolist())) == sorted(names)
        assert tuple(pulled.table.classes.tolist()) == CLASSES
        return {"items": len(pulled.data), "labels": pulled.table.n_labels}


def exact(server, n_examples):
    """All members, pages of examples, labels that were changed and deleted."""
    project, rng = Project(server, n_examples, random_order=True), random.Random(0)
    tool = server.tool(project.number)
    assert tool.pull().table is None
    for k in range(0, n_examples, 4):
        for who in server.names[:3]:
            project.label(k, who, rng.choice(CLASSES[:3]))
    project.label(0, server.names[0], CLASSES[1])
    project.clear(4, server.names[1])
    started = time.monotonic()
    found = project.check(tool.pull(), list(map(str, project.examples)))
    seconds = round(time.monotonic() - started, 1)
    by_key = server.tool(project.number, item="key").pull()
    project.check(by_key, [f"key {k}" for k in range(n_examples)])
    assert by_key.data["key 1"]["text"] == "text 1\u2028\n\u201cquoted\u201d"
    return project, found | {"seconds": seconds}


def markers(server, project):
    """A new label changes the marker, and nothing else does."""
    tool = server.tool(project.number)
    before = tool.marker()
    tool.pull()
    assert tool.marker() == before
    project.label(1, server.names[3], CLASSES[0])
    after = tool.marker()
    assert after != before
    project.label(1, server.names[3], CLASSES[2])
    assert tool.marker() != after
    project.check(tool.pull(), list(map(str, project.examples)))
    return {"marker": "changes with a new label, a changed label and nothing else"}


def logged_out(server, project):
    """The token is renewed if the administrator logs out in the browser."""
    tool = server.tool(project.number)
    tool.pull()
    server.call("POST", "/v1/auth/logout/", {})
    found = project.check(tool.pull(), list(map(str, project.examples)))
    server.token = server.log_in(server.admin, server.password)
    return found


def collaborative(server):
    """Labels are shared: each is that of who gave it."""
    settings = {"collaborative_annotation": True, "single_class_classification": False}
    project = Project(server, 12, **settings)
    for k in range(10):
        project.label(k, server.names[k % 4], CLASSES[k % 3])
        project.label(k, server.names[(k + 1) % 4], CLASSES[(k + 1) % 3])
    return project.check(server.tool(project.number).pull(), list(map(str, project.examples)))


def kinds(server):
    """Projects for images and for intents have categories too."""
    found = {}
    for kind in ("ImageClassification", "IntentDetectionAndSlotFilling"):
        project = Project(server, 6, project_type=kind, resourcetype=f"{kind}Project")
        for k in range(5):
            project.label(k, server.names[k % 2], CLASSES[k % 3])
        pulled = server.tool(project.number).pull()
        found[kind] = project.check(pulled, list(map(str, project.examples)))
    return found


def former_member(server, project):
    """The labels of a former member are not exported, and a note says so."""
    who = server.names[2]
    listed = server.call("GET", f"{project.path}/members")
    ids = [member["id"] for member in listed if member["username"] == who]
    server.call("DELETE", f"{project.path}/members", {"ids": ids})
    pulled = server.tool(project.number).pull()
    project.given = {key: label for key, label in project.given.items() if key[1] != who}
    found = project.check(pulled, list(map(str, project.examples)))
    assert len(pulled.notes) == 1
    server.call("POST", f"{project.path}/members", {"user": server.users[who], "role": server.role})
    return found | {"note": pulled.notes[0]}


def command(server, project):
    """The command writes a run, without the password, and refuses what doccano cannot do."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        start = ["connect", "doccano", server.url, "--project", str(project.number)]
        words = [*start, "--user", server.admin, "--out", str(run)]
        done = CliRunner().invoke(annotrace, words)
        assert done.exit_code == 0, done.output
        assert server.password not in done.output
        files = [path for path in run.rglob("*") if path.is_file()]
        assert files
        assert not [path for path in files if server.password.encode() in path.read_bytes()]
        refused = CliRunner().invoke(annotrace, [*words, "--overwrite", "--push"])
        assert refused.exit_code == 2
    lines = done.output.splitlines()
    return {"first": lines[0], "last": lines[-1], "refused": refused.output.splitlines()[-1]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("admin")
    parser.add_argument("--examples", type=int, default=600)
    options = parser.parse_args()
    server = Server(options.url, options.admin, os.environ[VARIABLE])

    def report(check, found):
        print(json.dumps({"check": check, **found}), flush=True)

    project, found = exact(server, options.examples)
    report("exact", found)
    report("marker", markers(server, project))
    report("logged out", logged_out(server, project))
    report("collaborative", collaborative(server))
    report("kinds", kinds(server))
    report("command", command(server, project))
    report("former member", former_member(server, project))


if __name__ == "__main__":
    main()
