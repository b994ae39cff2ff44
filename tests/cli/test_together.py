"""`fit` and `aggregate` as several processes of one run, and their ends."""

import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from several_processes import annotrace, call_in_all, run_in_all

import annotrace as at
from annotrace.cli.main import main

FIT = "fit labels.csv --features features.npz --method trace --no-recipe --epochs 4 --quiet"
FIT += " --no-report --out "


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    truth = np.arange(150) % 3
    X = 3 * np.eye(3)[truth] + rng.normal(size=(150, 3))
    np.savez(tmp_path / "features.npz", X=X.astype(np.float32), items=np.arange(150).astype(str))
    reports = {"ann": truth, "bob": truth, "cy": rng.integers(3, size=150)}
    rows = [f"{k},{who},{label[k]}" for who, label in reports.items() for k in range(150)]
    (tmp_path / "labels.csv").write_text("\n".join(["item,annotator,label", *rows]))
    return tmp_path


def posterior(folder):
    return at.load(folder).posterior_


def fit_until_killed(victim, *arguments):
    """Run a command; one process kills itself in its seventh step, after the gradients' sum."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    steps = []

    def count(*_):
        steps.append(1)
        if len(steps) == 7 and os.environ["RANK"] == victim:
            os.kill(os.getpid(), signal.SIGKILL)

    register_optimizer_step_post_hook(count)
    annotrace(*arguments)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_fit_that_loses_a_process_resumes_with_any_number(folder, victim, monkeypatch):
    lost = call_in_all(2, fit_until_killed, folder, str(victim), *f"{FIT} run".split())
    assert lost[victim].code == -signal.SIGKILL
    left = lost[1 - victim]
    assert left.code != 0
    assert left.errors.count("Another process of this run has ended") == 1, left.errors
    assert "run/checkpoint.bin" in left.errors
    assert "--resume" in left.errors
    assert "Traceback" not in left.errors
    if victim == 0:
        resumed = run_in_all(2, f"{FIT} run --resume", folder)
        assert [each.code for each in resumed] == [0, 0], resumed[0].errors
    monkeypatch.chdir(folder)
    for command in [f"{FIT} run --resume"] * victim + [f"{FIT} whole"]:
        main(command.split(), standalone_mode=False)
    assert not (folder / "run" / "checkpoint.bin").exists()
    np.testing.assert_allclose(posterior(folder / "run"), posterior(folder / "whole"), atol=1e-5)


def fit_until_silent(*arguments):
    """Run a command; the second process does nothing from its seventh step on."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from annotrace import distributed

    distributed.TIMEOUT = timedelta(seconds=5)
    steps = []

    def count(*_):
        steps.append(1)
        if len(steps) == 7 and os.environ["RANK"] == "1":
            time.sleep(12)
            os._exit(1)

    register_optimizer_step_post_hook(count)
    annotrace(*arguments)


def test_a_fit_whose_other_process_does_not_answer_says_so_and_is_saved(folder):
    left, _ = call_in_all(2, fit_until_silent, folder, *f"{FIT} run".split())
    assert "has not answered for" in left.errors
    assert "; the training is saved in run/checkpoint.bin. Resume with: " in left.errors
    assert (folder / "run" / "checkpoint.bin").exists()


def test_processes_aggregate_together_and_one_prints(folder):
    ended = run_in_all(2, "aggregate labels.csv --method dawid-skene --no-report --out run", folder)
    assert [each.code for each in ended] == [0, 0], ended[0].errors
    assert "Wrote run" in ended[0].output
    assert ended[1].output == ended[1].errors == ""
    one = at.aggregation.make("dawid-skene").fit(at.LabelTable.read(folder / "labels.csv"))
    np.testing.assert_allclose(posterior(folder / "run"), one.posterior_, atol=1e-9)


@pytest.mark.parametrize("damaged", [0, 1])
def test_a_file_that_one_process_cannot_read_ends_the_run_with_one_message(folder, damaged):
    frame = pl.read_csv(folder / "labels.csv", infer_schema=False)
    path = folder / "labels.parquet"
    frame.write_parquet(path, row_group_size=len(frame) // 2)
    content = bytearray(path.read_bytes())
    start = 50 + damaged * (len(content) // 2)
    content[start : start + 100] = bytes(100)
    path.write_bytes(content)
    ended = run_in_all(2, "aggregate labels.parquet --no-report --out run", folder)
    assert all(each.code not in (0, -signal.SIGKILL) for each in ended), ended
    said = "".join(each.errors for each in ended)
    assert said.count("Error") == 1, said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("aggregate absent.csv --out run", "absent.csv"),
        ("aggregate labels.csv --method glad --out run", "runs in one process"),
        ("fit labels.csv --images . --encoder x --out run", "--encoder works in one process"),
    ],
)
def test_an_error_is_printed_once(folder, command, message):
    ended = run_in_all(2, command, folder)
    assert all(each.code not in (0, -signal.SIGKILL) for each in ended)
    said = "".join(each.errors for each in ended)
    assert said.count(message) == 1, said
    assert said.count("Error") == 1, said
    assert not Path(folder / "run").exists()
