"""A stopped sweep resumes, a failed run does not affect others, missing data is an error."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_up import made_up

import annotrace
from annotrace.errors import DivergenceError, InputError, RunError, SweepError
from annotrace.experiments import find_experiment
from annotrace.experiments.options import Options
from annotrace.experiments.plans import make_plan
from annotrace.experiments.results import FILE
from annotrace.experiments.runner import finished, sweep

OPTIONS = Options(methods=("vanilla", "trace"), seeds=1)


class Performer:
    """Replaces training: counts runs, and fails on demand."""

    def __init__(self, wrong_at=None, error=None):
        self.keys, self.wrong_at, self.error = [], wrong_at, error

    def __call__(self, run, data, device):
        if len(self.keys) == self.wrong_at:
            self.wrong_at = None
            raise self.error
        self.keys.append(run["key"])
        return made_up(run)


def digits(performer):
    return replace(find_experiment("digits"), perform=performer)


def test_a_stopped_sweep_resumes(tmp_path):
    stopped = Performer(2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt, match="Stopped; 2 of 4 runs are kept in"):
        sweep(digits(stopped), OPTIONS, out=tmp_path)
    rest = Performer()
    results = sweep(digits(rest), OPTIONS, out=tmp_path)
    plan = [run["key"] for run in make_plan(digits(rest), OPTIONS)]
    assert stopped.keys + rest.keys == plan
    assert [result["key"] for result in results] == plan
    again = Performer()
    assert sweep(digits(again), OPTIONS, out=tmp_path) == results
    assert again.keys == []


def test_a_half_written_run_is_run_again(tmp_path):
    results = sweep(digits(Performer()), OPTIONS, out=tmp_path)
    content = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(content[:-40])
    again = Performer()
    assert sweep(digits(again), OPTIONS, out=tmp_path) == results
    assert again.keys == [results[-1]["key"]]
    assert (tmp_path / FILE).read_bytes() == content


def test_a_run_that_fails_leaves_the_others_and_is_tried_again(tmp_path):
    shown, failing = [], Performer(1, DivergenceError("The loss is nan."))
    with pytest.raises(SweepError, match="1 of 4 runs failed, the first with: The loss is nan"):
        sweep(digits(failing), OPTIONS, out=tmp_path, show=shown.append)
    assert shown[1].startswith("[2/4] vanilla, ")
    assert shown[1].endswith(": failed: The loss is nan.")
    assert len(finished(digits(failing), OPTIONS, tmp_path)) == 3
    again = Performer()
    assert len(sweep(digits(again), OPTIONS, out=tmp_path)) == 4
    assert len(again.keys) == 1


def test_other_settings_are_other_runs(tmp_path):
    sweep(digits(Performer()), OPTIONS, out=tmp_path)
    assert finished(digits(Performer()), replace(OPTIONS, set=(("epochs", 3),)), tmp_path) == []


def test_every_run_and_the_time_left_are_shown(tmp_path):
    shown = []
    sweep(digits(Performer()), OPTIONS, out=tmp_path, show=shown.append)
    assert len(shown) == 4
    assert shown[-1].startswith("[4/4] vanilla, pairwise-flippers 0.4, 1 label, seed")
    assert shown[-1].endswith("(0 s left)")


def test_a_resumed_sweep_says_how_many_runs_exist(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        sweep(digits(Performer(1, KeyboardInterrupt())), OPTIONS, out=tmp_path)
    shown = []
    sweep(digits(Performer()), OPTIONS, out=tmp_path, show=shown.append)
    assert shown[0] == "1 of 4 runs exist already."
    assert shown[1].startswith("[2/4] ")


@pytest.mark.parametrize("name", ["mnist-em", "cifar10-table"])
def test_missing_data_are_asked_for(name, tmp_path):
    experiment = find_experiment(name)
    with pytest.raises(InputError, match="give --data-dir the folder"):
        sweep(experiment, Options(), out=tmp_path)
    with pytest.raises(InputError, match=f"{tmp_path} lacks .*"):
        sweep(experiment, Options(), out=tmp_path, data_dir=tmp_path)


def test_what_no_method_knows_is_rejected(tmp_path):
    digits = find_experiment("digits")
    with pytest.raises(InputError, match="--set depth: no method of digits has such a setting"):
        sweep(digits, Options(set=(("depth", 3),)), out=tmp_path)
    with pytest.raises(InputError, match="--methods majik: digits has auto, "):
        sweep(digits, Options(methods=("majik",)), out=tmp_path)
    with pytest.raises(InputError, match="--densities 3: digits has 5, 1"):
        sweep(digits, Options(densities=(3,)), out=tmp_path)


def test_a_setting_that_no_run_could_use_is_rejected_before_the_first(tmp_path):
    with pytest.raises(InputError, match=r"^Expected `epochs` to be .* but got 'five'"):
        sweep(find_experiment("digits"), Options(set=(("epochs", "five"),)), out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_run_that_cannot_be_written_ends_the_sweep(tmp_path, monkeypatch):
    def full(path, result):
        raise RunError("results.jsonl: No space left on device.")

    monkeypatch.setattr("annotrace.experiments.runner.add_result", full)
    performer = Performer()
    with pytest.raises(RunError, match="No space left"):
        sweep(digits(performer), OPTIONS, out=tmp_path)
    assert len(performer.keys) == 1


def test_half_precision_is_rejected_on_a_cpu_that_would_not_use_it(tmp_path):
    options = replace(OPTIONS, set=(("precision", "bf16"),))
    with pytest.raises(InputError, match=r"^--set precision=bf16: runs on a CPU use float32"):
        sweep(digits(Performer()), options, out=tmp_path, device="cpu")
    asked = replace(OPTIONS, set=(("precision", "float32"),))
    assert len(sweep(digits(Performer()), asked, out=tmp_path, device="cpu")) == 4


# A signal to the process itself, so that it always comes in the second run.
INTERRUPTED = """
import os, signal, sys
from annotrace.training import loop

finish, epochs = loop._finish_epoch, []

def finish_and_press_ctrl_c(state, *others):
    finish(state, *others)
    epochs.append(state.epoch)
    if len(epochs) == 3:
        os.kill(os.getpid(), signal.SIGINT)

loop._finish_epoch = finish_and_press_ctrl_c
from annotrace.experiments.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_in_a_training_keeps_the_runs_before_it(tmp_path):
    args = ["digits", "--out", tmp_path, "--methods", "vanilla", "--seeds", "1"]
    args += ["--set", "epochs=2", "--limit-items", "200"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(Path(annotrace.__file__).parents[1])
    stopped = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *map(str, args)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert stopped.returncode == 128 + signal.SIGINT, stopped.stderr
    assert "Stopped; 1 of 2 runs are kept" in stopped.stderr.splitlines()[-1]
    (line,) = (tmp_path / FILE).read_text().splitlines()
    assert json.loads(line)["density"] == 5
