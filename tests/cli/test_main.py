import ast
import subprocess
import sys

import pytest

from annotrace import __version__
from annotrace.cli.main import main

COMMANDS = sorted(main.commands)


def test_help_loads_nothing_that_is_slow_to_load():
    listed = (
        "import atexit, sys; from annotrace.cli.main import main;"
        "atexit.register(lambda: print({name.split('.')[0] for name in sys.modules}));"
        "main(['--help'])"
    )
    said = subprocess.run(
        [sys.executable, "-c", listed], check=True, capture_output=True, text=True
    )
    loaded = ast.literal_eval(said.stdout.splitlines()[-1])
    assert {"annotrace", "click"} <= loaded
    assert not loaded & {"numpy", "scipy", "pandas", "polars", "torch", "sklearn", "matplotlib"}


def test_it_is_a_module_too():
    words = [sys.executable, "-m", "annotrace", "fit"]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stderr
    assert said.startswith("Usage: annotrace fit")


def test_the_version(annotrace):
    assert annotrace("--version").output == f"annotrace, version {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(annotrace, command):
    said = annotrace(command, "--help").output
    examples = said.split("Examples:\n")[1].split("\n\n")[0].splitlines()
    assert any(line.startswith(f"    annotrace {command} ") for line in [f"{e} " for e in examples])


def test_every_command_is_named_in_the_first_help(annotrace):
    said = annotrace().output
    assert all(f"\n  {command} " in said for command in COMMANDS)


@pytest.mark.parametrize("place", ["file/sim", "/proc/sim", "file"])
@pytest.mark.parametrize(
    "words",
    [
        ("fit", "absent.csv", "--features", "absent.npz"),
        ("aggregate", "absent.csv"),
        ("demo",),
        ("simulate", "--data", "mnist"),
        ("reproduce", "mnist-em"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_first(annotrace, tmp_path, words, place):
    (tmp_path / "file").write_text("")
    result = annotrace(*words, "--out", place)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: {place} ")
    assert line.endswith("folder.")


def test_checking_a_place_leaves_nothing_there(annotrace, tmp_path):
    result = annotrace("aggregate", "absent.csv", "--out", "new/run")
    assert "absent.csv: no such file" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [("fit", "labels.csv"), ("predict", "run"), ("aggregate", "labels.csv"), ("simulate",)],
)
def test_where_to_write_must_be_said(annotrace, words):
    result = annotrace(*words)
    assert result.exit_code == 2
    assert "Missing option '--out'" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("demo", "--seed", "99999999999999999999"), "is not in the range 0<=x<=4294967295"),
        (("fit", "labels.csv", "--seed", "-1", "--out", "run"), "is not in the range 0<=x"),
        (("aggregate", "labels.csv", "--seed", "-1", "--out", "run"), "is not in the range 0<=x"),
        (("simulate", "--seed", "-1", "--out", "sim"), "is not in the range 0<=x"),
        (("fit", "a.csv", "--image-size", 100_000, "--out", "run"), "in the range 1<=x<=2048"),
    ],
)
def test_numbers_that_no_machine_takes_are_refused(annotrace, words, said):
    result = annotrace(*words)
    assert result.exit_code == 2
    assert said in result.stderr
