"""Each judge against gold: accuracy, kappa, and how often each class is recognised.

Accuracy is the share of a judge's labels that are correct. Gold items alone give Wilson's interval.
Where it is narrower, it is prediction-powered: the share of the other judges who agree predicts
whether a label is correct, for all items that the judge has labelled, and gold items correct that
prediction. The interval is valid however much the judges err together. On the panels of ten and
thirteen LLMs of the BABE corpus the share of votes predicts correctness as well as the posterior of
a Dawid-Skene model without the judge (mean correlations .53 and .46 in one, .53 and .54 in the
other), and needs no fit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.prediction_powered import prediction_powered_mean
from annotrace.judges.agreement import agreement_with, other_votes
from annotrace.judges.estimates import (
    LEVEL,
    UNKNOWN,
    Estimate,
    interval_variance,
    share_estimate,
)
from annotrace.labels.table import LabelTable
from annotrace.labels.vocabulary import Codes


class JudgeAccuracy(NamedTuple):
    """A judge against gold.

    Attributes
    ----------
    n_gold : int
        Gold items that the judge has labelled.
    accuracy : Estimate
        Share of labels that are correct.
    kappa : Estimate
        Cohen's kappa with gold.
    is_powered : bool
        Whether items without gold made the interval of the accuracy narrower.
    """

    n_gold: int
    accuracy: Estimate
    kappa: Estimate
    is_powered: bool


class ClassRate(NamedTuple):
    """A judge's rates for one class.

    Attributes
    ----------
    n_gold, n_given : int
        Gold items of the class, and gold items that the judge assigned to it.
    recall, precision : Estimate
        The share of the former that the judge assigned to the class, and the share of the latter
        that belong to it.
    """

    judge: Any
    label: Any
    n_gold: int
    recall: Estimate
    n_given: int
    precision: Estimate


def judge_accuracies(table: LabelTable, known: Codes) -> list[JudgeAccuracy]:
    """Return the accuracy of each annotator of a table against gold.

    Parameters
    ----------
    table : LabelTable
        Labels of the judges alone.
    known : ndarray of shape (n_items,), int32
        The class of each gold item, -1 for the others.
    """
    predicted = agreement_of_others(table)
    return [
        _judge_accuracy(table, known, predicted, np.flatnonzero(table.annotator == judge))
        for judge in range(table.n_annotators)
    ]


def agreement_of_others(table: LabelTable) -> NDArray[np.float64]:
    """Return the share of the other labels of its item that equal each label, shape (n_labels,).

    One half if there are none.
    """
    votes = other_votes(table, table)
    equal, n = votes[np.arange(table.n_labels), table.label], votes.sum(axis=1)
    return np.where(n > 0, equal / np.maximum(n, 1), 0.5)


def powered_share(correct: Any, predicted: Any, predicted_rest: Any) -> tuple[Estimate, bool]:
    """Return a share from known and predicted values, and whether the predictions helped.

    Parameters
    ----------
    correct, predicted : ndarray of shape (n,)
        Known values, 0 or 1, and their predictions.
    predicted_rest : ndarray of shape (n_rest,)
        Predictions of values that are not known.
    """
    n = len(correct)
    if n == 0:
        return UNKNOWN, False
    alone = share_estimate(np.mean(correct), n)
    powered = prediction_powered_mean(correct, predicted, predicted_rest, LEVEL)
    if powered.weight == 0:
        return alone, False
    variance = interval_variance(powered.low, powered.high) * n / max(n - 1, 1)
    estimate = share_estimate(powered.value, n, variance)
    narrower = estimate.high - estimate.low < alone.high - alone.low
    return (estimate, True) if narrower else (alone, False)


def confusion_counts(table: LabelTable, known: Codes) -> NDArray[np.int64]:
    """Count labels of gold items, shape (n_annotators, n_classes, n_classes).

    [judge, true, reported].
    """
    n_classes = table.n_classes
    gold = known[table.item] >= 0
    annotator, true = table.annotator[gold].astype(np.int64), known[table.item[gold]]
    cell = (annotator * n_classes + true) * n_classes + table.label[gold]
    shape = (table.n_annotators, n_classes, n_classes)
    return np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)


def class_rates(table: LabelTable, known: Codes) -> list[ClassRate]:
    """Return the rates of each judge and class; parameters as in `judge_accuracies`."""
    judges, classes = table.annotators.tolist(), table.classes.tolist()
    rates = []
    for judge, counts in zip(judges, confusion_counts(table, known), strict=True):
        for label, name in enumerate(classes):
            right = int(counts[label, label])
            n_gold, n_given = int(counts[label].sum()), int(counts[:, label].sum())
            recall, precision = (share_estimate(right / max(n, 1), n) for n in (n_gold, n_given))
            rates.append(ClassRate(judge, name, n_gold, recall, n_given, precision))
    return rates


def _judge_accuracy(
    table: LabelTable, known: Codes, predicted: NDArray[Any], rows: NDArray[np.int64]
) -> JudgeAccuracy:
    item, label = table.item[rows], table.label[rows]
    gold = known[item] >= 0
    votes = np.eye(table.n_classes, dtype=np.int64)[known[item[gold]]]
    against = agreement_with(item[gold], label[gold], votes)
    correct = (label == known[item])[gold]
    own = predicted[rows]
    accuracy, is_powered = powered_share(correct, own[gold], own[~gold])
    return JudgeAccuracy(against.n_items, accuracy, against.kappa, is_powered)
