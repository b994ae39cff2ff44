"""results.jsonl: one run per line. A killed process loses none of the finished runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, TypeAlias

from annotrace.errors import RunError

FILE = "results.jsonl"

Result: TypeAlias = dict[str, Any]
"""A line: the run as it was planned, its `key`, and what was measured."""


def read_results(path: Path) -> list[Result]:
    """Return every run; skip a last line that a killed process left unfinished.

    Raises
    ------
    RunError
        If any other line is damaged.
    """
    if not path.exists():
        return []
    *lines, last = path.read_bytes().split(b"\n")
    results = [(n, _parse(line)) for n, line in enumerate(lines, 1) if line.strip()]
    for number, result in results:
        if result is None:
            raise RunError(
                f"{path}, line {number}: not a run; delete the line, and the run is repeated."
            )
    return [result for _, result in [*results, (0, _parse(last))] if result is not None]


def add_result(path: Path, result: Result) -> None:
    """Append a run; it is on disk when this returns.

    Raises
    ------
    RunError
        If the line cannot be written whole; the file then has only the earlier runs.
    """
    line = json.dumps(result, allow_nan=False).encode() + b"\n"
    try:
        with path.open("a+b", buffering=0) as file:
            file.seek(0)
            content = file.read()
            end = content.rfind(b"\n") + 1
            if _parse(content[end:]) is not None:  # a run that only lacks the end of its line
                end, line = len(content), b"\n" + line
            file.truncate(end)
            try:
                while line:
                    line = line[file.write(line) :]
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(end)
                raise
    except OSError as error:
        raise RunError(
            f"{path}: {error.strerror}. The last run is not in it, all earlier ones are; the same "
            "command resumes."
        ) from None


def _parse(line: bytes) -> Result | None:
    try:
        result = json.loads(line)
    except ValueError:
        return None
    return result if isinstance(result, dict) and "key" in result else None
