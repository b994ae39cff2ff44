"""Means over the rows of `benchmarks/zoo.py`, the bars of the default, and choice by family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from leave_one_out import choose_leaving_one_out
from zoo_real import ELEVEN, PANELS

from annotrace.experiments.tables import markdown

DEFAULT, MAJORITY, REAL = "default", "majority", "real"
IMBALANCE = "imbalance"
BARRED = (*ELEVEN, "web_relevance", "facts", *PANELS)
"""Real crowds over which the default must be first in the mean."""
LEAST = {
    "the eleven": (ELEVEN, 0.876),
    "web": (["web_relevance"], 0.83),
    "facts": (["facts"], 0.899),
}
"""Groups of real crowds and the least mean accuracy of the default."""
SHORTFALL, ERRORS = 0.02, 2
"""Largest shortfall against the best simple method: an accuracy plus paired standard errors."""
FAMILY_SHORTFALL = 0.01
"""Largest shortfall against majority vote in the mean of a family."""
NEAR_ORACLE, CALIBRATED = 0.03, 0.07
"""Largest shortfall against the oracle, and calibration error, where "identified" is right."""

Row = dict[str, Any]


def mean(rows: Iterable[Row], method: str, measure: str = "accuracy") -> float:
    """Return the mean of one measure of a method over crowds, NaN without crowds."""
    values = [row[measure][method] for row in rows]
    return float(np.mean(values)) if values else float("nan")


def by_family(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each simulated family."""
    families: dict[str, list[Row]] = {}
    for row in rows:
        if row["family"] != REAL:
            families.setdefault(row["family"], []).append(row)
    return families


def measures(family: str) -> tuple[str, ...]:
    """Return what counts for a family; accuracy hides whether a rare class is found."""
    return ("accuracy", "balanced_accuracy") if family == IMBALANCE else ("accuracy",)


def show_summary(rows: Sequence[Row]) -> None:
    """Print tables of the real crowds and of the simulated families."""
    real = [row for row in rows if row["family"] == REAL]
    if real:
        show_real(real)
    if len(real) < len(rows):
        show_families(by_family(rows))
        show_verdicts([row for row in rows if row["family"] != REAL])


def show_real(rows: Sequence[Row]) -> None:
    """Print accuracies on real crowds, and how far the default is from the best simple method."""
    methods = list(rows[0]["accuracy"])
    lines = [
        [
            row["crowd"],
            *(_digits(row["accuracy"][method]) for method in methods),
            row["best_simple"],
            f"{100 * row['difference']:+.1f} ({100 * row['difference_se']:.1f})",
            _digits(row["calibration_error"]),
            _digits(row["error_correlation"], 2),
            row["verdict"],
        ]
        for row in rows
    ]
    barred = [row for row in rows if row["crowd"] in BARRED]
    for name, own in ((f"mean of {len(barred)}", barred), (f"mean of {len(rows)}", rows)):
        lines.append([name, *(_digits(mean(own, method)) for method in methods), *[""] * 5])
    measured = ("best simple", "default - best (s.e.)", "ECE", "correlation", "verdict")
    print(markdown(["real crowd", *methods, *measured], lines))
    worst = min(rows, key=lambda row: row["difference"])
    errors = min(rows, key=_in_errors)
    print(
        f"\nworst shortfall: {-100 * worst['difference']:.1f} points ({worst['crowd']}), "
        f"{-_in_errors(errors):.1f} paired standard errors ({errors['crowd']})\n"
    )


def show_families(families: dict[str, list[Row]]) -> None:
    """Print the means of each simulated family."""
    methods = list(next(iter(families.values()))[0]["accuracy"])
    lines = []
    for family, rows in families.items():
        for measure in measures(family):
            means = [mean(rows, method, measure) for method in methods]
            lead = mean(rows, DEFAULT, measure) - mean(rows, MAJORITY, measure)
            name = family if measure == "accuracy" else f"{family}, balanced"
            identified = sum(row["verdict"] == "identified" for row in rows)
            error = np.mean([row["calibration_error"] for row in rows])
            cells = [f"{100 * lead:+.1f}", _digits(error), f"{identified} of {len(rows)}"]
            lines.append([name, *map(_digits, means), *cells])
    headers = ["family", *methods, "default - majority", "ECE", "identified"]
    print(markdown(headers, lines))


def show_verdicts(rows: Sequence[Row]) -> None:
    """Print how often the verdict "identified" is right, and how often easy crowds have it."""
    identified = [row for row in rows if row["verdict"] == "identified"]
    right = [
        row
        for row in identified
        if row["accuracy"]["oracle"] - row["accuracy"][DEFAULT] <= NEAR_ORACLE
        and row["calibration_error"] <= CALIBRATED
    ]
    easy = [row for row in rows if row["easy"]]
    found = sum(row["verdict"] == "identified" for row in easy)
    print(
        f'\n"identified" is right in {len(right)} of {len(identified)} simulated crowds, '
        f"and said of {found} of {len(easy)} easy ones\n"
    )


def show_left_out(rows: Sequence[Row]) -> None:
    """Print the method that would be chosen for each family, the real crowds being one."""
    families = by_family(rows) | {REAL: [row for row in rows if row["family"] == REAL]}
    families = {family: own for family, own in families.items() if own}
    methods = [method for method in rows[0]["accuracy"] if method not in (DEFAULT, "oracle")]

    def score(method: str, family: str) -> float:
        return mean(families[family], method, measures(family)[-1])

    lines = [
        [left.family, left.chosen, _digits(left.score), _digits(left.best)]
        for left in choose_leaving_one_out(methods, list(families), score)
    ]
    print(markdown(["left out", "chosen", "score", "best"], lines, left=2))


def missed_bars(rows: Sequence[Row]) -> list[str]:
    """Return in words the bars that the default misses; a crowd that was not run is a miss."""
    real = {row["crowd"]: row for row in rows if row["family"] == REAL}
    missing = [name for name in BARRED if name not in real]
    if missing:
        return [f"Real crowds that were not run: {', '.join(missing)}."]
    return [*_missed_means(real), *_missed_shortfalls(real), *_missed_families(by_family(rows))]


def _missed_means(real: dict[str, Row]) -> list[str]:
    rows = [real[name] for name in BARRED]
    best = max(rows[0]["accuracy"], key=lambda method: mean(rows, method))
    missed = []
    if mean(rows, best) > mean(rows, DEFAULT):
        missed.append(
            f"Mean of {len(rows)} real crowds: {mean(rows, DEFAULT):.4f}, "
            f"but {best} has {mean(rows, best):.4f}."
        )
    for group, (names, least) in LEAST.items():
        reached = mean([real[name] for name in names], DEFAULT)
        if reached < least:
            missed.append(f"Accuracy on {group}: {reached:.4f}, expected at least {least}.")
    return missed


def _missed_shortfalls(real: dict[str, Row]) -> list[str]:
    return [
        f"{name}: {-100 * row['difference']:.1f} points below {row['best_simple']}, with a paired "
        f"standard error of {100 * row['difference_se']:.1f}."
        for name, row in real.items()
        if -row["difference"] > SHORTFALL + ERRORS * row["difference_se"]
    ]


def _missed_families(families: dict[str, list[Row]]) -> list[str]:
    if not families:
        return ["No simulated families were run."]
    missed = []
    for family, rows in families.items():
        for measure in measures(family):
            below = mean(rows, MAJORITY, measure) - mean(rows, DEFAULT, measure)
            if below > FAMILY_SHORTFALL:
                words = measure.replace("_", " ")
                missed.append(f"{family}: {words} {100 * below:.1f} points below majority vote.")
    return missed


def _in_errors(row: Row) -> float:
    """Return the difference from the best simple method in paired standard errors."""
    return row["difference"] / row["difference_se"] if row["difference_se"] else 0.0


def _digits(value: float, places: int = 3) -> str:
    return f"{value:.{places}f}".replace("0.", ".", 1)
