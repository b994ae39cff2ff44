"""Tables of how far results can be trusted: calibration, verdicts, flags, gold."""

from __future__ import annotations

from collections.abc import Sequence

from result_rows import Run, only, read_runs

from annotrace.experiments import tables


def confidence_table() -> str:
    """Return the calibration error by correlation, from `benchmarks/confidence.py`."""
    runs = read_runs("confidence")
    correlations = [each for each in runs[0]["errors"] if each != "0.6"]
    rows = []
    for method in dict.fromkeys(run["method"] for run in runs):
        errors = [run["errors"] for run in only(runs, method=method)]
        means = [
            sum(own[each] for own in errors) / len(errors) for each in correlations
        ]
        cells = [f"{value:.3f}".removeprefix("0") for value in means]
        rows.append([f"`{method}`", *cells])
    headers = ["method", *(each.removeprefix("0") or "0" for each in correlations)]
    return tables.markdown(headers, rows)


def diagnosis_table() -> str:
    """Count verdicts by kind of crowd, from `benchmarks/diagnosis.py`."""
    runs, verdicts = read_runs("diagnosis"), ("identified", "weak", "not identified")
    rows = [
        [crowd, *(str(len(only(runs, crowd=crowd, verdict=v))) for v in verdicts)]
        for crowd in dict.fromkeys(run["crowd"] for run in runs)
    ]
    return tables.markdown(["crowd", *verdicts], rows)


def flags_table() -> str:
    """Count flagged annotators by kind of crowd, from `benchmarks/flags.py`."""
    runs, counted = read_runs("flags"), ("flagged", "of", "wrongly")
    kinds = {run["crowd"]: only(runs, crowd=run["crowd"]) for run in runs}
    rows = [
        [kind, str(len(own)), *(str(sum(run[name] for run in own)) for name in counted)]
        for kind, own in kinds.items()
    ]
    return tables.markdown(
        ["crowds", "number", "flagged", "of", "wrongly flagged"], rows
    )


def intervals_table() -> str:
    """Average the coverage of intervals, from `benchmarks/skill_intervals.py`."""
    runs = read_runs("skill_intervals")
    kinds = {run["crowd"]: only(runs, crowd=run["crowd"]) for run in runs}
    kinds["all"] = runs
    rows = [
        [
            kind,
            *(f"{value:.3f}".removeprefix("0") for value in _coverage(own)),
        ]
        for kind, own in kinds.items()
    ]
    few = "fewer than 30 labels"
    headers = ["crowds", "covered", few, "cells", "width", f"width, {few}"]
    return tables.markdown(headers, rows)


def _coverage(runs: Sequence[Run]) -> list[float]:
    def total(name: str) -> float:
        return float(sum(run[name] for run in runs))

    return [
        total("covered") / total("annotators"),
        total("covered_few") / total("annotators_few"),
        *(total(name) / len(runs) for name in ("cells_covered", "width", "width_few")),
    ]


GOLD = {
    "default": "default",
    "without_gold": "without gold",
    "dawid_skene": "`dawid-skene`",
    "best_judge": "best judge on gold",
    "with_text": "with text",
    "covered": "covered",
    "width": "width",
    "width_gold_alone": "width, gold alone",
}


def gold_table() -> str:
    """Return what gold items give, from `benchmarks/gold.py`."""
    rows = [
        [run["panel"], str(run["n_gold"])]
        + [f"{run[name]:.3f}".removeprefix("0") for name in GOLD]
        for run in read_runs("gold")
    ]
    return tables.markdown(["panel", "gold items", *GOLD.values()], rows)
