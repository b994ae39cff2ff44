"""`annotrace connect label-studio` against the fake server of the tests."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from urllib.request import ProxyHandler, Request, build_opener

import numpy as np
import pytest
from click.testing import CliRunner
from fake_label_studio import NAMES, TOKEN, FakeLabelStudio
from fake_server import serving

import annotrace as at
from annotrace.cli.main import main
from annotrace.run_folder import RUN_FILES

VARIABLE = "ANNOTRACE_LABEL_STUDIO_TOKEN"
USERS = ("ann@example.com", "bo@example.com", "cy@example.com")


@pytest.fixture
def fake():
    """Forty tasks, those from 31 on without labels; cy is wrong at every third task."""
    fake = FakeLabelStudio(40, USERS)
    for task in range(1, 31):
        for user in (2, 3, 4):
            fake.answer(task, user, NAMES[(task + (user == 4 and task % 3 == 0)) % 3])
    return fake


@pytest.fixture
def url(fake):
    with serving(fake) as url:
        yield url


@pytest.fixture
def run(url, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, TOKEN)
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)

    def invoke(*words, project="7", code=0):
        start = ["connect", "label-studio", url, "--project", project, "--out", tmp_path / "run"]
        done = CliRunner().invoke(main, list(map(str, [*start, *words])))
        assert done.exit_code == code, done.output
        assert TOKEN not in done.output
        return done.output

    return invoke


def export(fake, path):
    tasks = [
        fake.show(task, ("id", "data", "annotations", *FIELDS)) for task in fake.tasks.values()
    ]
    for task in tasks:
        for annotation in task["annotations"]:
            annotation["completed_by"] = {"email": fake.users[annotation["completed_by"]]}
    path.write_text(json.dumps(tasks))


FIELDS = ("completed_by", "result", "was_cancelled", "ground_truth")


def test_the_run_is_that_of_aggregate(fake, run, tmp_path):
    printed = run("--method", "dawid-skene")
    assert "40 items, 3 annotators, 90 labels, 3 classes" in printed
    assert "90 labels of 40 items" in printed
    assert {path.name for path in (tmp_path / "run").iterdir()} == set(RUN_FILES)
    export(fake, tmp_path / "export.json")
    table = at.LabelTable.read(tmp_path / "export.json", classes=NAMES)
    expected = at.aggregation.make("dawid-skene").fit(table)
    model = at.load(tmp_path / "run")
    assert model.table_.items.tolist()[:30] == table.items.tolist()
    assert model.posterior_[:30] == pytest.approx(expected.posterior_)
    assert fake.predictions == []
    assert fake.views == {}


def test_push_and_queue(fake, run):
    printed = run("--push", "--queue", "--budget", "9", "--cost", ".5")
    assert re.search(r"Pushed annotrace-[0-9a-f]{12}: 40 predictions\.", printed)
    assert "cost so far 45.00" in printed
    assert fake.versions() == {fake.project["model_version"]: 40}
    tabs = {view["data"]["title"]: view["data"] for view in fake.views.values()}
    assert {f"{name} (annotrace)" for name in USERS} < set(tabs)
    planned = [
        each["value"]
        for name in USERS
        for each in tabs[f"{name} (annotrace)"]["filters"]["items"]
        if each["value"]
    ]
    assert len(planned) == 9
    assert set(planned) <= set(range(31, 41))


def test_a_second_push_of_the_same_labels_sends_nothing(fake, run):
    run("--push")
    assert "no change" in run("--push", "--overwrite")
    assert len(fake.predictions) == 40


def test_gold_goes_both_ways(fake, run, tmp_path):
    fake.answer(31, 1, "Neutral", ground_truth=True)
    (tmp_path / "gold.csv").write_text("item,truth\n3,Positive\n4,Positive\n")
    printed = run("--gold", tmp_path / "gold.csv")
    assert "Gold: 1 marked as ground truth, 0 were already; 1 could not be" in printed
    assert "('4')" in printed
    model = at.load(tmp_path / "run")
    gold = {model.table_.items[k]: model.gold_[k] for k in range(40) if model.gold_[k] >= 0}
    assert gold == {"31": 2, "3": 0, "4": 0}
    assert sum(answer["ground_truth"] for answer in fake.annotations.values()) == 2


def test_gold_that_is_not_in_the_project(run, tmp_path):
    (tmp_path / "gold.csv").write_text("item,truth\nx,Positive\n")
    assert "1 item is not in the project ('x')" in run("--gold", tmp_path / "gold.csv", code=2)


def test_texts_train_a_classifier(fake, run, tmp_path):
    for task in fake.tasks.values():
        task["data"] = {"text": f"{NAMES[task['id'] % 3]} words", "n": task["id"]}
    run("--text", "text", "--method", "trace", "--push")
    model = at.load(tmp_path / "run")
    assert model.predict(["Neutral words"]).tolist() == ["Neutral"]
    predicted = {p["task"]: p["result"][0]["value"]["choices"][0] for p in fake.predictions}
    assert predicted[37] == NAMES[37 % 3]


@pytest.fixture
def pictures(fake):
    """Tasks with an image in the colour of their class."""
    rng = np.random.default_rng(0)
    for number in fake.tasks:
        pixels = rng.integers(0, 60, (12, 12, 3)).astype(np.uint8)
        pixels[..., number % 3] += 180
        fake.upload(number, pixels)
    return fake.files


IMAGES = ("--image", "image", "--image-size", "8", "--method", "trace")


def test_images_train_a_classifier(fake, pictures, run, tmp_path):
    printed = run(*IMAGES, "--push")
    assert "90 labels of 40 items" in printed
    assert sorted(name for name in fake.requests if "/data/" in name) == sorted(
        f"GET {path}" for path in pictures
    )
    predicted = {p["task"]: p["result"][0]["value"]["choices"][0] for p in fake.predictions}
    assert [predicted[task] for task in range(31, 41)] == [NAMES[k % 3] for k in range(31, 41)]
    assert "data:image/png;base64," in (tmp_path / "run" / "report.html").read_text()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "x.png").write_bytes(pictures["/data/upload/7/2-photo.png"])
    words = ("--images", tmp_path / "new", "--out", tmp_path / "new.csv")
    done = CliRunner().invoke(main, ["predict", str(tmp_path / "run"), *map(str, words)])
    assert done.exit_code == 0, done.output
    rows = (tmp_path / "new.csv").read_text().splitlines()
    assert [row.split(",")[:2] for row in rows[1:]] == [["x.png", "Neutral"]]


def test_downloaded_images_are_deleted_at_the_end(pictures, run, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    run(*IMAGES)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_broken_image_is_one_line_or_left_out(fake, pictures, run, tmp_path):
    pictures["/data/upload/7/3-photo.png"] = b"no image"
    printed = run(*IMAGES, "--quiet", code=2)
    assert printed.startswith("Error: Item 3, '/data/upload/7/3-photo.png': the image cannot be")
    assert printed.count("\n") == 1
    assert not (tmp_path / "run").exists()
    printed = run(*IMAGES, "--quiet", "--skip-broken", "--push")
    assert "1 image of the field 'image' cannot be read and is skipped ('3')" in printed
    assert "Left out 3 labels of 1 item" in printed
    assert {p["task"] for p in fake.predictions} == set(range(1, 41)) - {3}


def test_an_image_on_another_host_is_refused(fake, pictures, run):
    fake.tasks[5]["data"]["image"] = "http://169.254.169.254/a.png"
    printed = run(*IMAGES, code=2)
    assert "Item 5, 'http://169.254.169.254/a.png': It is on http://169.254.169.254, and" in printed
    assert "annotrace fit EXPORT --images FOLDER" in printed
    assert not [name for name in fake.requests if "/data/" in name]


def test_a_field_that_a_task_lacks(fake, run):
    assert "Item 1 has no field 'photo'; it has 'text'. Name another one with --image" in run(
        "--image", "photo", code=2
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--text", "a", "--image", "b"), "Give --text FIELD or --image FIELD, not both"),
        (("--encoder", "a"), "--encoder goes with --text FIELD or --image FIELD"),
    ],
)
def test_options_that_contradict_each_other(fake, run, words, said):
    assert said in run(*words, code=2)
    assert fake.requests == []


@pytest.mark.parametrize(
    ("option", "field", "model"), [("--image", "image", "image"), ("--text", "text", "text")]
)
def test_encoders(fake, run, tmp_path, monkeypatch, models, request, option, field, model):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if option == "--image":
        request.getfixturevalue("pictures")
    printed = run(option, field, "--encoder", models / model, "--method", "two-stage")
    assert "Encoded 40 " in printed
    assert at.load(tmp_path / "run").encoder_.name == str(models / model)


def test_no_labels_yet(fake, run, tmp_path):
    fake.annotations.clear()
    assert "40 items and no labels yet" in run("--push")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"project": "8"}, "answered 404: there is no such project"),
        ({"token": "wrong"}, "answered 401: the token is not accepted"),
    ],
)
def test_errors_are_one_line(run, monkeypatch, change, said):
    monkeypatch.setenv(VARIABLE, change.pop("token", TOKEN))
    printed = run(**change, code=2)
    assert said in printed
    assert printed.count("\n") == 1


def test_a_run_is_not_overwritten(fake, run):
    run()
    fake.requests.clear()
    assert "already has truth.csv" in run("--push", code=2)
    assert fake.requests == []


def test_without_a_token(run, monkeypatch):
    monkeypatch.delenv(VARIABLE)
    assert f"set the environment variable {VARIABLE}" in run(code=2)


def test_the_variable_of_label_studio_is_read_too(run, monkeypatch):
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", TOKEN)
    run()


def test_plain_http_to_another_machine_is_warned_of(run, monkeypatch):
    monkeypatch.setattr("annotrace.connect.json_api.is_local", lambda url: False)
    assert "Warning: the token goes over plain http" in run()


def test_plain_http_on_this_machine_is_not_warned_of(run):
    assert "Warning" not in run()


def test_listen_goes_with_watch(run):
    assert "--listen goes with --watch" in run("--listen", "127.0.0.1:0", code=2)


@pytest.fixture
def watching(url, tmp_path):
    """Start the command in a process of its own, whose lines go to a file."""
    started = []

    def start(*words):
        out = (tmp_path / "printed").open("w")
        start = ["connect", "label-studio", url, "--project", "7", "--out", str(tmp_path / "run")]
        command = [sys.executable, "-u", "-m", "annotrace", *start, "--watch", *words]
        environment = os.environ | {VARIABLE: TOKEN}
        started.append(subprocess.Popen(command, stdout=out, stderr=out, env=environment))
        out.close()
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "It did not happen."
        time.sleep(0.05)


def test_watching_pushes_new_versions_by_webhook_and_leaks_no_token(fake, watching, tmp_path):
    process = watching("--push", "--min-new", "2", "--interval", "600", "--listen", "127.0.0.1:0")

    def printed():
        return (tmp_path / "printed").read_text()

    wait_for(lambda: "labels of 40 items" in printed())
    first = fake.project["model_version"]
    listed = ["ps", "-wwo", "args", "-p", str(process.pid)]
    arguments = subprocess.run(listed, capture_output=True, text=True).stdout
    assert "label-studio" in arguments
    assert TOKEN not in arguments
    for user in (2, 3):
        fake.answer(31, user, "Neutral")
    hook = next(iter(fake.hooks.values()))["url"]
    build_opener(ProxyHandler({})).open(Request(hook, b"{}", method="POST"), timeout=5).close()
    wait_for(lambda: "92 labels of 40 items" in printed())
    assert fake.versions() == {fake.project["model_version"]: 40}
    assert fake.project["model_version"] != first
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert printed().endswith(f"Stopped watching; {tmp_path / 'run'} has the last result.\n")
    assert fake.hooks == {}
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert TOKEN.encode() not in path.read_bytes(), path
