"""An evaluation of judges as a folder of csv files, judges.json and confusion.npz."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from annotrace.atomic import atomic_write
from annotrace.labels.writing import write_confusion, write_csv
from annotrace.run_folder import locked

if TYPE_CHECKING:
    from annotrace.judges.result import JudgePanel

REPORT, DESCRIPTION, MATRICES = "judges.html", "judges.json", "confusion.npz"
TABLES = (
    *("judges", "rates", "panels", "prevalence", "people"),
    *("replacement", "periods", "drift", "models"),
)
FILES = (*(f"{name}.csv" for name in TABLES), MATRICES, DESCRIPTION, REPORT)


def save_panel(panel: JudgePanel, folder: Path, *, raw: bool = False) -> None:
    """Write the files of an evaluation; other writers are kept out."""
    with locked(folder):
        write_panel(panel, folder, raw=raw)


def write_panel(panel: JudgePanel, folder: Path, *, raw: bool = False) -> None:
    """Write the files of an evaluation to a locked folder, and remove those of an earlier one.

    Each file is written whole. judges.json comes last: without it the folder is not complete.
    """
    frames = panel.frames()
    description = json.dumps(panel.as_dict(), indent=1, ensure_ascii=False, default=str)
    (folder / DESCRIPTION).unlink(missing_ok=True)
    for name in FILES:
        if name.removesuffix(".csv") not in frames:
            (folder / name).unlink(missing_ok=True)
    for name, frame in frames.items():
        write_csv(frame, folder / f"{name}.csv", raw=raw)
    if panel.n_gold:
        write_confusion(folder, panel.table, panel.counts)
    with atomic_write(folder / DESCRIPTION) as file:
        file.write(description.encode())
