"""Where commands write, and what they never write over unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]

RUN_FILES = (
    "truth.csv",
    "annotators.csv",
    "confusion.npz",
    "labels.parquet",
    "model.safetensors",
    "run.json",
    "report.html",
)


def out_options(
    metavar: str, help: str, default: str | None = None
) -> Callable[[Command], Command]:
    """Give a command --out and --overwrite."""
    # A default of None would count as one, and nothing would be asked for.
    given: dict[str, Any] = (
        {"required": True} if default is None else {"default": default, "show_default": True}
    )
    out = click.option(
        "--out", type=click.Path(path_type=Path), metavar=metavar, help=help, **given
    )
    overwrite = click.option(
        "--overwrite", is_flag=True, help="Write over what an earlier command left there."
    )
    return lambda command: out(overwrite(command))


def check_folder(folder: Path, files: Iterable[str], overwrite: bool) -> None:
    """Check that a folder can take some files, and without loss."""
    from annotrace.errors import RunError
    from annotrace.labels.writing import check_writable

    check_writable(folder)
    present = [name for name in files if (folder / name).exists()]
    if present and not overwrite:
        raise RunError(
            f"{folder} already has {', '.join(present)}; give --out another folder, or add "
            "--overwrite."
        )


def check_file(path: Path, overwrite: bool) -> None:
    """Check that a file can be written without loss."""
    from annotrace.errors import RunError

    if path.is_dir():
        raise RunError(f"{path} is a folder; give --out a file.")
    if not path.parent.is_dir():
        raise RunError(f"{path}: there is no folder {str(path.parent)!r}. Make it first.")
    if path.exists() and not overwrite:
        raise RunError(f"{path} is already there; give --out another name, or add --overwrite.")
