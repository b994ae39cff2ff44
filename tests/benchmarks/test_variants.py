import json
import sys
import time

import numpy as np
import pytest
import variants
import variants_methods
from variants_crowds import Crowd
from variants_methods import MethodSpec, default_specs, with_recipe
from variants_rows import Cell, Job, read_rows, unpack
from variants_workers import WorkerDiedError, run_jobs

import annotrace as at
from annotrace.errors import InputError

CELL = Cell("digits", "rand-1", 0)


@pytest.fixture(scope="module")
def row():
    return variants_methods.run(Job(CELL, "two-stage:epochs=2"), None, "cpu")


def test_a_row_has_what_was_measured(row):
    correct = unpack(row["correct"], row["n_test"])
    assert row["n_test"] == 397
    assert correct.mean() == pytest.approx(row["accuracy"], abs=1e-6)
    assert (row["items"], row["labels"]) == (1400, 1400)
    assert 0.5 < row["posterior_accuracy"] < 0.8  # of single labels, .65 correct
    assert row["held_out_loss"] > 0
    assert json.loads(json.dumps(row)) == row


def test_a_failure_is_a_row(monkeypatch):
    tiny = Crowd(np.zeros((2, 3)), at.LabelTable.from_codes([0], [0], [0], n_items=2), *[None] * 3)
    monkeypatch.setattr(
        variants_methods, "read_crowd", lambda *_: tiny._replace(y=np.zeros(2, int))
    )
    found = variants_methods.run(Job(CELL, "vanilla"), None, "cpu")
    assert Cell(found["set"], found["variant"], found["seed"]) == CELL
    assert found["error"].startswith("InputError: ")


def test_specifications_are_read():
    spec = MethodSpec.parse("geo-crowd-layer+recipe:volume=W,lam=0.5,epochs=3,lr=None")
    model = spec.make(random_state=0)
    assert (model.volume, model.lam, model.epochs, model.lr) == ("W", 0.5, 3, None)
    assert (model.recipe, model.random_state) == ("default", 0)
    assert MethodSpec.parse("vanilla").make().recipe is None


@pytest.mark.parametrize("text", ["vanila", "vanilla:n_iter=3", "crossfit+recipe"])
def test_unknown_methods_and_parameters_are_refused(text):
    with pytest.raises(InputError):
        MethodSpec.parse(text)


def test_the_defaults_are_all_methods_but_the_oracle_and_those_equal_to_auto():
    names = [MethodSpec.parse(spec).name for spec in default_specs()]
    left_out = {"oracle", "crossfit", "item-dependent"}
    assert set(names) == {entry.name for entry in at.list_methods()} - left_out
    assert [n for n in set(names) if names.count(n) > 1] == ["geo-crowd-layer"]


def test_only_methods_without_the_recipe_get_it():
    assert with_recipe("geo-crowd-layer:volume=W") == "geo-crowd-layer+recipe:volume=W"
    assert with_recipe("trace") is None  # has it by default
    assert with_recipe("crossfit") is None  # cannot have it


def test_the_best_default_runs_get_the_recipe(capsys):
    rows = [
        {**CELL._asdict(), "method": spec, "accuracy": 0.9 if spec == "gem" else 0.5}
        for spec in default_specs()
        if spec != "wdn"
    ]
    chosen = variants.choose_for_recipe(rows, [CELL], 2)
    assert chosen[0] == "gem+recipe"
    assert len(chosen) == 2
    said = "Not considered for the recipe: wdn, with 0 of 1 runs\n"
    assert capsys.readouterr().out == said


def test_cheap_sets_come_first_and_methods_together():
    cells = variants.plan(["cifar10n", "digits"], ["full", "rand-1"], [0, 1])
    assert [cell.set for cell in cells] == ["digits"] * 4 + ["cifar10n"] * 4
    jobs = variants.pending(cells, ["auto", "vanilla"], [], retry=False)
    assert [job.method for job in jobs[:3]] == ["auto", "vanilla", "auto"]
    assert jobs[0].cell == jobs[1].cell == Cell("digits", "full", 0)


@pytest.mark.parametrize(("retry", "expected"), [(False, 1), (True, 2)])
def test_runs_that_are_there_are_skipped(row, retry, expected):
    failed = {**CELL._asdict(), "method": "gem", "error": "ValueError: no"}
    methods = ["two-stage:epochs=2", "gem", "vanilla"]
    assert len(variants.pending([CELL], methods, [row, failed], retry)) == expected


@pytest.fixture
def call(monkeypatch):
    def call_main(*arguments):
        monkeypatch.setattr(sys, "argv", ["variants.py", *map(str, arguments)])
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        variants.main()

    return call_main


def test_an_interrupted_run_resumes(call, row, tmp_path, capsys):
    out = tmp_path / "variants.jsonl"
    out.write_text(json.dumps(row | {"seconds": -1}) + "\n")
    chosen = ("--sets", "digits", "--variants", "rand-1", "--seeds", "0")
    call(*chosen, "--methods", "two-stage:epochs=2", "vanilla:epochs=1", "--out", out)
    rows = read_rows([out])
    assert [each["method"] for each in rows] == ["two-stage:epochs=2", "vanilla:epochs=1"]
    assert rows[0]["seconds"] == -1
    assert rows[1]["accuracy"] > 0.1
    assert "1/1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--sets", "digit"),
        ("--variants", "best"),
        ("--methods", "auto:n_item=1"),
        ("--workers", "0"),
    ],
)
def test_wrong_options_are_refused(call, arguments, tmp_path):
    with pytest.raises(SystemExit):
        call(*arguments, "--out", tmp_path / "none.jsonl")
    assert not (tmp_path / "none.jsonl").exists()


def test_check_exits_with_one_if_runs_are_missing(call, row, tmp_path, capsys):
    elsewhere = {**Cell("labelme", "full", 9)._asdict(), "method": "vanilla", "error": "no"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(elsewhere) + "\n")
    with pytest.raises(SystemExit) as left:
        call("--show", tmp_path / "rows.jsonl", "--check", "--leave-one-out")
    assert left.value.code == 1
    shown = capsys.readouterr().out
    assert "Missing: auto on all sets." in shown
    assert "Failed" not in shown  # seed 9 is not among those that count


def test_a_worker_that_dies_loses_one_job():
    fatal = "__import__('os')._exit(3)"
    done = dict(run_jobs(eval, ["1 + 1", fatal, "2 + 2", "3 + 3"], n_workers=2))
    assert isinstance(done[fatal], WorkerDiedError)
    assert str(done.pop(fatal)) == "exit code 3"
    assert done == {"1 + 1": 2, "2 + 2": 4, "3 + 3": 6}


def test_jobs_in_progress_are_abandoned_when_time_is_up():
    started = time.monotonic()
    endless = "__import__('time').sleep(600)"
    assert list(run_jobs(eval, [endless] * 3, n_workers=2, seconds=2)) == []
    assert time.monotonic() - started < 60
