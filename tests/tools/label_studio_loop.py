"""How many labels a project in Label Studio needs, in the order of annotrace's queue and at random.

usage: python tests/tools/label_studio_loop.py URL [--seeds 0 1] [--arms queue random] [--out FILE]
       python tests/tools/label_studio_loop.py --fake

300 texts of three classes, and six annotators who are right with .95 to .55. Each gives ten answers
in an order drawn at random to begin with. From then on `annotrace connect label-studio --push
--queue` plans 60 labels per round, and each annotator answers what Label Studio gives out in their
tab. The twin without a queue continues at random, ten answers each per round. Told is the number of
labels after which 95 % of the texts have the right class in truth.csv. The arm "queue-10" is the
queue with at most ten labels per annotator and round.

The server must run on this machine, with the token of an administrator in the environment, as for
`annotrace connect`; six users are added to it, and two projects per seed. --fake uses the one of
the tests instead, which takes a minute.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, ProxyHandler, Request, build_opener

import numpy as np
from click.testing import CliRunner

from annotrace.cli.main import main as annotrace
from annotrace.connect.json_api import is_local
from annotrace.connect.label_studio.tabs import title_of

sys.path.append(str(Path(__file__).parents[1] / "connect"))
from fake_label_studio import NAMES, TOKEN, FakeLabelStudio, choice
from fake_server import serving

SKILLS = (0.95, 0.9, 0.85, 0.75, 0.65, 0.55)
N_TEXTS, TARGET, FIRST = 300, 0.95, 10
EMAILS = tuple(f"annotator-{k}@example.com" for k in range(len(SKILLS)))
VARIABLE = "ANNOTRACE_LABEL_STUDIO_TOKEN"
CONFIG = (
    '<View><Text name="text" value="$text"/><Choices name="sentiment" toName="text">'
    + "".join(f'<Choice value="{name}"/>' for name in NAMES)
    + "</Choices></View>"
)


class Server:
    """A Label Studio server, as an administrator and six annotators use it."""

    def __init__(self, url, token):
        assert is_local(url), "Only a server on this machine."
        self.url, self.admin = url, token
        self.tokens = dict.fromkeys(EMAILS)

    def call(self, method, path, body=None, token=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        headers["Authorization"] = f"Token {token or self.admin}"
        request = Request(self.url + path, data, headers, method=method)
        with build_opener(ProxyHandler({})).open(request, timeout=120) as response:
            return json.loads(response.read() or b"null")

    def sign_up(self):
        """Add the annotators, who sign up by the link of an invitation, or log in."""
        known = [user["email"] for user in self.call("GET", "/api/users/")]
        invite = self.call("GET", "/api/invite")["invite_url"]
        for email in EMAILS:
            opener = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))
            page = "/user/login/" if email in known else invite
            text = opener.open(self.url + page, timeout=60).read().decode()
            secret = re.search(r'csrfmiddlewaretoken" value="([^"]+)', text)[1]
            form = {"csrfmiddlewaretoken": secret, "email": email, "password": "Simul8ted!"}
            headers = {"Referer": self.url + page}
            opener.open(Request(self.url + page, urlencode(form).encode(), headers), timeout=60)
            answer = opener.open(f"{self.url}/api/current-user/token", timeout=60).read()
            self.tokens[email] = json.loads(answer)["token"]

    def new_project(self, title):
        project = {"title": title, "label_config": CONFIG, "maximum_annotations": len(EMAILS)}
        number = self.call("POST", "/api/projects/", project)["id"]
        texts = [{"text": f"{title}, text {k}"} for k in range(N_TEXTS)]
        self.call("POST", f"/api/projects/{number}/import", texts)
        path = f"/api/tasks/?project={number}&page=1&page_size={N_TEXTS}&include=id"
        return number, [task["id"] for task in self.call("GET", path)["tasks"]]

    def answer(self, task, who, name):
        body = {"result": choice(name), "lead_time": 1}
        self.call("POST", f"/api/tasks/{task}/annotations/", body, self.tokens[EMAILS[who]])

    def next_task(self, project, tab, who):
        """Return what "Label Tasks As Displayed" gives out, None if there is nothing."""
        path = f"/api/dm/actions/?id=next_task&project={project}"
        body = {name: tab[name] for name in ("filters", "ordering")}
        try:
            return self.call("POST", path, body, self.tokens[EMAILS[who]])["id"]
        except HTTPError as error:
            if error.code != 404:
                raise
            return None

    def tabs(self, project):
        views = self.call("GET", f"/api/dm/views/?project={project}")
        return {view["data"]["title"]: view["data"] for view in views}


class FakeServer(Server):
    """The server of the tests, with a new project each time."""

    def __init__(self, stack):
        self.stack, self.admin = stack, TOKEN
        self.tokens = {email: f"token-of-{email}" for email in EMAILS}

    def sign_up(self):
        pass

    def new_project(self, title):
        fake = FakeLabelStudio(N_TEXTS, EMAILS)
        fake.project["maximum_annotations"] = len(EMAILS)
        self.url = self.stack.enter_context(serving(fake))
        return 7, list(fake.tasks)


class Crowd:
    """What each annotator would say of each text."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.truth = self.rng.integers(0, len(NAMES), N_TEXTS)
        right = self.rng.random((N_TEXTS, len(SKILLS))) < SKILLS
        shift = self.rng.integers(1, len(NAMES), right.shape)
        self.said = np.where(right, self.truth[:, None], (self.truth[:, None] + shift) % len(NAMES))
        self.order = [self.rng.permutation(N_TEXTS).tolist() for _ in SKILLS]


def run_arm(server, seed, arm, budget):
    """Label a project until it is right, and return the number of labels."""
    crowd = Crowd(seed)
    project, tasks = server.new_project(f"loop {arm} {seed}")
    place = {task: k for k, task in enumerate(tasks)}
    n_labels, started = 0, time.monotonic()

    def answer(who, task):
        server.answer(task, who, NAMES[crowd.said[place[task], who]])

    def answer_at_random(who):
        chosen = [crowd.order[who].pop() for _ in range(min(FIRST, len(crowd.order[who])))]
        for k in chosen:
            answer(who, tasks[k])
        return len(chosen)

    def answer_queue(who):
        tab = server.tabs(project)[title_of(EMAILS[who])]
        n_answers = 0
        while (task := server.next_task(project, tab, who)) is not None:
            answer(who, task)
            n_answers += 1
        return n_answers

    def all_annotators(each):
        with ThreadPoolExecutor(len(SKILLS)) as pool:
            return sum(pool.map(each, range(len(SKILLS))))

    n_labels += all_annotators(answer_at_random)
    with tempfile.TemporaryDirectory() as folder:
        while (accuracy := estimate(server, project, arm, budget, folder, crowd, place)) < TARGET:
            n_new = all_annotators(answer_at_random if arm == "random" else answer_queue)
            n_labels += n_new
            if n_new == 0:
                break
    return {
        "arm": arm,
        "seed": seed,
        "n_labels": n_labels,
        "accuracy": round(accuracy, 4),
        "seconds": round(time.monotonic() - started, 1),
    }


def estimate(server, project, arm, budget, folder, crowd, place):
    """Run the command, and return the share of texts with the right class."""
    run = Path(folder) / "run"
    words = ["connect", "label-studio", server.url, "--project", str(project), "--out", str(run)]
    back = [] if arm == "random" else ["--push", "--queue", "--budget", str(budget)]
    back += ["--capacity", arm.partition("-")[2]] if "-" in arm else []
    done = CliRunner().invoke(annotrace, [*words, "--overwrite", "--quiet", *back])
    assert done.exit_code == 0, done.output
    with (run / "truth.csv").open(encoding="utf-8") as file:
        labels = {place[int(row["item"])]: row["label"] for row in csv.DictReader(file)}
    right = [labels[k] == NAMES[true] for k, true in enumerate(crowd.truth)]
    return sum(right) / N_TEXTS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?")
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="*", default=range(5))
    parser.add_argument("--arms", nargs="*", default=["queue", "random"])
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with ExitStack() as stack:
        real = not options.fake
        server = Server(options.url, os.environ[VARIABLE]) if real else FakeServer(stack)
        os.environ[VARIABLE] = server.admin
        server.sign_up()
        totals = dict.fromkeys(options.arms, 0)
        for seed in options.seeds:
            for arm in totals:
                result = run_arm(server, seed, arm, options.budget)
                result["server"] = "Label Studio" if real else "fake"
                totals[arm] += result["n_labels"]
                print(json.dumps(result), flush=True)
                if options.out is not None:
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(result) + "\n")
        for arm in options.arms:
            print(f"{arm}: {totals[arm] / len(options.seeds):.0f} labels on average")


if __name__ == "__main__":
    main()
