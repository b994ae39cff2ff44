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
    output = subprocess.run(
        [sys.executable, "-c", listed], check=True, capture_output=True, text=True
    )
    loaded = ast.literal_eval(output.stdout.splitlines()[-1])
    assert {"annotrace", "click"} <= loaded
    assert not loaded & {"numpy", "scipy", "pandas", "polars", "torch", "sklearn", "matplotlib"}


def test_it_is_a_module_too():
    args = [sys.executable, "-m", "annotrace", "fit"]
    output = subprocess.run(args, capture_output=True, text=True, check=False).stderr
    assert output.startswith("Usage: annotrace fit")


def test_the_version(annotrace):
    assert annotrace("--version").output == f"annotrace, version {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(annotrace, command):
    output = annotrace(command, "--help").output
    examples = output.split("Examples:\n")[1].split("\n\n")[0].splitlines()
    assert any(line.startswith(f"    annotrace {command} ") for line in [f"{e} " for e in examples])


def test_every_command_is_named_in_the_first_help(annotrace):
    output = annotrace().output
    assert all(f"\n  {command} " in output for command in COMMANDS)


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["aggregate"], 2)])
def test_a_program_ends_with_its_code_after_what_was_registered_for_the_end(
    arguments, code, thread
):
    """Also if another thread is running, which Python waits for."""
    started = "threading.Thread(target=time.sleep, args=[0.2]).start(); " if thread else ""
    script = (
        "import atexit, sys, threading, time; "
        f"{started}atexit.register(print, 'the end'); sys.argv[1:] = {arguments}; "
        "from annotrace.__main__ import run; run()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == code
    assert done.stdout.endswith("the end\n")
    assert done.stderr.startswith("Usage") == (code == 2)
