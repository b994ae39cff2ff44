"""The panel as a whole: against its best member, and without each of its members.

The panel's answer is its majority vote, or what the default aggregation makes of its labels without
gold. Comparisons are paired over gold items. The best member is
chosen without the items that it is compared on, by cross-validation: chosen and compared on the
same items, it would look better than it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.judges.estimates import Array, Estimate, difference_estimate, share_estimate
from annotrace.judges.selection import (
    INFLATION,
    N_FOLDS,
    PanelStep,
    best_panel,
    grow_panel,
    smallest_panel,
)
from annotrace.judges.votes import GoldVotes
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes


class Contribution(NamedTuple):
    """What a judge adds to the panel.

    Attributes
    ----------
    adds : Estimate
        Accuracy of the panel's vote minus that of the vote without the judge.
    cost : float
        Of one label.
    adds_per_cost : float
    """

    judge: Any
    adds: Estimate
    cost: float
    adds_per_cost: float


class Panel(NamedTuple):
    """A panel against its members.

    Attributes
    ----------
    n_gold : int
        Gold items with labels.
    accuracy : Estimate
        Of the majority vote of all judges.
    best_judge : str or int
        The judge with the highest accuracy on the gold items.
    against_best : Estimate
        Accuracy of the vote minus that of the judge who is best on the other gold items.
    aggregated, aggregated_against_best : Estimate
        The same for the default aggregation of all labels, without gold.
    steps : list of PanelStep
        Panels of each size.
    smallest, best : list
        The members of the smallest panel that is as good as all judges within noise, and of the
        panel with the highest validated accuracy.
    contributions : list of Contribution
    """

    n_gold: int
    accuracy: Estimate
    best_judge: Any
    against_best: Estimate
    aggregated: Estimate
    aggregated_against_best: Estimate
    steps: list[PanelStep]
    smallest: list[Any]
    best: list[Any]
    contributions: list[Contribution]

    @property
    def is_better(self) -> bool:
        """Whether the panel is significantly better than its best member."""
        return self.against_best.low > 0

    @property
    def is_worse(self) -> bool:
        """Whether the panel is significantly worse than its best member."""
        return self.against_best.high < 0


def compare_panel(
    table: LabelTable, known: Codes, estimate: NDArray[Any], cost: Array, random_state: int
) -> Panel:
    """Compare a panel with its members and with smaller panels.

    Parameters
    ----------
    table : LabelTable
        Labels of the judges alone.
    known : ndarray of shape (n_items,), int32
        The class of each gold item, -1 for the others; some gold item has a label.
    estimate : ndarray of int, shape (n_items,)
        The class of each item by an aggregation of the labels that has not seen gold.
    cost : ndarray of shape (n_annotators,)
        Of one label by each judge.
    random_state : int
        Assigns items to folds.
    """
    gold = GoldVotes.of(table, known)
    names = table.annotators.tolist()
    correct = gold.correct(gold.votes(range(gold.n_judges)))
    aggregated = (estimate[gold.items] == gold.truth).astype(np.float64)
    steps = grow_panel(gold, names, cost, random_state)
    right, given = _counts_by_fold(gold, np.zeros(gold.n_items, np.int64), 1)
    return Panel(
        gold.n_items,
        share_estimate(float(correct.mean()), gold.n_items),
        names[int(_accuracy(right, given)[:, 0].argmax())],
        _against_best(gold, correct, random_state),
        share_estimate(float(aggregated.mean()), gold.n_items),
        _against_best(gold, aggregated, random_state),
        steps,
        smallest_panel(steps),
        best_panel(steps),
        list(_contributions(gold, correct, cost, names)),
    )


def _against_best(gold: GoldVotes, correct: Array, random_state: int) -> Estimate:
    """Compare an answer with the judge who is best on the other folds, where that judge answers."""
    fold = gold.folds(N_FOLDS, random_state)
    right, given = _counts_by_fold(gold, fold, N_FOLDS)
    elsewhere = [counts.sum(axis=1, keepdims=True) - counts for counts in (right, given)]
    differences = []
    for held, best in enumerate(_accuracy(*elsewhere).argmax(axis=0)):
        item, is_right = gold.judge_correct(int(best))
        inside = fold[item] == held
        differences.append(correct[item[inside]] - is_right[inside])
    return difference_estimate(np.concatenate(differences), INFLATION)


def _counts_by_fold(gold: GoldVotes, fold: Any, n_folds: int) -> tuple[Array, Array]:
    """Count the correct labels and all labels of each judge and fold, (n_judges, n_folds)."""
    answered = [gold.judge_correct(judge) for judge in range(gold.n_judges)]
    right = [np.bincount(fold[item], is_right, n_folds) for item, is_right in answered]
    given = [np.bincount(fold[item], minlength=n_folds) for item, _ in answered]
    return np.array(right), np.array(given, np.float64)


def _accuracy(right: Array, given: Array) -> Array:
    """Return the accuracy of each judge, shrunk by one error: few labels do not make a best."""
    accuracy: Array = right / (given + 1)
    return accuracy


def _contributions(
    gold: GoldVotes, correct: Array, cost: Array, names: list[Any]
) -> Iterator[Contribution]:
    for judge, name in enumerate(names):
        others = (other for other in range(gold.n_judges) if other != judge)
        adds = difference_estimate(correct - gold.correct(gold.votes(others)))
        yield Contribution(name, adds, float(cost[judge]), adds.value / float(cost[judge]))
