"""The bare runner needs torch, numpy, scipy and scikit-learn, and nothing else."""

import errno
import subprocess
import sys
from dataclasses import replace

import pytest

from annotrace.experiments import digits
from annotrace.experiments.__main__ import main
from annotrace.experiments.results import read_results

PLANNED = """
import sys
import annotrace.experiments.__main__, annotrace.experiments.runner
from annotrace.experiments import EXPERIMENTS, find_experiment
for name in EXPERIMENTS:
    find_experiment(name)
print(*sys.modules)
"""


def test_nothing_but_the_core_is_imported():
    done = subprocess.run([sys.executable, "-c", PLANNED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    banned = {"polars", "matplotlib", "jinja2", "click", "rich", "safetensors", "PIL"}
    assert not banned & set(done.stdout.split())


def test_runs_are_written(tmp_path, capsys):
    args = ["digits", "--methods", "vanilla", "--densities", "1", "--seeds", "1"]
    args += ["--set", "epochs=1", "--limit-items", "100", "--out", str(tmp_path)]
    assert main(args) == 0
    (result,) = read_results(tmp_path / "results.jsonl")
    assert (result["method"], result["n_items"], result["settings"]) == (
        "vanilla",
        100,
        {"epochs": 1},
    )
    assert f"{tmp_path}" in capsys.readouterr().out


def test_errors_are_a_line_and_an_exit_code(tmp_path, capsys):
    assert main(["cifar10-table", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("Error: cifar10-table needs CIFAR-10")


def load_by(load, monkeypatch):
    (experiment,) = digits.EXPERIMENTS
    monkeypatch.setattr(digits, "EXPERIMENTS", (replace(experiment, load=load),))


@pytest.mark.parametrize("place", ["file", "file/out", "/proc/out"])
def test_a_place_that_cannot_be_written_is_reported_before_anything_runs(
    place, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    load_by(lambda _: pytest.fail("it ran"), monkeypatch)
    assert main(["digits", "--methods", "oracle", "--out", place]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"Error: {place} ")


def refuse(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_what_the_system_refuses_is_a_line_and_an_exit_code(tmp_path, capsys, monkeypatch):
    load_by(refuse, monkeypatch)
    assert main(["digits", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "Error: No space left on device.\n"


def test_a_reader_who_has_gone_is_no_bad_input(tmp_path, monkeypatch):
    def gone(*_):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    load_by(gone, monkeypatch)
    with pytest.raises(BrokenPipeError):
        main(["digits", "--out", str(tmp_path)])
