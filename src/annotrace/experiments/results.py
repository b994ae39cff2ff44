"""results.jsonl: a run a line, written so that a killed sweep loses none that were finished."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import BinaryIO

from annotrace.errors import RunError
from annotrace.experiments.claims import lock
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
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        return []
    with path.open("r+b") as file:
        lock(file)
        content = file.read()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            if _as_result(content[end:]) is None:
                file.truncate(end)
            else:
                file.write(b"\n")
    return read_results(path)


def add_result(path: Path, result: Result) -> None:
    """Add a line, on the disk when this returns.

    Raises
    ------
    RunError
        If it cannot be written whole; the file is then as it was.
    """
    line = json.dumps(result, allow_nan=False).encode() + b"\n"
    try:
        with path.open("ab", buffering=0) as file:
            lock(file)
            _write_whole(file, line)
    except OSError as error:
        raise RunError(
            f"{path}: {error.strerror}. The run that was done last is not in it, all others are; "
            "the same command goes on."
        ) from None


def _write_whole(file: BinaryIO, content: bytes) -> None:
    """Write all of it, where the disk may take a part and say no more than how much."""
    end = file.seek(0, os.SEEK_END)
    try:
        written = 0
        while written < len(content):
            written += file.write(content[written:])
        os.fsync(file.fileno())
    except BaseException:
        file.truncate(end)
        raise


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
