"""The posterior that gold items support: candidates weighted by cross-validation.

From labels alone nothing shows that annotators err together, and gold items that only clamp their
own posterior hardly change that of the others. Here they choose between the annotator model, a
regression on the labels that corrects it, and the best annotators (`gold_candidates`). All predict
gold items that they have not learned from.

Regression and best annotators are mixed. The weight is the mean of a Gibbs posterior (Bissiri,
Holmes and Walker, 2016): a prior that favours the regression, times the exponential of how many of
these gold items the mixture predicts correctly. The annotator model as it stands then has the
posterior probability that its predictions of gold items, rather than those of the mixture, are the
right ones; before, each of the three is as probable. An overconfident model loses it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from annotrace.aggregation.gold_candidates import Evidence, best_annotators, regression
from annotrace.aggregation.run_schema import CandidateScore
from annotrace.crowd.em import clamp_posterior
from annotrace.labels.table import LabelTable

Array = NDArray[np.float64]

MODEL, REGRESSION, BEST = "annotator model", "regression", "best annotators"
COMBINATION = "combination"
MIN_GOLD = 20
"""Gold items with labels below which the annotator model alone is used."""

N_FOLDS = 5
WEIGHTS = np.linspace(0, 1, 11)
"""Of the best annotators against the regression."""

# A weight w has prior density (1.1 - w) ** FAVOUR. A gold item counts for RATE times the chance
# that it is predicted correctly, whose logit is SHARPNESS times the margin of its class: a count of
# correct items is less stable. Chosen on nine human crowds and 15 simulated families, three of
# each; panels of judges were left out. Mean accuracy with 20, 50 and 100 gold items on the former
# .909, .907, .910 (annotator model .907, .905, .908), on the latter .816, .838, .848 (.803, .816,
# .824). With a FAVOUR of 1 it is lower by .002, .001, .001 and .001, .000, .000.
FAVOUR, RATE, SHARPNESS = 1.5, 0.5, 10.0
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
    classifier: NDArray[np.float64] | None = None,
) -> GoldChoice:
    """Return the mixture of annotator model, regression and best annotators by gold items.

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
    of_gold = np.empty((2, len(items), table.n_classes))
    for k in range(N_FOLDS):
        of_fold = fold[items] == k
        predicted = _predict(evidence, _keep(gold, (fold >= 0) & (fold != k)))
        of_gold[:, of_fold] = predicted[:, items[of_fold]]
    weights = _weigh(evidence.held_out[items], of_gold[0], of_gold[1], gold[items])
    mixture = _mix(evidence.held_out, _predict(evidence, _keep(gold, fold >= 0)), weights)
    mixture[items] = _mix(evidence.held_out[items], of_gold, weights)
    unlabelled = table.labels_per_item() == 0
    mixture[unlabelled] = evidence.held_out[unlabelled]
    predictions = (evidence.held_out[items], *of_gold, mixture[items])
    names = (MODEL, REGRESSION, BEST, COMBINATION)
    columns = zip(names, (*weights.tolist(), 1.0), predictions, strict=True)
    scores = [_score(name, weight, p, gold[items]) for name, weight, p in columns]
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


def _predict(evidence: Evidence, gold: NDArray[np.int32]) -> Array:
    """Return the predictions of regression and best annotators, (2, n_items, n_classes)."""
    return np.stack([regression(evidence, gold), best_annotators(evidence, gold)])


def _mix(model: Array, others: Array, weights: Array) -> Array:
    mixture: Array = weights[0] * model + np.tensordot(weights[1:], others, 1)
    return mixture


def _weigh(model: Array, regression: Array, best: Array, truth: NDArray[np.int32]) -> Array:
    """Return the weights of three predictions of gold items, each (n_gold, n_classes)."""
    mixtures = [(1 - weight) * regression + weight * best for weight in WEIGHTS]
    correct = np.array([_smooth_correct(mixture, truth) for mixture in mixtures])
    weight = float(softmax(RATE * correct + FAVOUR * np.log(1.1 - WEIGHTS)) @ WEIGHTS)
    mixture = (1 - weight) * regression + weight * best
    gain = _log_p(model, truth).sum() - _log_p(mixture, truth).sum()
    others = float(expit(np.log(2) - gain))
    return np.array([1 - others, others * (1 - weight), others * weight])


def _log_p(predicted: Array, truth: NDArray[np.int32]) -> Array:
    log_p: Array = np.log(np.clip(predicted[np.arange(len(truth)), truth], SMALLEST, 1))
    return log_p


def _smooth_correct(predicted: Array, truth: NDArray[np.int32]) -> float:
    """Return the expected number of correct predictions if margins were logits."""
    others = predicted.copy()
    others[np.arange(len(truth)), truth] = 0
    margin = predicted[np.arange(len(truth)), truth] - others.max(axis=1)
    return float(expit(SHARPNESS * margin).sum())


def _score(name: str, weight: float, predicted: Array, truth: NDArray[np.int32]) -> CandidateScore:
    accuracy = float(np.mean(predicted.argmax(axis=1) == truth))
    log_loss = float(-_log_p(predicted, truth).mean())
    return CandidateScore(name=name, weight=weight, accuracy=accuracy, log_loss=log_loss)
