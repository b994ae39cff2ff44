"""What an earlier fit learned, for one that goes on from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from annotrace.diagnosis import pooled_confusion
from annotrace.errors import InputError, first_few
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import look_up

if TYPE_CHECKING:
    from annotrace.methods.base import CrowdEstimator


@dataclass(frozen=True)
class Before:
    """What an earlier fit learned.

    Attributes
    ----------
    table : LabelTable
    input_shape : tuple of int
    confusion : ndarray of shape (n_annotators, n_classes, n_classes) or None
    fold : ndarray of shape (n_items,) or None
        The part that each item was held out with, where a method has such.
    parts : dict of nn.Module
        All that was learned, by name.
    features : list of str or None
        What the columns of X were called, if they were.
    """

    table: LabelTable
    input_shape: tuple[int, ...]
    confusion: NDArray[Any] | None
    fold: NDArray[np.int64] | None
    parts: dict[str, nn.Module]
    features: list[str] | None

    def check(
        self, table: LabelTable, input_shape: tuple[int, ...], features: list[str] | None
    ) -> None:
        """See that the network fits what is to be learned now."""
        if self.table.classes.tolist() != table.classes.tolist():
            raise InputError(
                f"Expected the classes of the last fit, {self.table.classes.tolist()}, but got "
                f"{table.classes.tolist()}: fit with `warm_start=False`."
            )
        if self.input_shape != input_shape:
            raise InputError(
                f"Expected items of shape {self.input_shape}, as in the last fit, but got "
                f"{input_shape}: fit with `warm_start=False`."
            )
        if self.features and features and self.features != features:
            raise InputError(
                f"Expected the features of the last fit, {first_few(self.features, 10)}, but got "
                f"{first_few(features, 10)}: fit with `warm_start=False`."
            )

    def matrices(self, table: LabelTable) -> NDArray[Any] | None:
        """Give the matrices of a table's annotators by name, the pool's for those unknown."""
        if self.confusion is None:
            return None
        return matrices_by_name(self.table, self.confusion, table)

    def folds(self, table: LabelTable) -> NDArray[np.int64]:
        """Give the fold of each item of a table by name, -1 for those unknown."""
        assert self.fold is not None
        return np.append(self.fold, -1)[look_up(table.items, self.table.items)]


def learned_before(model: CrowdEstimator) -> Before | None:
    """Give what a model has learned so far, if it has."""
    if not hasattr(model, "network_"):
        return None
    return Before(
        model.table_,
        model.input_shape_,
        getattr(model, "confusion_", None),
        getattr(model, "fold_", None),
        model._parts(),
        feature_names(model),
    )


def feature_names(model: CrowdEstimator) -> list[str] | None:
    """Give what the columns of X were called, if they were."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else list(names)


def matrices_by_name(known: LabelTable, confusion: NDArray[Any], table: LabelTable) -> NDArray[Any]:
    """Give the matrices of a table's annotators, of which some are known.

    Parameters
    ----------
    known : LabelTable
        The annotators that the matrices are of.
    confusion : ndarray of shape (n_known, n_classes, n_classes)
    table : LabelTable

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
        The pool's matrix for annotators that are not known.
    """
    pool = pooled_confusion(confusion, known.labels_per_annotator())
    with_pool = np.concatenate([confusion, pool[None]])
    found: NDArray[Any] = with_pool[look_up(table.annotators, known.annotators)]
    return found
