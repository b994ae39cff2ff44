"""A previous fit, for one that continues from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.crowd.pool import pooled_confusion
from annotrace.data import EncoderRecord
from annotrace.errors import InputError, first_few
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import look_up


@dataclass(frozen=True)
class Previous:
    """What a previous fit learned.

    Attributes
    ----------
    table : LabelTable
    input_kind : {"array", "text"}
    input_shape : tuple of int
    encoder : EncoderRecord or None
    feature_names : ndarray of shape (n_features,) or None
        The columns of X, if they have names.
    confusion : ndarray of shape (n_annotators, n_classes, n_classes) or None
    fold : ndarray of shape (n_items,) or None
        The fold of each item, if the method has folds.
    oof_proba : ndarray of shape (n_items, n_classes) or None
        Out-of-fold predictions, if the method has folds.
    modules : dict of nn.Module
        All learned modules by name.
    """

    table: LabelTable
    input_kind: str
    input_shape: tuple[int, ...]
    encoder: EncoderRecord | None
    feature_names: NDArray[Any] | None
    confusion: NDArray[Any] | None
    fold: NDArray[np.int64] | None
    oof_proba: NDArray[np.float64] | None
    modules: dict[str, nn.Module]

    @classmethod
    def of(cls, model: Any) -> Previous:
        """Return what a fitted estimator has learned."""
        return cls(
            model.table_,
            model.input_kind_,
            model.input_shape_,
            model.encoder_,
            getattr(model, "feature_names_in_", None),
            getattr(model, "confusion_", None),
            getattr(model, "fold_", None),
            getattr(model, "oof_proba_", None),
            model.learned_modules(),
        )

    def check(self, model: Any, table: LabelTable, encoder: EncoderRecord | None) -> None:
        """Raise an `InputError` if the learned network does not fit the new data.

        The input of the new data is set in the estimator already.
        """
        if self.table.classes.tolist() != table.classes.tolist():
            raise InputError(
                f"Expected the classes of the last fit, {self.table.classes.tolist()}, but got "
                f"{table.classes.tolist()}: fit with `warm_start=False`."
            )
        if self.input_kind != model.input_kind_:
            words = {"array": "numbers", "text": "texts"}
            raise InputError(
                f"Expected {words[self.input_kind]}, as in the last fit, but got "
                f"{words[model.input_kind_]}: fit with `warm_start=False`."
            )
        if self.input_shape != model.input_shape_:
            raise InputError(
                f"Expected items of shape {self.input_shape}, as in the last fit, but got "
                f"{model.input_shape_}: fit with `warm_start=False`."
            )
        if encoder is not None and self.encoder is not None and encoder != self.encoder:
            raise InputError(
                f"Expected features by the encoder of the last fit, {self.encoder.name}, but got "
                f"those by {encoder.name}: fit with `warm_start=False`."
            )
        old, new = self.feature_names, getattr(model, "feature_names_in_", None)
        if old is not None and new is not None and list(old) != list(new):
            raise InputError(
                f"Expected the features of the last fit, {first_few(old, 10)}, but got "
                f"{first_few(new, 10)}: fit with `warm_start=False`."
            )

    def matrices(self, table: LabelTable) -> NDArray[Any]:
        """Return the matrices of a table's annotators by name; the pool's for new ones."""
        assert self.confusion is not None
        return matrices_by_name(self.table, self.confusion, table)

    def folds(self, table: LabelTable) -> NDArray[np.int64]:
        """Return the fold of each item of a table by name, -1 for new ones."""
        assert self.fold is not None
        return np.append(self.fold, -1)[look_up(table.items, self.table.items)]

    def out_of_fold(self, table: LabelTable, log_proba: Tensor) -> Tensor:
        """Return the log of predictions by networks that have not learned from an item.

        Parameters
        ----------
        table : LabelTable
        log_proba : Tensor of shape (n_items, n_classes)
            For the items of the table that are new.
        """
        assert self.oof_proba is not None
        before = torch.from_numpy(self.oof_proba).clamp_min(1e-12).log()
        place = torch.from_numpy(look_up(table.items, self.table.items))
        return torch.where(place[:, None] >= 0, before[place], log_proba)


def matrices_by_name(known: LabelTable, confusion: NDArray[Any], table: LabelTable) -> NDArray[Any]:
    """Return the matrices of a table's annotators, matched by name.

    Parameters
    ----------
    known : LabelTable
        The annotators whose matrices are given.
    confusion : ndarray of shape (n_known, n_classes, n_classes)
    table : LabelTable

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
        The pool's matrix for annotators who are not known.
    """
    pool = pooled_confusion(confusion, known.labels_per_annotator())
    with_pool = np.concatenate([confusion, pool[None]])
    found: NDArray[Any] = with_pool[look_up(table.annotators, known.annotators)]
    return found
