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
    "gain, in points",
    "smallest",
)


def regional_table(runs: Sequence[dict[str, Any]]) -> str:
    """Return the mean accuracy of the posterior with and without dependence."""
    header = [f"| {' | '.join(COLUMNS)} |", "|---|---|---" + "|---:" * 5 + "|"]
    rows = [
        _row([FAMILIES[family], name, KINDS[kind]], some)
        for family in FAMILIES
        for name, is_one in (("2 to 5", False), ("1", True))
        for kind in KINDS
        if (
            some := [
                run
                for run in runs
                if run["family"] == family
                and run["kind"] == kind
                and (run["labels_per_item"] == 1) == is_one
            ]
        )
    ]
    return "\n".join([*header, *rows])


def _row(names: list[str], runs: list[dict[str, Any]]) -> str:
    plain, own = (
        np.array([run[method]["accuracy"] for run in runs])
        for method in ("crossfit", "item-dependent")
    )
    gain = 100 * (own - plain)
    numbers = [f"{value:.3f}".lstrip("0") for value in (plain.mean(), own.mean())]
    cells = [
        *names,
        str(len(runs)),
        *numbers,
        *(f"{g:+.1f}" for g in (gain.mean(), gain.min())),
    ]
    return f"| {' | '.join(cells)} |"
