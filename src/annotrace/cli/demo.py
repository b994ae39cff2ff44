"""`annotrace demo`: a simulated crowd with known truth, on data that are included."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotrace.cli.options import out_options, raw_option, report_options, seed_option
from annotrace.cli.output import new_run, print_table, save_with_report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from annotrace.data import LabelledSet
    from annotrace.methods import CrowdEstimator

ANNOTATORS = 5
SKILL = 0.5
N_TRAIN = 1400


@click.command(short_help="Show what it does, in a minute, with nothing to download.")
@out_options("RUN", "Folder to write the run to.", default="runs/demo")
@seed_option("Draws annotators and labels.")
@report_options
@raw_option
def demo(out: Path, overwrite: bool, seed: int, report: bool, anonymous: bool, raw: bool) -> None:
    """Simulate five annotators who are correct half the time, and learn from them.

    Each of 1,400 handwritten digits gets one label, by one of five annotators. Half the time they
    confuse every digit with one other, each annotator in their own way. The table shows the
    accuracy of the labels, of a plain classifier trained on them, and of this library.

    \b
    Examples:
      annotrace demo
      annotrace demo --seed 7 --out my-demo
    """
    import torch

    from annotrace.data import load_digits
    from annotrace.diagnosis import dominant_draws
    from annotrace.methods import CrowdClassifier
    from annotrace.simulate import pairwise_flippers, simulate_labels

    # Matrices this small are faster on one thread than on several.
    torch.set_num_threads(1)
    with new_run(out, overwrite):
        train, test = load_digits().split(N_TRAIN)
        # Without diagonal dominance no method can identify the true classes from labels.
        draw = partial(pairwise_flippers, ANNOTATORS, len(train.classes), SKILL)
        seed, confusion = dominant_draws(draw, 1, first_seed=seed)[0]
        table = simulate_labels(train.y, confusion, labels_per_item=1, random_state=seed)
        click.echo(
            f"{table.n_items:,} digits, one label for each, by {ANNOTATORS} annotators who are "
            f"correct {SKILL:.0%} of the time. Training:"
        )
        ours = CrowdClassifier(random_state=seed, verbose=True).fit(train.X, table)
        _print_scores(ours, train, test, seed)
        _print_annotators(ours, confusion)
        images = load_digits(images=True).split(N_TRAIN)[0].X
        options = {"anonymous": anonymous, "images": images}
        where = save_with_report(ours, out, report, raw=raw, **options)
    files = "truth.csv, annotators.csv, confusion.npz and the classifier"
    click.echo(f"\nWrote {out}: {files}. {where}".rstrip())


def _print_scores(ours: CrowdEstimator, train: LabelledSet, test: LabelledSet, seed: int) -> None:
    """Compare with majority vote, and with the same network trained on majority votes."""
    from annotrace.aggregation import MajorityVote
    from annotrace.methods import Vanilla

    plain = {
        "classifier on majority vote": Vanilla(random_state=seed, validation_fraction=0),
        "the same, early stopping": Vanilla(random_state=seed),
    }
    vote = MajorityVote(random_state=0).fit(ours.table_).result_.estimate
    rows = [
        ("majority vote", float((vote == train.y).mean()), None),
        *(
            (name, None, model.fit(train.X, ours.table_).score(test.X, test.y))
            for name, model in plain.items()
        ),
        ("annotrace", float((ours.result_.estimate == train.y).mean()), ours.score(test.X, test.y)),
    ]
    headers = ["", f"{len(train.y):,} labelled digits", f"{len(test.y):,} new digits"]
    print_table(headers, rows, "Accuracy")


def _print_annotators(ours: CrowdEstimator, confusion: NDArray[np.float64]) -> None:
    from annotrace.diagnosis import confusion_error, skills

    frame, true = ours.annotators_, skills(confusion).tolist()
    rows = zip(frame["annotator"], frame["n_labels"], true, frame["skill"], strict=True)
    error = 100 * confusion_error(ours.confusion_, confusion)
    title = f"Annotators (error of the confusion matrices x 100: {error:.1f})"
    print_table(["annotator", "labels", "true skill", "estimated"], list(rows), title)
