"""The table of annotators whose errors depend on the item, by family of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

FAMILIES = {"gaussian": "Gaussian features", "digits": "digits", "labelme": "LabelMe"}
KINDS = {"regions": "a region of each", "constant": "no region"}
COLUMNS = (
    "items",
    "labels per item",
    "annotators fail in",
    "crowds",
    "`crossfit`",
    "`item-dependent`",
    "ceiling",
    "gain, in points",
    "smallest",
)


def regional_table(runs: Sequence[dict[str, Any]]) -> str:
    """Return mean accuracies of the posterior: constant, dependent and ceiling."""
    header = [f"| {' | '.join(COLUMNS)} |", "|---|---|---" + "|---:" * 6 + "|"]
    rows = [
        _row([FAMILIES[family], name, KINDS[kind]], some)
        for family in FAMILIES
        for name, is_one in (("2 to 5", False), ("1", True))
        for kind in KINDS
        if (some := [run for run in runs if _is(run, family, kind, is_one)])
    ]
    rows += [
        _row(["all", "all", KINDS[kind]], some)
        for kind in KINDS
        if (some := [run for run in runs if run["kind"] == kind])
    ]
    return "\n".join([*header, *rows])


def _is(run: dict[str, Any], family: str, kind: str, is_one: bool) -> bool:
    """Whether a run is of a family and kind, with one label per item or several."""
    one = run["labels_per_item"] == 1
    return run["family"] == family and run["kind"] == kind and one == is_one


def _row(names: list[str], runs: list[dict[str, Any]]) -> str:
    plain, own, ceiling = (
        np.array([run[name] for run in runs])
        for name in ("crossfit", "item-dependent", "ceiling")
    )
    gain = 100 * (own - plain)
    numbers = [f"{each.mean():.3f}".lstrip("0") for each in (plain, own, ceiling)]
    cells = [
        *names,
        str(len(runs)),
        *numbers,
        *(f"{g:+.1f}" for g in (gain.mean(), gain.min())),
    ]
    return f"| {' | '.join(cells)} |"
