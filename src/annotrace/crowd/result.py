"""What a fit leaves behind: all that diagnosis, the report and allocation are functions of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.pool import fill_unlabelled
from annotrace.crowd.problem import is_comparable
from annotrace.crowd.skills import AnnotatorPosterior, annotator_posterior
from annotrace.labels.table import LabelTable

# Cells of all confusion matrices up to which they are made as one array: 1.6 GB.
MAX_CELLS = 2 * 10**8


@dataclass(frozen=True, eq=False)
class CrowdResult:
    """The result of a fit, immutable.

    Attributes
    ----------
    table : LabelTable
        The labels; row k of `posterior` is item k.
    posterior : ndarray of shape (n_items, n_classes)
        Probability of each class; gold items are certain.
    estimate : ndarray of int, shape (n_items,)
        The class given to each item, ties broken.
    annotator_model : AnnotatorModel or None
        p(label | true class, annotator); None if the method does not model annotators.
    prior : ndarray of shape (n_classes,) or (n_items, n_classes)
        What is known without an item's labels: the class shares, if the labels alone were used, or
        a classifier's probabilities.
    gold : ndarray of int, shape (n_items,)
        The class of gold items, which the fit has learned from; -1 elsewhere.
    prior_counts : ndarray of shape (n_annotators, n_classes, n_classes) or None
        Counts [annotator, true, reported] of earlier labels of known items.
    is_vote : bool
        Whether `posterior` holds shares of votes, which are not probabilities.
    model_weight : float
        How far the annotator model can be trusted to improve on `posterior`, 0 to 1: annotators who
        share errors look skilful to it.
    held_out : ndarray of shape (n_items, n_classes) or None
        The posterior with gold items predicted without their gold class, if the posterior was
        chosen by gold items and so is calibrated to them.
    """

    table: LabelTable
    posterior: NDArray[Any]
    estimate: NDArray[np.integer[Any]]
    annotator_model: AnnotatorModel | None
    prior: NDArray[Any]
    gold: NDArray[np.int32]
    prior_counts: NDArray[Any] | None = None
    is_vote: bool = False
    model_weight: float = 1.0
    held_out: NDArray[Any] | None = None

    @property
    def has_classifier(self) -> bool:
        """Whether a classifier has contributed to the posterior."""
        return self.prior.ndim == 2

    @property
    def models_annotators(self) -> bool:
        """Whether there are annotators to diagnose: a model of them, and two classes.

        Not if their matrices are too many for an array.
        """
        has_model = self.annotator_model is not None
        return has_model and self.table.n_classes > 1 and self.fits_array

    @property
    def fits_array(self) -> bool:
        """Whether an array of all confusion matrices is small enough to be made."""
        return fits_array(self.table)

    @cached_property
    def is_comparable(self) -> bool:
        """Whether anything compares annotators.

        A classifier, two labels of one item, a label of a gold item, or counts of earlier labels.
        Otherwise any label may be wrong, and nothing shows which.
        """
        if self.has_classifier or self.prior_counts is not None:
            return True
        return is_comparable(self.table, self.gold)

    @cached_property
    def annotators(self) -> AnnotatorPosterior:
        """What is known about each annotator: the one definition of skill."""
        return annotator_posterior(self)

    @cached_property
    def is_counted(self) -> NDArray[np.bool_]:
        """Whether the labels of each item are informative about annotators, shape (n_items,).

        From labels alone, the only label of an item agrees with itself; not if the item is gold.
        """
        counted: NDArray[np.bool_] = (self.table.labels_per_item() > 1) | (self.gold >= 0)
        return counted | self.has_classifier

    def accuracies(self) -> NDArray[np.float64]:
        """Return the accuracy in each class, (n_annotators, n_classes), by blocks of annotators."""
        assert self.annotator_model is not None
        found = [
            self.annotator_model.matrices(who).diagonal(dim1=1, dim2=2).double().cpu().clone()
            for who in self.annotator_model.blocks()
        ]
        accuracies: NDArray[np.float64] = torch.cat(found).numpy()
        return accuracies

    def matrices(self) -> NDArray[np.float64]:
        """Return the confusion matrices, averaged over items; the pool's where there are no labels.

        Returns
        -------
        ndarray of shape (n_annotators, n_classes, n_classes)
            [annotator, true, reported].
        """
        assert self.annotator_model is not None
        matrices = self.annotator_model.matrices().cpu().double().contiguous().numpy()
        n_labels = self.table.labels_per_annotator()
        if self.prior_counts is not None:
            n_labels = n_labels + self.prior_counts.sum(axis=(1, 2))
        return fill_unlabelled(matrices, n_labels)


def fits_array(table: LabelTable) -> bool:
    """Whether an array of the confusion matrices of all annotators is small enough to be made."""
    return table.n_annotators * table.n_classes**2 <= MAX_CELLS
