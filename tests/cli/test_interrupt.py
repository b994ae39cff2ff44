"""Ctrl-C in a real process, and the training that resumes."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from annotrace import version

# A signal to the process itself, so that it always comes in the third epoch.
INTERRUPTED = """
import os, signal, sys
from annotrace.training import loop

finish = loop._finish_epoch

def finish_and_press_ctrl_c(state, *others):
    finish(state, *others)
    if state.epoch == 3:
        os.kill(os.getpid(), signal.SIGINT)

loop._finish_epoch = finish_and_press_ctrl_c
from annotrace.cli.main import main
main(sys.argv[1:], prog_name="annotrace")
"""
SOURCE = str(Path(version.__file__).parents[1])


@pytest.fixture
def one_thread():
    """As many as the process that is stopped has: sums in another order would not be equal."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def stop_in_the_third_epoch(folder, args):
    return subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *args],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
    )


def args_of(out):
    columns = ["--item", "photo", "--annotator", "who", "--label", "said"]
    given = ["--features", "features.npz", "--epochs", "8", "--method", "trace"]
    return ["fit", "labels.csv", *columns, *given, "--out", out]


@pytest.mark.usefixtures("one_thread")
def test_ctrl_c_and_resume_end_where_an_unbroken_training_does(annotrace, crowd):
    stopped = stop_in_the_third_epoch(crowd, args_of("a run"))
    assert stopped.returncode == 130
    output = stopped.stderr.splitlines()[-1]
    assert "saved in a run/checkpoint.pt. Resume with: " in output
    assert "Traceback" not in stopped.stderr
    assert not (crowd / "a run" / "run.json").exists()

    refused = annotrace(*args_of("a run"), "--resume", "--seed", "1")
    assert refused.exit_code == 2
    assert "belongs to a training with other" in refused.stderr

    program, *args = shlex.split(output.split("Resume with: ")[1])
    assert (program, args) == ("annotrace", [*args_of("a run"), "--resume"])
    resumed = annotrace(*args)
    assert resumed.exit_code == 0, resumed.stderr
    assert not (crowd / "a run" / "checkpoint.pt").exists()

    assert annotrace(*args_of("unbroken")).exit_code == 0
    for name in ("truth.csv", "annotators.csv", "model.safetensors"):
        assert (crowd / "a run" / name).read_bytes() == (crowd / "unbroken" / name).read_bytes()


def test_ctrl_c_while_the_run_is_written_loses_nothing(annotrace, crowd, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("annotrace.aggregation.saving.write_confusion", stopped)
        result = annotrace(*args_of("run"))
    assert "Resume with: annotrace fit" in result.stderr
    assert (crowd / "run" / "truth.csv").exists()
    assert not (crowd / "run" / "run.json").exists()
    resumed = annotrace(*args_of("run"), "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert (crowd / "run" / "run.json").exists()
    assert not (crowd / "run" / "checkpoint.pt").exists()
