"""What everything fitted on a crowd has in common: diagnosis, intervals, annotators, suspects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis.confidence import calibrated_posterior, confidence
from annotrace.diagnosis.suspects import label_probabilities, rank_suspects
from annotrace.diagnosis.verdict import Diagnosis, diagnose
from annotrace.diagnosis.wording import describe_flags
from annotrace.estimators import check_fitted
from annotrace.labels.frames import convert_frame, named_series


class FittedCrowd:
    """Mixin of estimators and aggregations whose `fit` sets `result_`.

    Everything here is a function of `result_`, computed at first access.
    """

    result_: CrowdResult

    def set_confusion(self, result: CrowdResult) -> None:
        """Set `confusion_`, unless the matrices are too many for an array."""
        self.__dict__.pop("confusion_", None)
        if result.fits_array:
            self.confusion_ = result.matrices()

    @property
    def confidence_(self) -> NDArray[np.float64]:
        """Calibrated probability of each item's estimated class, shape (n_items,).

        Never above its posterior, which assumes independent errors, except that shares of votes
        are not probabilities; see `annotrace.diagnosis.confidence`. Without an annotator model it
        is the posterior. If nothing compares annotators, it is at most 0.5.
        """
        return confidence(self._fitted_result())

    @property
    def diagnosis_(self) -> Diagnosis:
        """Whether labels identify the true classes, why not, and what would help."""
        result = self._annotated_result()
        kept: tuple[CrowdResult, Diagnosis] | None = vars(self).get("_diagnosis")
        if kept is None or kept[0] is not result:
            kept = vars(self)["_diagnosis"] = result, diagnose(result)
        return kept[1]

    @property
    def skill_(self) -> NDArray[np.float64]:
        """The mean diagonal of each annotator's confusion matrix, shape (n_annotators,).

        Shrunk towards the pool where labels are few; see `annotrace.crowd.skills`.
        """
        return self._annotated_result().annotators.skill

    @property
    def confusion_low_(self) -> NDArray[np.float64]:
        """Lower ends of the 90 % intervals of the confusion matrices, of the same shape."""
        return self._annotated_result().annotators.cell_interval()[0]

    @property
    def confusion_high_(self) -> NDArray[np.float64]:
        """Upper ends of the 90 % intervals of the confusion matrices, of the same shape."""
        return self._annotated_result().annotators.cell_interval()[1]

    @property
    def annotators_(self) -> Any:
        """A frame of what is known about each annotator.

        The columns are annotator, n_labels, skill, low, high (its 90 % interval), accuracy (the
        share of the annotator's labels that are correct), accuracy_low, accuracy_high and flags.
        Methods that do not model annotators return annotator and n_labels only.
        """
        result = self._fitted_result()
        diagnosis = self.diagnosis_ if result.models_annotators else None
        return convert_frame(annotator_frame(result, diagnosis), result.table.frame_library)

    def suspect_labels(self, n: int | None = None) -> Any:
        """Return the labels most likely wrong, the most suspicious first.

        Parameters
        ----------
        n : int, optional
            How many; all labels by default.

        Returns
        -------
        frame
            item, annotator, label, probability (that the label is correct), likeliest (estimated
            class of the item), confidence (calibrated probability of that class).
        """
        result = self._fitted_result()
        return convert_frame(suspect_frame(result, n), result.table.frame_library)

    def _fitted_result(self) -> CrowdResult:
        check_fitted(self)
        return self.result_

    def _annotated_result(self) -> CrowdResult:
        result = self._fitted_result()
        if not result.fits_array:
            raise AttributeError(
                "The confusion matrices are too many for an array, so that annotators are not "
                "diagnosed: use `result_.accuracies()` and `annotator_model_.matrices(annotators)`."
            )
        if not result.models_annotators:
            raise AttributeError(
                f"{type(self).__name__} does not model annotators, or there is one class only, so "
                "there is nothing to diagnose."
            )
        return result


def annotator_frame(result: CrowdResult, diagnosis: Diagnosis | None) -> Any:
    """Return what is known about each annotator as a polars frame.

    Parameters
    ----------
    result : CrowdResult
    diagnosis : Diagnosis or None
        None if annotators are not modelled: the frame then has annotator and n_labels only, and the
        skill if their matrices are too many for an array.
    """
    import polars as pl

    table = result.table
    columns: dict[str, Any] = {
        "annotator": table.annotators.tolist(),
        "n_labels": table.labels_per_annotator(),
    }
    if result.annotator_model is not None and not result.fits_array:
        columns["skill"] = result.accuracies().mean(axis=1)
    if diagnosis is not None:
        columns["skill"] = result.annotators.skill
        columns["low"], columns["high"] = result.annotators.skill_interval()
        columns["accuracy"] = result.annotators.accuracy
        ends = result.annotators.accuracy_interval()
        columns["accuracy_low"], columns["accuracy_high"] = ends
        words = {flags: describe_flags(flags, table) for flags in set(diagnosis.flags)}
        columns["flags"] = [words[flags] for flags in diagnosis.flags]
    return pl.DataFrame(columns)


def suspect_frame(result: CrowdResult, n: int | None = None) -> Any:
    """Return the labels most likely wrong as a polars frame; see `FittedCrowd.suspect_labels`."""
    import polars as pl

    table, posterior, estimate = result.table, calibrated_posterior(result), result.estimate
    rows = rank_suspects(table, posterior, n)
    item = table.item[rows]
    return pl.DataFrame(
        {
            "item": named_series(table.items, item),
            "annotator": named_series(table.annotators, table.annotator[rows]),
            "label": named_series(table.classes, table.label[rows]),
            "probability": label_probabilities(table, posterior)[rows],
            "likeliest": named_series(table.classes, estimate[item]),
            "confidence": posterior[item, estimate[item]],
        }
    )
