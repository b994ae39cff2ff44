"""Starts several processes of one run as torchrun does, on this machine, and never waits for long.

As a program it imports the library once, and forks into processes that each call a function of a
file: ``several_processes.py N FILE FUNCTION ARGUMENT...``.
"""

import os
import subprocess
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

import torch.distributed as dist

LIMIT = 240


class Ended(NamedTuple):
    """How a process ended: with a negative code if a signal has killed it."""

    code: int
    output: str
    errors: str


def call_in_all(n_processes, function, folder, *arguments):
    """Call a function of a test file in several processes at once; return how each has ended.

    The store through which they meet is in this process, as that of torchrun is in its agent.
    """
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "WORLD_SIZE": str(n_processes),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    file = sys.modules[function.__module__].__file__
    called = [__file__, str(n_processes), file, function.__name__, *arguments]
    # A session of its own, so that all of them can be killed at once.
    launcher = subprocess.Popen(
        [sys.executable, *called], env=os.environ | shared, cwd=folder, start_new_session=True
    )
    try:
        launcher.wait(LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(launcher.pid, 9)
        launcher.wait()
    return [_how_it_ended(Path(folder), rank) for rank in range(n_processes)]


def run_in_all(n_processes, command, folder):
    """Run a command of the command line in several processes at once."""
    return call_in_all(n_processes, annotrace, folder, *command.split())


def annotrace(*arguments):
    """Run a command of the command line."""
    from annotrace.cli.main import main

    main(list(arguments), prog_name="annotrace")


def _how_it_ended(folder, rank):
    code, output, errors = (
        path.read_text() if path.exists() else "" for path in _files(folder, rank)
    )
    return Ended(int(code or -9), output, errors)


def _files(folder, rank):
    return [folder / f".{rank}.{kind}" for kind in ("code", "output", "errors")]


def _fork_all(n_processes, file, name, arguments):
    import annotrace.aggregation
    import annotrace.methods  # noqa: F401 - so that the processes need not

    children = {}
    for rank in range(n_processes):
        child = os.fork()
        if child == 0:
            _call(rank, file, name, arguments)
        children[child] = rank
    for _ in range(n_processes):
        child, status = os.wait()
        code, *_ = _files(Path(), children[child])
        code.write_text(str(os.waitstatus_to_exitcode(status)))


def _call(rank, file, name, arguments):
    """Call a function of a file as all that this process does."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    for number, path in enumerate(_files(Path(), rank)[1:], start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    code = 1
    try:
        spec = spec_from_file_location("called", file)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        getattr(module, name)(*arguments)
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _fork_all(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])
