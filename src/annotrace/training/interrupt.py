"""Ctrl-C during a training."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupt:
    """Whether the user pressed Ctrl-C."""

    def __init__(self) -> None:
        self.requested = False
        self.raises = False

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Let Ctrl-C raise KeyboardInterrupt in a block that changes nothing and may be long."""
        self.raises = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self.raises = False


@contextlib.contextmanager
def graceful_interrupt(*, patient: bool = False) -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a request, which the training loop checks between batches.

    The second Ctrl-C raises KeyboardInterrupt. Outside the main thread, where Python cannot handle
    signals, this does nothing.

    Parameters
    ----------
    patient : bool
        Treat every further Ctrl-C like the first: torchrun sends its processes SIGTERM after a
        Ctrl-C, and SIGKILL if they have not ended after 30 seconds.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def request(number: int, frame: FrameType | None) -> None:
        interrupt.requested = True
        if not patient:
            signal.signal(signal.SIGINT, previous)
        if interrupt.raises:
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, request)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, previous)
