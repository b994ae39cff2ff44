"""Ctrl-C in a real process, and the training that goes on from it."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import annotrace

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
SOURCE = str(Path(annotrace.__file__).parents[1])
PLAIN = "import sys; from annotrace.cli.main import main; main(sys.argv[1:])"


@pytest.fixture
def run(crowd):
    def run(code, *words):
        return subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=crowd,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE},
            capture_output=True,
            text=True,
        )

    return run


def words_of(out):
    columns = ["--item", "photo", "--annotator", "who", "--label", "said"]
    given = ["--features", "features.npz", "--epochs", "8"]
    return ["fit", "labels.csv", *columns, *given, "--out", out]


def test_ctrl_c_and_resume_end_where_an_unbroken_training_does(run, crowd):
    stopped = run(INTERRUPTED, *words_of("a run"))
    assert stopped.returncode == 130
    said = stopped.stderr.splitlines()[-1]
    assert "saved in a run/checkpoint.pt. Go on with: " in said
    assert "Traceback" not in stopped.stderr
    assert not (crowd / "a run" / "run.json").exists()

    program, *words = shlex.split(said.split("Go on with: ")[1])
    assert (program, words) == ("annotrace", [*words_of("a run"), "--resume"])
    resumed = run(PLAIN, *words)
    assert resumed.returncode == 0, resumed.stderr
    assert not (crowd / "a run" / "checkpoint.pt").exists()

    assert run(PLAIN, *words_of("unbroken")).returncode == 0
    for name in ("truth.csv", "annotators.csv", "model.safetensors"):
        assert (crowd / "a run" / name).read_bytes() == (crowd / "unbroken" / name).read_bytes()


def test_other_settings_cannot_go_on_from_a_checkpoint(run, crowd):
    assert run(INTERRUPTED, *words_of("run")).returncode == 130
    refused = run(PLAIN, *words_of("run"), "--resume", "--seed", "1")
    assert refused.returncode == 2
    assert "belongs to a training with other settings or data" in refused.stderr
