"""results.jsonl: a run a line, written so that a killed sweep loses none that were finished."""

from __future__ import annotations

import json
import os
from pathlib import Path

from annotrace.errors import RunError
from annotrace.experiments.runs import Result

FILE = "results.jsonl"


def read_results(path: Path) -> list[Result]:
    """Read every whole line; a last one that a killed process left unfinished is passed over.

    Raises
    ------
    RunError
        If any other line is damaged.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    unfinished = lines.pop()
    results = [_read_line(line, path, n) for n, line in enumerate(lines, 1) if line.strip()]
    whole = _as_result(unfinished)
    return results if whole is None else [*results, whole]


def open_results(path: Path) -> list[Result]:
    """Read the results, and mend the end of the file so that lines can be added."""
    results = read_results(path)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        return results
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        if _as_result(content[end:]) is None:
            os.truncate(path, end)
        else:
            _append(path, b"\n")
    return results


def add_result(path: Path, result: Result) -> None:
    """Add a line, on the disk when this returns."""
    _append(path, json.dumps(result, allow_nan=False).encode() + b"\n")


def _append(path: Path, content: bytes) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(content)
        os.fsync(file.fileno())


def _as_result(line: bytes) -> Result | None:
    try:
        result = json.loads(line)
    except ValueError:
        return None
    return result if isinstance(result, dict) and "key" in result else None


def _read_line(line: bytes, path: Path, number: int) -> Result:
    result = _as_result(line)
    if result is None:
        raise RunError(f"{path}, line {number}: not a run; delete the line, and it is run again.")
    return result
