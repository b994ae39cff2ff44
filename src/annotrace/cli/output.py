"""What commands print and write: tables, warnings, and checks of the places to write to."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.run_folder import REPORT, RUN_FILES, locked, replace_run

if TYPE_CHECKING:
    from annotrace.aggregation import Aggregation
    from annotrace.distributed import Processes
    from annotrace.labels import LabelTable
    from annotrace.methods import CrowdEstimator

MAX_ROWS = 20


def check_folder(folder: Path, files: Iterable[str], overwrite: bool) -> None:
    """Raise a `RunError` if files cannot be written to a folder, or would be overwritten."""
    from annotrace.errors import RunError
    from annotrace.labels.writing import check_writable

    check_writable(folder)
    present = [name for name in files if (folder / name).exists()]
    if present and not overwrite:
        raise RunError(
            f"{folder} already has {', '.join(present)}; choose another folder with --out, or add "
            "--overwrite."
        )


def check_file(path: Path, overwrite: bool) -> None:
    """Raise a `RunError` if a file cannot be written, or would be overwritten."""
    from annotrace.errors import RunError

    if path.is_dir():
        raise RunError(f"{path} is a folder; --out must be a file.")
    if not path.parent.is_dir():
        raise RunError(f"{path}: there is no folder {str(path.parent)!r}. Create it first.")
    if path.exists() and not overwrite:
        raise RunError(f"{path} already exists; choose another --out, or add --overwrite.")


@contextmanager
def new_run(
    folder: Path,
    overwrite: bool,
    files: Iterable[str] = RUN_FILES,
    processes: Processes | None = None,
) -> Iterator[None]:
    """Keep other writers out of a folder, and check that no file is overwritten by mistake.

    Of several processes of one run only the first writes.
    """
    from annotrace.labels.writing import check_writable

    if processes is not None and not processes.is_first:
        yield
        return
    check_writable(folder)
    with locked(folder):
        check_folder(folder, files, overwrite)
        yield


def save_with_report(
    model: CrowdEstimator | Aggregation, folder: Path, wanted: bool, *, raw: bool, **options: Any
) -> str:
    """Replace the run in a locked folder, and return a sentence about its report, if wanted."""
    from annotrace.aggregation.saving import write_run
    from annotrace.report import write_report

    with replace_run(folder) as staging:
        write_run(model, staging, raw=raw)
        if wanted:
            write_report(model, staging / REPORT, **options)
    return f"Open {folder / REPORT} in a browser for the report." if wanted else ""


@contextmanager
def echo_warnings(parameter: str) -> Iterator[None]:
    """Print the warnings of a block, one per line, with a parameter's name as an option."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        yield
    option = "--" + parameter.replace("_", "-")
    for warning in raised:
        message = str(warning.message).replace(f"`{parameter}`", option)
        click.echo(f"Warning: {message}", err=True)


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], title: str) -> None:
    """Print a table: with rules on a terminal, as plain columns in a pipe or file."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        # rich assumes that a pipe is 80 columns wide, and would cut names.
        console = Console(highlight=False, width=1000)
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for place, header in enumerate(headers):
        numeric = any(isinstance(row[place], int | float) for row in rows)
        table.add_column(Text(header), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(_as_text(value)) for value in row))
    console.print()
    console.print(Text(title, style="bold"))
    console.print(table)


def print_result(model: CrowdEstimator | Aggregation) -> None:
    """Print the annotators of a fitted model, its accuracy if truth is known, and its diagnosis."""
    from annotrace.diagnosis.known_truth import find_contradiction

    print_annotators(model.annotators_)
    _print_accuracy(model)
    _print_candidates(model)
    if not model.result_.models_annotators:
        return
    click.echo(f"\n{model.diagnosis_}")
    contradiction = find_contradiction(model.result_)
    if contradiction is not None:
        click.echo(f"\n{contradiction}\n  - {contradiction.advice}")


def print_annotators(frame: Any) -> None:
    """Print a frame of annotators by skill, or by labels; the first and the last if many.

    The interval of the accuracy is left out: a terminal is narrow.
    """
    by = "skill" if "skill" in frame.columns else "n_labels"
    frame = frame.drop("accuracy_low", "accuracy_high", strict=False)
    rows = frame.sort(by, descending=True, maintain_order=True).rows()
    title = f"Annotators by {'skill' if by == 'skill' else 'number of labels'}"
    if len(rows) > MAX_ROWS:
        half = MAX_ROWS // 2
        rows = [*rows[:half], ("...",) * len(frame.columns), *rows[-half:]]
        title += f" (the first and last {half} of {len(frame):,}; all are in annotators.csv)"
    headers = ["labels" if name == "n_labels" else name for name in frame.columns]
    print_table(headers, rows, title)


def _print_accuracy(model: CrowdEstimator | Aggregation) -> None:
    """Print the accuracy of a model and of majority vote, except on items learned from."""
    import numpy as np

    from annotrace.aggregation import MajorityVote
    from annotrace.diagnosis import balanced_accuracy
    from annotrace.diagnosis.known_truth import scoring_truth
    from annotrace.seeds import seed_of

    result, table = model.result_, model.result_.table
    if table.truth is None:
        return
    truth = scoring_truth(result)
    known = truth >= 0
    if not known.any():
        click.echo("\nNo accuracy: all items of known truth were used for training.")
        return
    vote = MajorityVote(random_state=seed_of(model.random_state)).fit(table).result_
    rows = [
        (
            name,
            float(np.mean(estimate[known] == truth[known])),
            balanced_accuracy(estimate, truth, table.n_classes),
        )
        for name, estimate in ((model.method, result.estimate), ("majority vote", vote.estimate))
    ]
    n_gold = int(np.sum(result.gold >= 0))
    left_out = f" (without {n_gold:,} gold items)" if n_gold else ""
    title = f"Accuracy on {known.sum():,} items of known truth{left_out}"
    print_table(["", "accuracy", "balanced"], rows, title)
    _print_classes(table, result.estimate, truth)


def _print_candidates(model: CrowdEstimator | Aggregation) -> None:
    """Print what gold items have chosen, if they have."""
    candidates = getattr(model, "gold_candidates_", [])
    if not candidates:
        return
    rows = [(c["name"], c["accuracy"], c["log_loss"], c["weight"]) for c in candidates]
    n_gold = int((model.result_.gold >= 0).sum())
    title = f"Chosen by {n_gold:,} gold items, each predicted from the others"
    print_table(["", "accuracy", "log-loss", "weight"], rows, title)


def _print_classes(table: LabelTable, estimate: Any, truth: Any) -> None:
    from annotrace.diagnosis import per_class

    if table.n_classes > MAX_ROWS:
        return
    found = per_class(estimate, truth, table.n_classes)
    names = [str(name) for name in table.classes.tolist()]
    figures = (found.n_items.tolist(), *(part.tolist() for part in found[:2]))
    rows = list(zip(names, *figures, strict=True))
    print_table(["class", "items", "recall", "precision"], rows, "By class")


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
