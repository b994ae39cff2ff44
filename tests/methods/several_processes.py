"""Starts several processes of one run as torchrun does, on this machine, and never waits for long.

As a program it imports the library once. For each line of standard input, a `Call` in JSON, it
forks into processes that each call a function of a file, and prints a line when all have ended.
"""

import atexit
import json
import os
import select
import subprocess
import sys
import traceback
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

import torch.distributed as dist

# Seconds that all processes of a call may take.
LIMIT = 90
# Seconds for which processes wait for the first one to write or to print; all are on one machine.
PATIENCE = 0.5


class Ended(NamedTuple):
    """How a process ended: with a negative code if a signal has killed it."""

    code: int
    output: str
    errors: str


class Call(NamedTuple):
    """What several processes do: a function of a file, in a folder, with variables."""

    n_processes: int
    folder: str
    variables: dict[str, str]
    file: str
    function: str
    arguments: list[str]


class Launcher:
    """A process that has imported the library, and forks for each call."""

    _running = None

    def __init__(self):
        # A session of its own, so that it and all its children can be killed at once.
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        atexit.register(self.kill)

    @classmethod
    def running(cls):
        """Return the launcher of this test process, and start it if there is none."""
        if cls._running is None or cls._running._process.poll() is not None:
            cls._running = cls()
        return cls._running

    def call(self, call):
        """Let several processes make a call, and kill them if they take too long."""
        self._process.stdin.write(json.dumps(call).encode() + b"\n")
        self._process.stdin.flush()
        ended, _, _ = select.select([self._process.stdout], [], [], LIMIT)
        if not ended or not self._process.stdout.readline():
            self.kill()

    def kill(self):
        """End the launcher and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


def call_in_all(n_processes, function, folder, *arguments):
    """Call a function of a test file in several processes at once; return how each has ended.

    The store through which they meet is in this process, as that of torchrun is in its agent.
    """
    for path in (path for rank in range(n_processes) for path in _files(Path(folder), rank)):
        path.unlink(missing_ok=True)
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
    call = Call(
        n_processes, str(folder), shared, file, function.__name__, list(map(str, arguments))
    )
    Launcher.running().call(call)
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


def _serve():
    import annotrace.aggregation
    import annotrace.methods  # noqa: F401 - so that the processes need not

    for line in sys.stdin:
        call = Call(*json.loads(line))
        children = {}
        for rank in range(call.n_processes):
            child = os.fork()
            if child == 0:
                _make(call, rank)
            children[child] = rank
        for _ in children:
            child, status = os.wait()
            code, *_ = _files(Path(call.folder), children[child])
            code.write_text(str(os.waitstatus_to_exitcode(status)))
        print(flush=True)


def _make(call, rank):
    """Make a call as all that this process does."""
    from annotrace import election

    election.PATIENCE = PATIENCE
    os.environ |= call.variables | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    os.chdir(call.folder)
    for number, path in enumerate(_files(Path(), rank)[1:], start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    code = 1
    try:
        spec = spec_from_file_location("called", call.file)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        getattr(module, call.function)(*call.arguments)
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
    _serve()
