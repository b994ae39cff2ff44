"""Whether the verdict "identified" is right, on simulated crowds of the zoo.

usage: python benchmarks/verdicts.py [--method default] [--draws 14] [--seed 1000] [--workers 1]
                                     [--limits] [--out results/verdicts.jsonl]

Fits draws of every family of `zoo_families.py`. "Identified" is right if the accuracy is within .03
of an oracle that knows the annotator model and the calibration error of `confidence_` is at most
.07. It should be right in 90 % of the cases where it is said, and be said of 80 % of easy crowds:
independent errors, dominant by .15 or more, three or more labels per item. Appends one JSON line
per crowd. `--limits` also prints both shares for other limits of the correlation of errors and of
the estimation loss; choose limits on seeds below 1000.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from zoo_families import FAMILIES, draw_crowd

import annotrace as at
from annotrace.diagnosis import calibration_error
from annotrace.diagnosis.reasons import MAX_CORRELATION, MAX_LOSS

Row = dict[str, Any]

SHORTFALL, CALIBRATED = 0.03, 0.07
CORRELATIONS = (0.06, 0.08, 0.1, 0.12, 0.15)
LOSSES = (0.01, 0.0125, 0.015, 0.02, 0.025, 0.03)


def run(method: str, job: tuple[str, int]) -> Row:
    """Fit one crowd and compare the verdict with the truth."""
    torch.set_num_threads(1)
    crowd = draw_crowd(*job)
    truth = crowd.table.truth
    assert truth is not None
    model = at.aggregation.make(*([] if method == "default" else [method])).fit(crowd.table)
    chosen, diagnosis = np.eye(crowd.table.n_classes)[model.result_.estimate], model.diagnosis_
    return {
        "experiment": "verdicts",
        "method": method,
        "family": job[0],
        "seed": job[1],
        "easy": crowd.is_easy,
        "verdict": diagnosis.verdict,
        "reasons": [reason.kind for reason in diagnosis.reasons],
        "shortfall": float(
            np.mean(crowd.oracle.argmax(1) == truth) - np.mean(model.result_.estimate == truth)
        ),
        "calibration_error": calibration_error(chosen, truth, confidence=model.confidence_),
        "correlation": diagnosis.dependence.correlation,
        "estimation_loss": diagnosis.estimation_loss,
        "versions": {"annotrace": at.__version__, "torch": torch.__version__},
    }


def is_right(row: Row) -> bool:
    """Whether "identified" would be right."""
    return row["shortfall"] <= SHORTFALL and row["calibration_error"] <= CALIBRATED


def is_said(row: Row, correlation: float = MAX_CORRELATION, loss: float = MAX_LOSS) -> bool:
    """Whether the verdict would be "identified" with some limits."""
    others = set(row["reasons"]) - {"shared-errors", "unknown-annotators"}
    within = row["correlation"] <= correlation and row["estimation_loss"] <= loss
    return within and not others and row["verdict"] != "not identified"


def shares(rows: Sequence[Row], said: Sequence[bool]) -> str:
    """Return how often "identified" is right where it is said, and said where it is easy."""
    right = [is_right(row) for row, own in zip(rows, said, strict=True) if own]
    easy = [own for row, own in zip(rows, said, strict=True) if row["easy"]]
    return f"right {sum(right)} of {len(right)}, said of {sum(easy)} of {len(easy)} easy crowds"


def show(rows: Sequence[Row]) -> None:
    """Print the verdicts by family, and both bars."""
    print("| family | crowds | easy | identified | right | could be right |\n|---|" + "---:|" * 5)
    for family in FAMILIES:
        own = [row for row in rows if row["family"] == family]
        said = [row for row in own if is_said(row)]
        counts = (
            own,
            [r for r in own if r["easy"]],
            said,
            *(filter(is_right, s) for s in (said, own)),
        )
        print(f"| {family} | " + " | ".join(str(len(list(each))) for each in counts) + " |")
    print(shares(rows, [row["verdict"] == "identified" for row in rows]))


def show_limits(rows: Sequence[Row]) -> None:
    """Print both shares for other limits."""
    for limits in product(CORRELATIONS, LOSSES):
        print(*limits, shares(rows, [is_said(row, *limits) for row in rows]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--method", default="default")
    parser.add_argument("--draws", type=int, default=14, help="of each family")
    parser.add_argument("--seed", type=int, default=1000, help="of the first draw")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limits", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.draws)
    with get_context("spawn").Pool(options.workers) as pool:
        rows = pool.map(partial(run, options.method), list(product(FAMILIES, seeds)), chunksize=1)
    if options.out is not None:
        with options.out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    show(rows)
    if options.limits:
        show_limits(rows)


if __name__ == "__main__":
    main()
