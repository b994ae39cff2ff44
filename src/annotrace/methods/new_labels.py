"""Labels of new items under a fitted classifier: their posterior, and their likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from annotrace.crowd.annotator_model import FixedMatrices
from annotrace.crowd.dependent_annotators import design_effect
from annotrace.crowd.em import item_log_likelihood, posterior
from annotrace.crowd.losses import label_log_likelihood
from annotrace.data import ItemSource
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import look_up
from annotrace.methods.inputs import Items, known_class_codes, match
from annotrace.methods.warm_start import matrices_by_name


def posterior_of_new(estimator: Any, X: Any, y: Any, items: Items) -> NDArray[Any]:
    """Return class probabilities of new items; see `CrowdEstimator.posterior`."""
    source, log_p, table = _match_new(estimator, X, y, items)
    table = known_class_codes(table, estimator.table_.classes)
    likelihood = item_log_likelihood(estimator.annotators_for(source, table), table)
    correlation = estimator.annotator_model_.correlation or 0.0
    likelihood /= design_effect(correlation, table.labels_per_item())[:, None]
    return posterior(log_p, torch.from_numpy(likelihood)).numpy()


def mean_log_likelihood_of_new(
    estimator: Any, X: Any, y: Any, items: Items, sample_weight: Any
) -> float:
    """Return the mean log-likelihood of the labels of new items; see `CrowdEstimator.score`."""
    source, log_p, table = _match_new(estimator, X, y, items)
    if table.n_labels == 0:
        raise InputError("The table has no labels: there is nothing to score.")
    label = torch.from_numpy(look_up(table.classes, estimator.table_.classes)[table.label])
    row, annotator = torch.tensor(table.item), torch.tensor(table.annotator)
    known = label >= 0
    log_likelihood = torch.full((len(label),), FixedMatrices.SMALLEST, dtype=log_p.dtype).log()
    log_likelihood[known] = label_log_likelihood(
        log_p,
        estimator.annotators_for(source, table),
        row[known],
        annotator[known],
        label[known],
        torch.arange(len(log_p)),
    )
    weights = None if sample_weight is None else np.asarray(sample_weight)[table.item]
    return float(np.average(log_likelihood.numpy(), weights=weights))


def _match_new(
    estimator: Any, X: Any, y: Any, items: Items
) -> tuple[ItemSource, Tensor, LabelTable]:
    """Return new rows, the classifier's log-probabilities of them, and their labels."""
    source, table = match(clone(estimator), X, y, items, estimator.table_.classes)
    return source, torch.from_numpy(estimator.predict_proba(source)).clamp_min(1e-300).log(), table


def known_annotators(estimator: Any, table: LabelTable) -> FixedMatrices:
    """Return the matrices of a table's annotators by name; the pool's for new ones.

    If the method does not model annotators, every label is the true class.
    """
    if estimator.annotator_model_ is None:
        matrices = np.tile(np.eye(estimator.table_.n_classes), (table.n_annotators, 1, 1))
    else:
        matrices = matrices_by_name(estimator.table_, estimator.confusion_, table)
    return FixedMatrices(torch.from_numpy(matrices))
