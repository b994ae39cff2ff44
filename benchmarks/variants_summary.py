"""Means and ranks over the rows of `benchmarks/variants.py`.

Whatever is compared is compared on the same runs. A method that lacks runs, or failed in some, has
no rank, and its mean stands beside that of `auto` on the very runs that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from leave_one_out import choose_leaving_one_out
from scipy.stats import rankdata
from variants_crowds import SETS
from variants_labels import VARIANTS
from variants_rows import Cell, Job, Row, job_of

from annotrace.experiments.tables import markdown

AUTO = "auto"
MEASURES = {"accuracy": "classifier", "posterior_accuracy": "posterior"}


class Runs:
    """The rows of several runs by cell and method.

    Parameters
    ----------
    rows : iterable of dict
    cells : sequence of Cell, optional
        The cells that every method should have; by default those of which there are any rows.

    Attributes
    ----------
    methods : list of str
    cells : list of Cell
    """

    def __init__(self, rows: Iterable[Row], cells: Sequence[Cell] | None = None) -> None:
        self.rows = {job_of(row): row for row in rows}
        self.methods = list(dict.fromkeys(job.method for job in self.rows))
        found = {job.cell for job in self.rows} if cells is None else cells
        self.cells = sorted(found, key=_place)

    def only(self, methods: Iterable[str]) -> Runs:
        """Return the runs of some methods, on the same cells."""
        chosen = set(methods)
        rows = [row for job, row in self.rows.items() if job.method in chosen]
        return Runs(rows, self.cells)

    def row(self, cell: Cell, method: str) -> Row | None:
        """Return the row of a run that did not fail, None without one."""
        row = self.rows.get(Job(cell, method))
        return None if row is None or "error" in row else row

    def done(self, method: str) -> list[Cell]:
        """Return the cells on which a method ran and did not fail."""
        return [cell for cell in self.cells if self.row(cell, method) is not None]

    def missing(self, method: str) -> list[Cell]:
        """Return the cells on which a method has not been run."""
        return [cell for cell in self.cells if Job(cell, method) not in self.rows]

    def complete(self) -> list[str]:
        """Return the methods that ran on every cell without failing."""
        return [method for method in self.methods if len(self.done(method)) == len(self.cells)]

    def failed(self) -> list[Row]:
        """Return the rows of runs that failed."""
        return [row for row in self.rows.values() if "error" in row]

    def mean(self, method: str, cells: Iterable[Cell], measure: str = "accuracy") -> float | None:
        """Return the mean of a measure over cells, None if a cell lacks it or there are none."""
        rows = [self.row(cell, method) for cell in cells]
        values = [None if row is None else row.get(measure) for row in rows]
        return None if not values or None in values else float(np.mean(values))


def _place(cell: Cell) -> tuple[int, int, int]:
    return [*SETS].index(cell.set), VARIANTS.index(cell.variant), cell.seed


class Standing(NamedTuple):
    """How a method does over all cells on which it ran.

    Attributes
    ----------
    n_done, n_failed, n_missing : int
    accuracy, posterior : float or None
        Means over the runs that are done.
    auto : float or None
        The accuracy of `auto` on the same runs, if it has them all.
    rank : float or None
        Mean over sets and variants, if no run failed or is missing.
    """

    method: str
    n_done: int
    n_failed: int
    n_missing: int
    accuracy: float | None
    posterior: float | None
    auto: float | None
    rank: float | None


def groups(cells: Iterable[Cell]) -> dict[tuple[str, str], list[Cell]]:
    """Return the cells of each set and variant, which differ by seed."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.set, cell.variant), []).append(cell)
    return found


def mean_ranks(runs: Runs) -> dict[str, float]:
    """Return the mean rank of complete methods over sets and variants; 1 is the best.

    In each set and variant methods are ranked by their mean accuracy over seeds; equally good ones
    share the mean of their ranks.
    """
    methods = runs.complete()
    means = [
        [runs.mean(method, cells) for method in methods] for cells in groups(runs.cells).values()
    ]
    if not methods or not means:
        return {}
    ranks = rankdata(-np.array(means, dtype=float).round(6), axis=1).mean(axis=0)
    return dict(zip(methods, ranks.tolist(), strict=True))


def standings(runs: Runs) -> list[Standing]:
    """Return how each method does, the best rank first and methods without a rank last."""
    ranks, found = mean_ranks(runs), []
    for method in runs.methods:
        done, n_missing = runs.done(method), len(runs.missing(method))
        found.append(
            Standing(
                method,
                len(done),
                len(runs.cells) - len(done) - n_missing,
                n_missing,
                *(runs.mean(method, done, measure) for measure in MEASURES),
                runs.mean(AUTO, done),
                ranks.get(method),
            )
        )
    return sorted(found, key=lambda each: (each.rank or np.inf, -(each.accuracy or 0)))


def describe_missing(runs: Runs) -> list[str]:
    """Return in words which runs are missing, one line per method and set."""
    lines = []
    for method in runs.methods:
        missing, expected = groups(runs.missing(method)), groups(runs.cells)
        for name in dict.fromkeys(name for name, _ in missing):
            own = {key: cells for key, cells in missing.items() if key[0] == name}
            of_set = sum(len(cells) for key, cells in expected.items() if key[0] == name)
            n_missing = sum(map(len, own.values()))
            which = "all" if n_missing == of_set else f"{n_missing} of {of_set}: {_listed(own)}"
            lines.append(f"{method} on {name}, {which}")
    return lines


def _listed(missing: dict[tuple[str, str], list[Cell]]) -> str:
    parts = [
        f"{variant} ({', '.join(str(cell.seed) for cell in cells)})"
        for (_, variant), cells in missing.items()
    ]
    return ", ".join(parts)


def show_summary(runs: Runs) -> None:
    """Print tables by set, one of all sets, and which runs failed or are missing."""
    for name in dict.fromkeys(cell.set for cell in runs.cells):
        for measure, title in MEASURES.items():
            print(f"\n{name}, accuracy of the {title}\n\n{set_table(runs, name, measure)}")
    print(f"\n{overall_title(runs)}\n\n{overall_table(runs)}")
    for row in runs.failed():
        print(
            f"\nFailed: {row['method']}, {row['set']} {row['variant']}, seed {row['seed']}: "
            f"{row['error']}"
        )
    if missing := describe_missing(runs):
        print("\nMissing runs:", *missing, sep="\n  ")


def overall_title(runs: Runs) -> str:
    """Return over what the overall means are."""
    sets = dict.fromkeys(cell.set for cell in runs.cells)
    seeds = ", ".join(str(seed) for seed in sorted({cell.seed for cell in runs.cells}))
    words = f"{len(groups(runs.cells))} variants of {len(sets)} sets ({', '.join(sets)})"
    return f"Means over {words}, seeds {seeds}"


def overall_table(runs: Runs) -> str:
    """Return mean rank and accuracies of all methods in Markdown."""
    lines = [
        [
            f"`{each.method}`",
            "" if each.rank is None else f"{each.rank:.2f}",
            digits(each.accuracy),
            digits(each.posterior),
            digits(each.auto),
            f"{each.n_done}" + (f", {each.n_failed} failed" if each.n_failed else ""),
        ]
        for each in standings(runs)
    ]
    headers = ["method", "mean rank", *MEASURES.values(), f"`{AUTO}` on the same runs", "runs"]
    return markdown(headers, lines)


def set_table(runs: Runs, name: str, measure: str) -> str:
    """Return the means over seeds on each variant of a set in Markdown.

    A mean over fewer seeds than the set has is followed by their number.
    """
    variants = {v: cells for (s, v), cells in groups(runs.cells).items() if s == name}
    lines = [
        [f"`{method}`", *(_seeds_cell(runs, method, cells, measure) for cells in variants.values())]
        for method in runs.methods
    ]
    return markdown(["method", *variants], [line for line in lines if any(line[1:])])


def _seeds_cell(runs: Runs, method: str, cells: list[Cell], measure: str) -> str:
    done = [cell for cell in cells if runs.row(cell, method) is not None]
    value = digits(runs.mean(method, done, measure))
    return f"{value} ({len(done)})" if value and len(done) < len(cells) else value


def show_left_out(runs: Runs) -> None:
    """Print which complete method would be chosen for each set from all others."""
    methods, sets = runs.complete(), list(dict.fromkeys(cell.set for cell in runs.cells))

    def score(method: str, name: str) -> float:
        found = runs.mean(method, [cell for cell in runs.cells if cell.set == name])
        assert found is not None
        return found

    if len(sets) < 2 or not methods:
        print("\nTo leave one set out takes two sets and a method that ran on both.")
        return
    lines = [
        [left.family, left.chosen, digits(left.score), digits(left.best)]
        for left in choose_leaving_one_out(methods, sets, score)
    ]
    print("\nChosen without the set, of the methods that ran on every cell\n")
    print(markdown(["left out", "chosen", "accuracy", "best"], lines, left=2))


def best_methods(runs: Runs, number: int, accept: Callable[[str], bool]) -> list[str]:
    """Return the most accurate of the complete methods that are accepted."""
    accepted = [each for each in standings(runs) if each.rank is not None and accept(each.method)]
    ordered = sorted(accepted, key=lambda each: -(each.accuracy or 0))
    return [each.method for each in ordered[:number]]


def digits(value: float | None) -> str:
    """Return a share without the zero before the point, "" for None."""
    return "" if value is None else f"{value:.3f}".replace("0.", ".", 1)
