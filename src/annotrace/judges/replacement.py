"""Whether a judge may stand in for a person: the alternative annotator test.

Each person is left out in turn. On every item that this person, the judge and at least one more
person have labelled, the judge and the person are compared with the remaining people: who agrees
with them better? The judge wins against a person if "the judge is at least as good" is true more
often than "the person is at least as good" minus epsilon, significantly so after a correction for
testing against several people. It may stand in for people if it wins against half of them.

Epsilon is what people's higher cost is worth: .2 for experts, .15 for trained annotators, .1 for
crowd workers, as the authors recommend.

References
----------
N. Calderon, R. Reichart and R. Dror, The Alternative Annotator Test for LLM-as-a-Judge: How to
Statistically Justify Replacing Human Annotators with LLMs, ACL 2025.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, ttest_1samp, wilcoxon

from annotrace.errors import InputError, first_few
from annotrace.judges.agreement import other_votes
from annotrace.judges.estimates import Array
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import as_numbers

EPSILON = 0.2
# The false discovery rate among the people whom the judge wins against.
RATE = 0.05
# With fewer items the mean of differences is not normal, and ranks are tested instead.
MIN_NORMAL = 30
# With fewer items, no result could be significant.
MIN_ITEMS = 10


class Comparison(NamedTuple):
    """A judge against one person.

    Attributes
    ----------
    n_items : int
        Items on which the two were compared.
    judge_as_good, person_as_good : float
        Share of items on which one agrees with the remaining people at least as well as the other.
    p_value : float
        Of the hypothesis that the judge is worse by epsilon or more.
    wins : bool
        Whether it is rejected, after the correction for several people.
    """

    judge: Any
    person: Any
    n_items: int
    judge_as_good: float
    person_as_good: float
    p_value: float
    wins: bool


class Replacement(NamedTuple):
    """Whether a judge may stand in for a person.

    Attributes
    ----------
    n_people : int
        People with enough items to be compared with.
    winning_rate : float
        Share of people whom the judge wins against.
    advantage : float
        Average advantage probability: how often the judge is at least as good as a person.
    passes : bool
        Whether the winning rate is one half or more.
    """

    judge: Any
    n_people: int
    winning_rate: float
    advantage: float
    passes: bool


def alternative_annotator_test(
    people: LabelTable,
    judges: LabelTable,
    *,
    epsilon: float = EPSILON,
    graded: bool = False,
    rate: float = RATE,
) -> tuple[list[Replacement], list[Comparison]]:
    """Test each judge against people.

    Parameters
    ----------
    people, judges : LabelTable
        Labels of people and of judges, with the same items and classes. Of repeated labels by one
        annotator for one item, the first counts.
    epsilon : float
        How much worse than a person a judge may be, as a share of items.
    graded : bool
        Compare by squared distance between classes, whose names are numbers, instead of equality.
    rate : float
        False discovery rate.

    Returns
    -------
    results : list of Replacement
        Of each judge.
    comparisons : list of Comparison
        Of each judge and person with 10 items or more.
    """
    people, judges = first_labels(people), first_labels(judges)
    closeness = _closeness(people, graded)
    score = other_votes(people, people) @ closeness
    results: list[Replacement] = []
    comparisons: list[Comparison] = []
    for code, judge in enumerate(judges.annotators.tolist()):
        own = _compare(people, score, _labels_of(judges, code), judge, epsilon)
        own = _mark_wins(own, rate)
        results.append(_summarise(judge, own))
        comparisons += own
    return results, comparisons


def first_labels(table: LabelTable) -> LabelTable:
    """Return a table with the first label of each item and annotator."""
    pair = table.item.astype(np.int64) * table.n_annotators + table.annotator
    first = np.sort(np.unique(pair, return_index=True)[1])
    return table.replace(
        item=table.item[first], annotator=table.annotator[first], label=table.label[first]
    )


def _closeness(table: LabelTable, graded: bool) -> Array:
    """Return how close two classes are, shape (n_classes, n_classes); more is closer."""
    if not graded:
        return np.eye(table.n_classes)
    values = as_numbers(table.classes)
    if values is None:
        raise InputError(
            "Expected the names of graded classes to be numbers, but got "
            f"{first_few(table.classes)}. Leave out `graded`, or rename the classes."
        )
    return -np.square(values[:, None] - values[None, :])


def _labels_of(table: LabelTable, annotator: int) -> NDArray[np.int64]:
    """Return the label of one annotator for each item, -1 if there is none, shape (n_items,)."""
    label = np.full(table.n_items, -1, np.int64)
    own = table.annotator == annotator
    label[table.item[own]] = table.label[own]
    return label


def _compare(
    people: LabelTable, score: Array, label: NDArray[np.int64], judge: Any, epsilon: float
) -> list[Comparison]:
    """Compare a judge with each person; `score` is that of each class, for each label of people."""
    several = people.labels_per_item()[people.item] > 1
    rows = np.flatnonzero((label[people.item] >= 0) & several)
    by_person = score[rows, people.label[rows]]
    by_judge = score[rows, label[people.item[rows]]]
    judge_as_good, person_as_good = by_judge >= by_person - 1e-9, by_person >= by_judge - 1e-9
    comparisons = []
    for code, person in enumerate(people.annotators.tolist()):
        own = people.annotator[rows] == code
        if (n := int(own.sum())) >= MIN_ITEMS:
            good = judge_as_good[own], person_as_good[own]
            p_value = _p_value(good[1].astype(float) - good[0], epsilon)
            shares = float(good[0].mean()), float(good[1].mean())
            comparisons.append(Comparison(judge, person, n, *shares, p_value, wins=False))
    return comparisons


def _p_value(difference: Array, epsilon: float) -> float:
    """Test whether the mean of person minus judge is below epsilon."""
    if np.ptp(difference) == 0 and len(difference) >= MIN_NORMAL:
        return 0.0 if difference[0] < epsilon else 1.0
    if len(difference) >= MIN_NORMAL:
        return float(ttest_1samp(difference, epsilon, alternative="less").pvalue)
    return float(wilcoxon(difference - epsilon, alternative="less").pvalue)


def _mark_wins(comparisons: list[Comparison], rate: float) -> list[Comparison]:
    """Mark those that are significant by the procedure of Benjamini and Yekutieli."""
    if not comparisons:
        return []
    adjusted = false_discovery_control([each.p_value for each in comparisons], method="by")
    return [
        each._replace(wins=bool(p <= rate)) for each, p in zip(comparisons, adjusted, strict=True)
    ]


def _summarise(judge: Any, comparisons: list[Comparison]) -> Replacement:
    if not comparisons:
        return Replacement(judge, 0, float("nan"), float("nan"), passes=False)
    winning_rate = float(np.mean([each.wins for each in comparisons]))
    advantage = float(np.mean([each.judge_as_good for each in comparisons]))
    return Replacement(judge, len(comparisons), winning_rate, advantage, winning_rate >= 0.5)
