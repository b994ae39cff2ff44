"""Starts several processes of one run as torchrun does, on this machine, and never waits for long.

As a program it runs a function of a file: ``several_processes.py FILE FUNCTION ARGUMENT...``.
"""

import os
import subprocess
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from typing import NamedTuple

import torch.distributed as dist

LIMIT = 120


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    output: str
    errors: str


def start_all(n_processes, command, folder):
    """Run a python command in several processes at once; return how each has ended.

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
    children = []
    for rank in range(n_processes):
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        children.append(
            subprocess.Popen(
                [sys.executable, *command],
                env=os.environ | shared | own,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    deadline = time.monotonic() + LIMIT
    try:
        found = [child.communicate(timeout=deadline - time.monotonic()) for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    return [Ended(child.returncode, *said) for child, said in zip(children, found, strict=True)]


def call_in_all(n_processes, function, folder, *arguments):
    """Call a function of a test file in several processes at once."""
    file = sys.modules[function.__module__].__file__
    return start_all(n_processes, [__file__, file, function.__name__, *arguments], folder)


def call(file, name, *arguments):
    """Call a function of a file."""
    spec = spec_from_file_location("called", file)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    getattr(module, name)(*arguments)


if __name__ == "__main__":
    call(*sys.argv[1:])
