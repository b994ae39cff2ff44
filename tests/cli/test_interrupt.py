"""Ctrl-C and SIGTERM in a real process, and the training that resumes."""

import errno
import os
import shlex
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

from annotrace import version
from annotrace.training import loop

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


@pytest.fixture(autouse=True)
def handle_ctrl_c():
    """As in a terminal: a shell starts commands in the background with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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


def send(name, *_, **__):
    os.kill(os.getpid(), getattr(signal, name))


def args_of(out):
    columns = ["--item", "photo", "--annotator", "who", "--label", "said"]
    given = ["--features", "features.npz", "--epochs", "8", "--method", "trace", "--no-report"]
    return ["fit", "labels.csv", *columns, *given, "--out", out]


@pytest.mark.usefixtures("one_thread")
def test_a_stopped_fit_resumes_to_where_an_unbroken_one_ends(annotrace, crowd):
    stopped = stop_in_the_third_epoch(crowd, args_of("a run"))
    assert stopped.returncode == 130
    output = stopped.stderr.splitlines()[-1]
    assert "saved in a run/checkpoint.bin. Resume with: " in output
    assert "Traceback" not in stopped.stderr
    left = {path.name for path in (crowd / "a run").iterdir()}
    assert left == {"checkpoint.bin", "checkpoint.bin.training"}

    refused = annotrace(*args_of("a run"), "--resume", "--seed", "1")
    assert refused.exit_code == 2
    assert "belongs to a training with other" in refused.stderr

    program, *args = shlex.split(output.split("Resume with: ")[1])
    assert (program, args) == ("annotrace", [*args_of("a run"), "--resume"])
    resumed = annotrace(*args)
    assert resumed.exit_code == 0, resumed.stderr
    assert not (crowd / "a run" / "checkpoint.bin").exists()

    assert annotrace(*args_of("unbroken")).exit_code == 0
    for name in ("truth.csv", "annotators.csv", "model.safetensors"):
        assert (crowd / "a run" / name).read_bytes() == (crowd / "unbroken" / name).read_bytes()


def test_sigterm_keeps_the_checkpoint_too(annotrace, crowd, monkeypatch):
    finish = loop._finish_epoch

    def finish_and_stop(state, *others):
        finish(state, *others)
        if state.epoch == 3:
            send("SIGTERM")

    monkeypatch.setattr(loop, "_finish_epoch", finish_and_stop)
    stopped = annotrace(*args_of("run"))
    assert stopped.exit_code == 143
    assert "saved in run/checkpoint.bin. Resume with: " in stopped.stderr.splitlines()[-1]
    left = {path.name for path in (crowd / "run").iterdir()}
    assert left == {"checkpoint.bin", "checkpoint.bin.training"}


def test_ctrl_c_while_the_run_is_written_loses_nothing(annotrace, crowd, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("annotrace.aggregation.saving.write_confusion", stopped)
        result = annotrace(*args_of("run"))
    assert "Resume with: annotrace fit" in result.stderr
    assert [path.name for path in (crowd / "run").iterdir()] == ["checkpoint.bin"]
    resumed = annotrace(*args_of("run"), "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert (crowd / "run" / "run.json").exists()
    assert not (crowd / "run" / "checkpoint.bin").exists()


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize(
    "place",
    ["cli.aggregate.describe_labels", "cli.aggregate.fit_aggregation", "report.write_report"],
)
def test_an_aggregation_that_is_stopped_leaves_nothing(
    annotrace, crowd, monkeypatch, name, code, place
):
    monkeypatch.setattr(f"annotrace.{place}", partial(send, name))
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    result = annotrace("aggregate", "labels.csv", *args_of("run")[2:8], "--out", "run")
    assert (result.exit_code, result.stderr) == (code, "Interrupted.\n")
    assert not (crowd / "run").exists()
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_sigterm_stops_a_command_that_ignores_ctrl_c(annotrace, crowd, monkeypatch):
    """As commands do that a script starts in the background."""
    monkeypatch.setattr("annotrace.cli.aggregate.fit_aggregation", partial(send, "SIGTERM"))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = annotrace("aggregate", "labels.csv", *args_of("run")[2:8], "--out", "run")
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == 143


def test_an_overwrite_that_is_stopped_keeps_the_old_run(annotrace, run, monkeypatch):
    before = {path.name: path.read_bytes() for path in (run / "run").iterdir()}
    monkeypatch.setattr("annotrace.report.write_report", partial(send, "SIGTERM"))
    options = [*args_of("run")[2:8], "--out", "run", "--overwrite"]
    assert annotrace("aggregate", "labels.csv", *options).exit_code == 143
    assert {path.name: path.read_bytes() for path in (run / "run").iterdir()} == before


def test_a_full_disk_at_a_checkpoint_is_one_line(annotrace, crowd, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("annotrace.training.records._write", full)
    result = annotrace(*args_of("run"), "--quiet")
    assert result.exit_code == 2
    assert result.stderr == "Error: run/checkpoint.bin: No space left on device.\n"
    assert not (crowd / "run").exists()


def test_the_exit_code_is_the_same_if_the_interrupt_comes_in_an_import(tmp_path):
    """Python executes strings to define dataclasses, and then ends with SIGINT by itself."""
    (tmp_path / "sitecustomize.py").write_text(
        "from annotrace.cli.convert import convert\n"
        "convert.callback = lambda **_: exec('raise KeyboardInterrupt')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "annotrace", "convert", "a", "--out", "b"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), SOURCE])},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_the_command_line_is_imported_ends_it(tmp_path, name, code):
    (tmp_path / "click.py").write_text(f"import os, signal\nos.kill(os.getpid(), signal.{name})\n")
    done = subprocess.run(
        [sys.executable, "-m", "annotrace", "--help"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), SOURCE])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
