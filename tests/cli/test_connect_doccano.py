"""`annotrace connect doccano` against the fake server of the tests."""

import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from fake_doccano import NAMES, PASSWORD, FakeDoccano
from fake_server import serving

import annotrace as at
from annotrace.cli.main import main
from annotrace.run_folder import RUN_FILES

VARIABLE = "ANNOTRACE_DOCCANO_PASSWORD"


@pytest.fixture
def fake():
    """Forty examples, those from 31 on without labels; cy is wrong at every third example."""
    fake = FakeDoccano(40, ("ann", "bo", "cy"))
    for number in range(1, 31):
        for user in (2, 3, 4):
            fake.label(number, user, NAMES[(number + (user == 4 and number % 3 == 0)) % 3])
    return fake


@pytest.fixture
def url(fake):
    with serving(fake) as url:
        yield url


@pytest.fixture
def run(url, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, PASSWORD)

    def invoke(*words, project="7", user="admin", code=0):
        start = ["connect", "doccano", url, "--project", project, "--user", user]
        words = [*start, "--out", tmp_path / "run", *words]
        done = CliRunner().invoke(main, list(map(str, words)))
        assert done.exit_code == code, done.output
        assert PASSWORD not in done.output
        return done.output

    return invoke


def test_the_run_is_that_of_aggregate(fake, run, tmp_path):
    printed = run("--method", "majority")
    assert "40 items, 3 annotators, 90 labels, 3 classes" in printed
    assert "90 labels of 40 items" in printed
    assert {path.name for path in (tmp_path / "run").iterdir()} == set(RUN_FILES)
    model = at.load(tmp_path / "run")
    truth = [NAMES[number % 3] for number in range(1, 31)]
    assert model.predict()[:30].tolist() == truth


def test_texts_train_a_classifier(fake, run, tmp_path):
    for number, example in fake.examples.items():
        example["text"] = f"{NAMES[number % 3]} words"
    run("--text", "text", "--method", "trace", "--quiet")
    assert at.load(tmp_path / "run").predict(["Neutral words"]).tolist() == ["Neutral"]


def test_gold_is_learned_from_and_not_written(fake, run, tmp_path):
    (tmp_path / "gold.csv").write_text("item,truth\n3,Positive\n31,Neutral\n")
    printed = run("--gold", tmp_path / "gold.csv")
    assert "Gold: 2 used. doccano marks no labels as ground truth." in printed
    model = at.load(tmp_path / "run")
    gold = {model.table_.items[k]: model.gold_[k] for k in range(40) if model.gold_[k] >= 0}
    assert gold == {"3": 0, "31": 2}


def test_former_members_are_noted(fake, run):
    fake.members.remove(4)
    assert "Note: doccano cannot count the labels" in run()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--push"], "doccano stores no predictions with scores: leave out --push."),
        (["--queue"], "doccano 1.8 assigns no examples to annotators: leave out --queue."),
        (["--watch", "--listen", "127.0.0.1:0"], "doccano calls no webhooks: leave out --listen."),
    ],
)
def test_what_doccano_cannot_do_is_refused_first(fake, run, words, said):
    assert f"Error: {said}\n" in run(*words, code=2)
    assert fake.requests == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"project": "8"}, "answered 404: there is no such project"),
        ({"user": "nobody"}, "answered 400: the user name or the password is not accepted"),
        ({"user": "ann"}, "answered 403: the user may not read the labels of everybody"),
    ],
)
def test_errors_are_one_line(run, change, said):
    printed = run(**change, code=2)
    assert said in printed
    assert printed.count("\n") == 1


def test_without_a_password(run, monkeypatch):
    monkeypatch.delenv(VARIABLE)
    assert f"There is no password: set the environment variable {VARIABLE}" in run(code=2)


def test_plain_http_to_another_machine_is_warned_of(run, monkeypatch):
    monkeypatch.setattr("annotrace.connect.json_api.is_loopback", lambda url: False)
    assert "Warning: the password goes over plain http" in run()


def test_watching_fits_again_and_leaks_no_password(fake, url, tmp_path):
    start = ["connect", "doccano", url, "--project", "7", "--user", "admin"]
    words = [*start, "--out", str(tmp_path / "run"), "--watch", "--interval", "1", "--min-new", "2"]
    environment = os.environ | {VARIABLE: PASSWORD}
    with (tmp_path / "printed").open("w") as out:
        command = [sys.executable, "-u", "-m", "annotrace", *words]
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    try:
        wait_for(tmp_path / "printed", "90 labels of 40 items")
        for user in (2, 3):
            fake.label(31, user, "Neutral")
        wait_for(tmp_path / "printed", "92 labels of 40 items")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.wait()
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert PASSWORD.encode() not in path.read_bytes(), path


def wait_for(path, text, seconds=60):
    deadline = time.monotonic() + seconds
    while text not in path.read_text():
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.05)
