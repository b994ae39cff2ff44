"""`annotrace reproduce`, end to end on digits, and drawing alone."""

import errno
import json
from dataclasses import replace

import pytest

from annotrace.errors import DivergenceError
from annotrace.experiments import digits, figures
from annotrace.methods import Vanilla

SMALL = ("--methods", "trace,vanilla", "--seeds", 1, "--set", "epochs=1", "--limit-items", 200)


@pytest.fixture
def reproduced(annotrace, tmp_path):
    done = annotrace("reproduce", "digits", *SMALL, "--out", "out")
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines()[-1].endswith("(0 s left)")
    return done


def test_results_table_and_figures_are_written(reproduced, tmp_path):
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"results.jsonl", "digits.md", "digits.svg", "digits.png"}
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    assert {(run["method"], run["density"]) for run in runs} == {
        (method, density) for method in ("trace", "vanilla") for density in (5, 1)
    }
    assert (tmp_path / "out" / "digits.md").read_text() in reproduced.stdout


def test_the_same_command_runs_nothing_again(reproduced, annotrace, tmp_path):
    before = (tmp_path / "out" / "results.jsonl").read_bytes()
    again = annotrace("reproduce", "digits", *SMALL, "--out", "out")
    assert again.exit_code == 0
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == before


def test_what_is_there_is_drawn_without_running(reproduced, annotrace, tmp_path):
    path = tmp_path / "out" / "results.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    drawn = annotrace("reproduce", "digits", *SMALL, "--out", "out", "--only-draw")
    assert drawn.exit_code == 0
    assert "Drawn from 3 of 4 runs" in drawn.stdout
    assert len(path.read_text().splitlines()) == 3


def test_nothing_to_draw_is_reported_in_a_line(reproduced, annotrace):
    other = annotrace("reproduce", "digits", "--out", "out", "--only-draw")
    assert other.exit_code == 2
    assert "has none of the" in other.stderr
    assert "give the options of its runs" in other.stderr


def test_what_was_run_is_drawn_where_some_runs_failed(annotrace, tmp_path, monkeypatch):
    def diverge(*_):
        raise DivergenceError("The loss is nan.")

    monkeypatch.setattr(Vanilla, "_learn", diverge)
    done = annotrace("reproduce", "digits", *SMALL, "--out", "out")
    assert done.exit_code == 2
    assert "Drawn from 2 of 4 runs" in done.stdout
    assert "Error: 2 of 4 runs failed, the first with: The loss is nan." in done.stderr
    assert (tmp_path / "out" / "digits.png").is_file()
    alone = annotrace("reproduce", "digits", *SMALL, "--methods", "vanilla", "--out", "other")
    assert alone.exit_code == 2
    assert "2 of 2 runs failed" in alone.stderr


def test_missing_data_are_reported_in_a_line(annotrace):
    done = annotrace("reproduce", "mnist-em", "--data-dir", "nowhere")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: nowhere lacks train-images-idx3-ubyte")


def test_help_lists_every_experiment(annotrace):
    output = annotrace("reproduce", "--help").stdout
    assert "cifar10-table      table 1 and figure 2" in output
    assert "--vanilla-decay" in output


def test_a_disk_that_fills_while_drawing_is_reported_in_a_line(
    reproduced, annotrace, tmp_path, monkeypatch
):
    def full(*_):
        with figures.atomic_write(tmp_path / "out" / "digits.svg"):
            raise OSError(errno.ENOSPC, "No space left on device")

    before = sorted((tmp_path / "out").iterdir())
    (experiment,) = digits.EXPERIMENTS
    monkeypatch.setattr(digits, "EXPERIMENTS", (replace(experiment, draw=full),))
    drawn = annotrace("reproduce", "digits", *SMALL, "--out", "out", "--only-draw")
    assert drawn.exit_code == 2
    place = tmp_path / "out" / "digits.svg"
    assert drawn.stderr == f"Error: {place}: No space left on device.\n"
    assert sorted((tmp_path / "out").iterdir()) == before
