"""The posterior that gold items support: candidates weighted by cross-validation.

From labels alone nothing shows that annotators err together, and gold items that only clamp their
own posterior hardly change that of the others. Here they choose between a regression on the labels
that contains the annotator model, and the best annotators (`gold_candidates`). Both predict gold
items that they have not learned from. The result is the mixture of the two whose weight is the
mean of a Gibbs posterior (Bissiri, Holmes and Walker, 2016): a prior that favours the regression,
times the exponential of how many of these gold items the mixture predicts correctly. With few gold
items the regression stays close to the annotator model, and the mixture to the regression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from annotrace.aggregation.gold_candidates import (
    BEST,
    CANDIDATES,
    MODEL,
    REGRESSION,
    Evidence,
    best_annotators,
    regression,
)
from annotrace.aggregation.run_schema import CandidateScore
from annotrace.crowd.em import clamp_posterior
from annotrace.labels.table import LabelTable

Array = NDArray[np.float64]

COMBINATION = "combination"
MIN_GOLD = 20
"""Gold items with labels below which the annotator model alone is used."""

N_FOLDS = 5
WEIGHTS = np.linspace(0, 1, 11)
"""Of the best annotators against the regression."""

# Chosen like the constants of the candidates. A weight w has prior density (1.1 - w) ** FAVOUR. A
# gold item counts for RATE times its probability of being predicted correctly, for which the
# margin of its class is taken SHARPNESS-fold as a logit: a count of correct items is less stable.
FAVOUR, RATE, SHARPNESS = 1.0, 0.5, 10.0
SMALLEST = 1e-4


class GoldChoice(NamedTuple):
    """A posterior chosen by gold items.

    Attributes
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        Gold items are certain.
    held_out : ndarray of shape (n_items, n_classes)
        The same, with gold items predicted without their gold class.
    candidates : list of CandidateScore
        The weight of each candidate and how well it predicts gold items; their combination last.
    """

    posterior: Array
    held_out: Array
    candidates: list[CandidateScore]


def has_enough_gold(table: LabelTable, gold: NDArray[np.int32]) -> bool:
    """Whether there are enough gold items with labels, of two classes at least, to choose by."""
    known = gold[_usable(table, gold)]
    return len(known) >= MIN_GOLD and len(np.unique(known)) > 1


def choose_by_gold(
    table: LabelTable,
    gold: NDArray[np.int32],
    held_out: NDArray[np.floating],
    classifier: NDArray[np.floating] | None = None,
) -> GoldChoice:
    """Return the mixture of regression and best annotators that gold items support.

    Parameters
    ----------
    table : LabelTable
    gold : ndarray of int, shape (n_items,)
        The class of each gold item, -1 elsewhere; see `has_enough_gold`.
    held_out : ndarray of shape (n_items, n_classes)
        Posterior of the annotator model, that of gold items without their gold class; see
        `hold_out_gold`. Items without labels keep it.
    classifier : ndarray of shape (n_items, n_classes), optional
        Probabilities by a classifier that has not learned from the item.
    """
    evidence = Evidence(table, held_out.astype(np.float64), classifier)
    fold = assign_folds(table, gold)
    items = np.flatnonzero(fold >= 0)
    of_gold = {name: np.empty((len(items), table.n_classes)) for name in CANDIDATES}
    for k in range(N_FOLDS):
        rest, held = _keep(gold, (fold >= 0) & (fold != k)), fold[items] == k
        for name, candidate in CANDIDATES.items():
            of_gold[name][held] = candidate(evidence, rest)[items[held]]
    truth = gold[items]
    weight = _weight_of_best(of_gold[REGRESSION], of_gold[BEST], truth)
    usable = _keep(gold, fold >= 0)
    mixture = _mix(regression(evidence, usable), best_annotators(evidence, usable), weight)
    unlabelled = table.labels_per_item() == 0
    mixture[unlabelled] = held_out[unlabelled]
    mixture[items] = _mix(of_gold[REGRESSION], of_gold[BEST], weight)
    weights = {MODEL: 0.0, REGRESSION: 1 - weight, BEST: weight, COMBINATION: 1.0}
    of_gold[COMBINATION] = mixture[items]
    scores = [_score(name, weights[name], p, truth) for name, p in of_gold.items()]
    return GoldChoice(clamp_posterior(mixture, gold), mixture, scores)


def hold_out_gold(
    table: LabelTable,
    gold: NDArray[np.int32],
    posterior: NDArray[np.floating],
    refit: Callable[[NDArray[np.int32]], NDArray[np.floating]],
) -> Array:
    """Return a posterior in which gold items are predicted without their gold class.

    Parameters
    ----------
    table : LabelTable
    gold : ndarray of int, shape (n_items,)
        The class of each gold item, -1 elsewhere.
    posterior : ndarray of shape (n_items, n_classes)
        Given all gold items.
    refit : function
        Takes some of the gold items, in the form of `gold`, and returns the posterior given those.
    """
    held_out = posterior.astype(np.float64)
    fold = assign_folds(table, gold)
    for k in range(N_FOLDS):
        held_out[fold == k] = refit(_keep(gold, fold != k))[fold == k]
    return held_out


def assign_folds(table: LabelTable, gold: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the fold of each gold item with labels, classes spread evenly, and -1 elsewhere."""
    items = np.random.default_rng(0).permutation(np.flatnonzero(_usable(table, gold)))
    fold = np.full(len(gold), -1)
    fold[items[np.argsort(gold[items], kind="stable")]] = np.arange(len(items)) % N_FOLDS
    return fold


def _usable(table: LabelTable, gold: NDArray[np.int32]) -> NDArray[np.bool_]:
    usable: NDArray[np.bool_] = (gold >= 0) & (table.labels_per_item() > 0)
    return usable


def _keep(gold: NDArray[np.int32], which: NDArray[np.bool_]) -> NDArray[np.int32]:
    return np.where(which, gold, -1).astype(np.int32)


def _mix(regression: Array, best: Array, weight: float) -> Array:
    return (1 - weight) * regression + weight * best


def _weight_of_best(regression: Array, best: Array, truth: NDArray[np.int32]) -> float:
    """Return the mean weight of the best annotators, given predictions (n_gold, n_classes)."""
    correct = [_smooth_correct(_mix(regression, best, weight), truth) for weight in WEIGHTS]
    log_density = RATE * np.array(correct) + FAVOUR * np.log(1.1 - WEIGHTS)
    return float(softmax(log_density) @ WEIGHTS)


def _smooth_correct(predicted: Array, truth: NDArray[np.int32]) -> float:
    """Return the expected number of correct predictions if margins were logits."""
    others = predicted.copy()
    others[np.arange(len(truth)), truth] = 0
    margin = predicted[np.arange(len(truth)), truth] - others.max(axis=1)
    return float(expit(SHARPNESS * margin).sum())


def _score(name: str, weight: float, predicted: Array, truth: NDArray[np.int32]) -> CandidateScore:
    p = np.clip(predicted[np.arange(len(truth)), truth], SMALLEST, 1)
    accuracy = float(np.mean(predicted.argmax(axis=1) == truth))
    log_loss = float(-np.log(p).mean())
    return CandidateScore(name=name, weight=weight, accuracy=accuracy, log_loss=log_loss)
