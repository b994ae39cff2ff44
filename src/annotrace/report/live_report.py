"""The report of a run as it is now, while other commands write to its folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from annotrace.errors import AnnotraceError, RunError, describe_os_error
from annotrace.run_folder import DESCRIPTION, REPORT, run_file, run_state


class Shown(NamedTuple):
    """A report, and what it is about in a few words.

    Attributes
    ----------
    version : str
        Changes whenever the page does.
    page : bytes
        HTML in UTF-8.
    counts : dict
        The numbers of items, annotators, labels and classes.
    verdict : str or None
        As in `Diagnosis.verdict`; None if nothing is diagnosed.
    """

    version: str
    page: bytes
    counts: dict[str, int]
    verdict: str | None


class LiveReport:
    """The report of a run, read again only if the run has changed.

    Parameters
    ----------
    run : Path
        The folder of the run. It must have a run when this is created; later the last report stays
        while there is none.
    anonymous : bool
        Show numbers instead of the names of annotators. The page is then made from the run, without
        pictures and texts; otherwise it is the report in the folder, if there is one.
    """

    def __init__(self, run: Path, *, anonymous: bool = False) -> None:
        self.run, self.anonymous = run, anonymous
        self._lock = Lock()
        self._state = run_state(run)
        self._shown, self._problem = self._read(), ""

    def current(self) -> tuple[Shown, str]:
        """Return the last report that could be read, and why there is no newer one ("")."""
        with self._lock:
            state = run_state(self.run)
            if state != self._state:
                self._update()
                self._state = state
            return self._shown, self._problem

    def _update(self) -> None:
        try:
            self._shown, self._problem = self._read(), ""
        except AnnotraceError as error:
            self._problem = str(error)
        except OSError as error:
            self._problem = describe_os_error(error)

    def _read(self) -> Shown:
        counts, verdict = _read_summary(self.run)
        page = self._read_page()
        return Shown(hashlib.sha256(page).hexdigest()[:16], page, counts, verdict)

    def _read_page(self) -> bytes:
        stored = run_file(self.run, REPORT)
        if stored.is_file() and not self.anonymous:
            return stored.read_bytes()
        from annotrace.methods import load
        from annotrace.report.page import render
        from annotrace.report.view import view_of

        model = load(self.run, device="cpu")
        return render(view_of(model, anonymous=self.anonymous)).encode("utf-8")


def _read_summary(run: Path) -> tuple[dict[str, int], str | None]:
    """Return the counts and the verdict in run.json."""
    path = run_file(run, DESCRIPTION)
    if not path.is_file():
        raise RunError(
            f"{run}: no run here, there is no {DESCRIPTION} in it. Give the folder that `annotrace "
            "fit` or `annotrace aggregate` wrote."
        )
    try:
        described: Any = json.loads(path.read_text(encoding="utf-8"))
        counts = {name: int(number) for name, number in described["counts"].items()}
        diagnosis = described.get("diagnosis")
        return counts, None if diagnosis is None else str(diagnosis["verdict"])
    except (ValueError, TypeError, KeyError, AttributeError):
        raise RunError(f"{path} is damaged. Fit again.") from None
