"""Calibrated class probabilities: annotators err together, so labels of an item are correlated.

The posterior of a model assumes independent errors: given the class of an item, the label of one
annotator says nothing about that of another. Real annotators are misled by the same items, and a
classifier that learned from them is misled with them, so the posterior is overconfident.

Survey statistics divides the evidence of m observations with correlation r by the *design effect*
1 + r (m - 1). Here the observations are the labels of an item; a classifier counts as several. The
correlation is estimated from how much more annotators agree than the classes explain
(`annotrace.crowd.dependence`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from annotrace.crowd.dependent_annotators import design_effect
from annotrace.crowd.em import clamp_posterior, normalize_joint
from annotrace.crowd.result import CrowdResult

Array = NDArray[np.float64]

# Labels that a classifier counts as: it has learned from all of them, and errs where they err.
# Calibration errors of `crossfit` on LabelMe, sentiment sentences, digits with flippers and digits
# with hammer-spammers: .037, .037, .011 and .002 with 5; .023, .032, .022 and .002 with 7; .022,
# .030, .029 and .001 with 8. Without LabelMe it would be 3, which gives .056 on LabelMe.
CLASSIFIER_LABELS = 7
# Mean calibration error of `confidence_` over six aggregations of 13 public crowds, by
# benchmarks/confidence.py.
USUAL_ERROR = 0.09


def calibrated_posterior(result: CrowdResult) -> Array:
    """Return class probabilities that allow for correlated errors, shape (n_items, n_classes).

    Gold items are certain. If nothing compares annotators, a label is as likely right as wrong.
    Methods that do not model annotators return their posterior.
    """
    calibrated = np.empty(result.posterior.shape)
    for items, _ in result.table.blocks():
        calibrated[items] = _calibrated(result, items)
    return calibrated


def _calibrated(result: CrowdResult, items: slice) -> Array:
    """Return the calibrated probabilities of consecutive items."""
    posterior = independent_posterior(result, items)
    # A posterior that was chosen by gold items is calibrated to them.
    if result.models_annotators and result.is_comparable and result.held_out is None:
        posterior = temper(posterior, 1 / _design_effect(result, items)[:, None])
    return clamp_posterior(posterior, result.gold[items])


def _design_effect(result: CrowdResult, items: slice) -> Array:
    """Return by how much the posterior of consecutive items overstates the evidence.

    The annotator model may have allowed for the correlation of labels already, but not for that of
    the classifier with them.
    """
    assert result.annotator_model is not None
    allowed, n_labels = result.annotator_model.correlation, result.table.labels_per_item()[items]
    n_observed = n_labels + CLASSIFIER_LABELS * result.has_classifier
    if allowed is None:
        effect: Array = design_effect(result.annotators.dependence.expected, n_observed)
    else:
        effect = design_effect(allowed, n_observed) / design_effect(allowed, n_labels)
    return effect


def independent_posterior(result: CrowdResult, items: slice = slice(None)) -> Array:
    """Return class probabilities if annotators erred independently, shape (n_items, n_classes).

    Shares of votes are not probabilities: of ten annotators who are right seven times in ten, seven
    who agree are right with .97, not .7. For votes it is the posterior under the confusion matrices
    of the annotators.

    Parameters
    ----------
    result : CrowdResult
    items : slice
        Consecutive items, all by default.
    """
    if result.models_annotators and not result.is_comparable:
        return _half_right(result.posterior[items])
    if result.models_annotators and result.is_vote:
        return result.annotators.item_posterior[items].astype(np.float64)
    return result.posterior[items].astype(np.float64)


def confidence(result: CrowdResult) -> Array:
    """Return the calibrated probability of each item's estimated class, shape (n_items,)."""
    chosen = np.empty(len(result.estimate))
    for items, _ in result.table.blocks():
        estimate = result.estimate[items]
        chosen[items] = _calibrated(result, items)[np.arange(len(estimate)), estimate]
    return chosen


def _half_right(posterior: NDArray[Any]) -> Array:
    """Mix the labels with all other classes: a skill of 0 to 1 is one half on average."""
    likely = posterior.astype(np.float64)
    halves: Array = (likely + (1 - likely) / (likely.shape[1] - 1)) / 2
    return halves


def temper(posterior: NDArray[Any], power: NDArray[Any]) -> Array:
    """Raise probabilities (n_items, n_classes) to a power per item, and normalise."""
    log = power * np.log(np.maximum(posterior, 1e-300))
    return normalize_joint(torch.from_numpy(log))[0].numpy()
