"""Faults with a real Label Studio: killed, restarted, emptied and refused; nothing may be lost.

usage: python tests/tools/label_studio_faults.py LABEL_STUDIO [--port 8292] [--tasks 10000]

LABEL_STUDIO is the program of an environment with `pip install label-studio`. The script starts it
with data of its own on this machine, and prints one JSON line per fault.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError

from label_studio_loop import CONFIG, Server

from annotrace.connect import LabelStudio, Prediction

sys.path.append(str(Path(__file__).parents[1] / "connect"))
from fake_label_studio import NAMES, choice

TOKEN = "badc0ffee0ddf00dbadc0ffee0ddf00dbadc0ffe"
VARIABLE = "ANNOTRACE_LABEL_STUDIO_TOKEN"


class Machine:
    """A server that can be killed and started again, and the command against it."""

    def __init__(self, program, port, folder):
        self.folder, self.port = folder, port
        self.server = Server(f"http://127.0.0.1:{port}", TOKEN)
        words = f"start --init -b --internal-host 127.0.0.1 -p {port} --enable-legacy-api-token"
        user = ["--username", "admin@example.com", "--password", "Simul8ted!"]
        token = ["--user-token", TOKEN, "--data-dir", str(folder / "server")]
        self.command = [program, *words.split(), *user, *token]
        self.process = None

    def start(self):
        (self.folder / "server").mkdir(exist_ok=True)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        quiet_server = {"COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "false"}
        environment = os.environ | quiet_server | {"SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": ""}
        self.process = subprocess.Popen(
            self.command, **quiet, env=environment, start_new_session=True
        )
        for _ in range(240):
            with suppress(URLError, OSError):
                self.server.call("GET", "/api/users/")
                return
            time.sleep(0.5)
        raise TimeoutError("The server does not start.")

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def new_project(self, n_tasks, n_answers):
        """Make a project with answers by one user, and return its number and tasks."""
        project = {"title": "faults", "label_config": CONFIG, "maximum_annotations": 3}
        number = self.server.call("POST", "/api/projects/", project)["id"]
        for start in range(0, n_tasks, 1000):
            texts = [{"text": f"text {k}"} for k in range(start, min(start + 1000, n_tasks))]
            self.server.call("POST", f"/api/projects/{number}/import", texts)
        tool = self.tool(number)
        tasks = [int(item) for item in tool.pull().data]
        for k, task in enumerate(tasks[:n_answers]):
            self.answer(task, k)
        return number, tasks

    def answer(self, task, k):
        body = {"result": choice(NAMES[k % 3])}
        self.server.call("POST", f"/api/tasks/{task}/annotations/", body)

    def tool(self, project):
        return LabelStudio(self.server.url, project, TOKEN)

    def run(self, project, *words):
        """Start the command in a process of its own."""
        self.printed = self.folder / "printed"
        url, out = self.server.url, self.folder / "run"
        start = ["connect", "label-studio", url, "--project", str(project), "--out", str(out)]
        command = [sys.executable, "-u", "-m", "annotrace", *start, "--overwrite", *words]
        with self.printed.open("w") as file:
            return subprocess.Popen(
                command, stdout=file, stderr=file, env=os.environ | {VARIABLE: TOKEN}
            )

    def wait_for(self, text, seconds=300):
        deadline = time.monotonic() + seconds
        while text not in self.printed.read_text():
            assert time.monotonic() < deadline, self.printed.read_text()
            time.sleep(0.05)

    def versions(self, project):
        return self.server.call("GET", f"/api/projects/{project}/model-versions/")

    def last_line(self):
        return self.printed.read_text().strip().splitlines()[-1]


def pages(machine, n_tasks):
    """All tasks are read, in pages."""
    started = time.monotonic()
    number, tasks = machine.new_project(n_tasks, 0)
    made = time.monotonic()
    n_read = len(machine.tool(number).pull().data)
    seconds = round(time.monotonic() - made, 1)
    assert n_read == len(tasks) == n_tasks
    return number, {"tasks": n_read, "seconds": seconds, "made_in": round(made - started, 1)}


def killed_in_pull(machine, project):
    """The command ends with one line, and works again afterwards."""
    process = machine.run(project)
    time.sleep(9)  # It starts within five seconds, and reads for more than twenty.
    machine.kill()
    code, said = process.wait(120), machine.last_line()
    machine.start()
    assert code == 2, machine.printed.read_text()
    return {"exit code": code, "said": said, "read after": len(machine.tool(project).pull().data)}


def killed_in_push(machine, project):
    """The predictions are complete after the next push, and there once."""
    machine.answer(int(next(iter(machine.tool(project).pull().data))), 0)
    process = machine.run(project, "--push")
    while not machine.versions(project):
        time.sleep(0.05)
    machine.kill()
    code, said = process.wait(300), machine.last_line()
    machine.start()
    left = machine.versions(project)
    again = machine.run(project, "--push")
    assert again.wait(900) == 0, machine.printed.read_text()
    versions = machine.versions(project)
    n_tasks = len(machine.tool(project).pull().data)
    assert list(versions.values()) == [n_tasks], versions
    found = {"exit code": code, "said": said, "left behind": left}
    return {**found, "after the next push": versions}


def watched(machine, project, tasks):
    """A restart is one line; answers before, during and after a fit all count; nothing twice."""
    process = machine.run(project, "--push", "--watch", "--interval", "1", "--min-new", "2")
    machine.wait_for("30 labels of 60 items")
    for k in range(30, 34):
        machine.answer(tasks[k], k)
    machine.kill()
    machine.wait_for("Trying again")
    machine.start()
    machine.wait_for("34 labels of 60 items")
    for k in range(34, 44):
        machine.answer(tasks[k], k)
    machine.wait_for("44 labels of 60 items")
    versions = machine.versions(project)
    lines = [line for line in machine.printed.read_text().splitlines() if "again" in line]
    machine.server.call("POST", "/api/current-user/reset-token")
    code = process.wait(120)
    assert code == 2, machine.printed.read_text()
    assert list(versions.values()) == [60], versions
    return {"lines": lines, "versions": versions, "token reset": [code, machine.last_line()]}


def deleted(machine, project):
    """A task that is deleted between pull and push is left out."""
    tool = machine.tool(project)
    items = list(tool.pull().data)
    machine.server.call("DELETE", f"/api/tasks/{items[3]}/")
    pushed = tool.push([Prediction(item, NAMES[0], 0.5) for item in items])
    assert pushed.n_gone == 1
    return {"sent": pushed.n_sent, "gone": pushed.n_gone, "versions": machine.versions(project)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--port", type=int, default=8292)
    parser.add_argument("--tasks", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(options.program, options.port, Path(folder))

        def report(fault, found):
            print(json.dumps({"fault": fault, **found}), flush=True)

        try:
            machine.start()
            project, _ = machine.new_project(60, 30)
            report("task deleted", deleted(machine, machine.new_project(60, 30)[0]))
            big, found = pages(machine, options.tasks)
            report("pages", found)
            report("killed in pull", killed_in_pull(machine, big))
            middle, _ = machine.new_project(2000, 0)
            report("killed in push", killed_in_push(machine, middle))
            tasks = [int(item) for item in machine.tool(project).pull().data]
            report("killed while watched, token reset", watched(machine, project, tasks))
            files = [path for path in (Path(folder) / "run").rglob("*") if path.is_file()]
            leaks = [path.name for path in files if TOKEN.encode() in path.read_bytes()]
            report("files with the token", {"searched": len(files), "found": leaks})
        finally:
            machine.kill()


if __name__ == "__main__":
    main()
