"""Watching a project: fit again when enough is new, and survive restarts of the server."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any, NamedTuple

from annotrace.connect.tool import LabellingTool, Pulled
from annotrace.errors import ConnectError, InputError

# Seconds until the next attempt after a failure, doubled each time.
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0


class Pace(NamedTuple):
    """When to look, and when to fit: seconds between looks, and changes that are enough."""

    interval: float
    min_new: int


class Watch:
    """Looks at a project again and again.

    An error that may pass, such as a server that restarts, is reported once, and the round is
    repeated: every step of it can be. Answers that are wrong, such as two true classes of an item,
    are reported, and the next change is awaited.

    Parameters
    ----------
    tool : LabellingTool
    refit : callable
        Fits to what was pulled and writes everything; returns what it has fitted to, which
        includes its own changes to the project.
    pace : Pace
    say : callable
        Prints one line.
    wake : Event
        Set to look at once.
    """

    def __init__(
        self,
        tool: LabellingTool,
        refit: Callable[[Pulled], Pulled],
        pace: Pace,
        say: Callable[[str], Any],
        wake: Event,
    ) -> None:
        self._tool, self._refit, self._pace = tool, refit, pace
        self._say, self._wake = say, wake
        self._fitted: Pulled | None = None
        self._marker: Any = None
        self._wait: float | None = None

    def run(self) -> None:
        """Watch until an error that does not pass, or an interrupt."""
        while True:
            self._wake.clear()
            self.look()
            self._wake.wait(self._wait or self._pace.interval)

    def look(self) -> None:
        """Look once, and fit if enough is new."""
        try:
            # Read before the answers: those that come meanwhile are seen the next time.
            marker = self._tool.marker()
            if marker != self._marker:
                self._take(marker)
            if self._wait is not None:
                self._say("The server answers again.")
            self._wait = None
        except ConnectError as error:
            if not error.is_temporary:
                raise
            if self._wait is None:
                self._say(f"{error} Trying again until it answers.")
            self._wait = min(2 * self._wait, LONGEST_WAIT) if self._wait else FIRST_WAIT

    def _take(self, marker: Any) -> None:
        try:
            pulled = self._tool.pull()
            if self._fitted is None or pulled.n_changes(self._fitted) >= self._pace.min_new:
                self._fitted = self._refit(pulled)
        except InputError as error:
            self._say(f"{error} Waiting for a change.")
        self._marker = marker
