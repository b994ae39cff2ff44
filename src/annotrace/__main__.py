"""The command line as a program: the script `annotrace`, and `python -m annotrace`."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading

from annotrace.errors import INTERRUPTED, TERMINATED

NEW_OBJECTS = 50_000
"""Objects that are created before Python looks for cycles among them; 700 by default."""


def run() -> None:
    """Run the command line; Ctrl-C and SIGTERM end it in one line, also while it is imported."""
    # While torch is imported, Python looks for cycles 370 times: a seventh of the time.
    gc.set_threshold(NEW_OBJECTS)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(TERMINATED))
    try:
        from annotrace.cli.main import main

        main(prog_name="annotrace")
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        _exit(INTERRUPTED)
    except SystemExit as stop:
        if stop.code in (INTERRUPTED, TERMINATED):
            _exit(stop.code)
        if threading.active_count() == 1 and isinstance(stop.code, int):
            # To take the modules of torch apart takes a third of a second.
            atexit._run_exitfuncs()
            _exit(stop.code)
        raise


def _exit(code: int) -> None:
    """Exit without what Python does at the end.

    It forgets the exit code and ends with SIGINT if the interrupt came while it executed a string,
    as it does to define dataclasses when modules are imported.
    """
    for stream in (sys.stdout, sys.stderr):
        # A stream that the caller has closed is None.
        if stream is not None:
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
