"""What everything that was fitted on a crowd can say of itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.confidence import (
    calibrated_probabilities,
    counted_matrices,
    counted_posterior,
    half_right,
    settled,
)
from annotrace.diagnosis.past import with_past
from annotrace.diagnosis.suspects import label_probabilities, rank_suspects
from annotrace.diagnosis.verdict import Diagnosis, diagnose
from annotrace.labels.frames import convert_frame, named_series
from annotrace.labels.table import LabelTable


class Diagnosed:
    """Diagnosis, intervals and suspects, from a table, a posterior and confusion matrices.

    Worked out when first asked for, and kept as long as the posterior is the same.

    Attributes
    ----------
    confidence_ : ndarray of shape (n_items,)
        How sure to be of the class given to each item.
    diagnosis_ : Diagnosis
        Whether the labels show the truth; ``print(model.diagnosis_)`` says it in words.
    confusion_low_, confusion_high_ : ndarray of shape (n_annotators, n_classes, n_classes)
        90 % intervals of the cells of the matrices.
    annotators_ : frame
        annotator, n_labels, skill, low, high (its 90 % interval), flags.
    """

    table_: LabelTable
    posterior_: NDArray[Any]
    confusion_: NDArray[Any]
    gold_: NDArray[Any]

    def _without_labels(self) -> NDArray[Any] | None:
        """Say what is known without an item's labels, if it is not to be had from the posterior.

        How common classes are, (n_classes,), where no classifier ties the items together; or what
        a classifier says that has not seen them, (n_items, n_classes).
        """
        return None

    def _labels_alone(self) -> bool:
        """Tell whether no classifier has had a part in the posterior."""
        known = self._without_labels()
        return known is not None and known.ndim == 1

    def _compares(self) -> bool:
        """Tell whether anything compares annotators; if not, any label may be wrong."""
        return True

    def _past(self) -> NDArray[Any] | None:
        """Give counts [annotator, true, reported] of an earlier time, if there are any."""
        return None

    def _by_vote(self) -> bool:
        """Tell whether `posterior_` is shares of votes, which are no probabilities."""
        return False

    def _estimate(self) -> NDArray[np.integer[Any]]:
        """Give the code of the class that each item is given, shape (n_items,)."""
        likeliest: NDArray[np.int64] = self.posterior_.argmax(axis=1)
        return likeliest

    def _scored(self) -> LabelTable:
        """Give the table without the truth that was learned from: it would score itself."""
        table = self.table_
        if table.truth is None:
            return table
        return table.replace(truth=np.where(self._learned(), np.int32(-1), table.truth))

    def _learned(self) -> NDArray[np.bool_]:
        """Tell of which items the class was given to learn from, shape (n_items,)."""
        given: NDArray[np.bool_] = getattr(self, "gold_", np.full(self.table_.n_items, -1)) >= 0
        return given

    def _chances(self) -> NDArray[Any]:
        """Give `posterior_` made less sure, as people err together; certain where it is known."""
        self._check_fitted()
        chances = self._believed()
        if self._models_annotators() and self._compares():
            matrices, estimate = self.confusion_, self._estimate()
            if self._by_vote():
                matrices = counted_matrices(self.table_, estimate)
            chances = calibrated_probabilities(self.table_, chances, matrices, estimate)
        return settled(chances, self.gold_) if hasattr(self, "gold_") else chances

    def _believed(self) -> NDArray[np.float64]:
        """Give the probability of every class if people err independently, as `posterior_`."""
        if self._models_annotators() and not self._compares():
            return half_right(self.posterior_)
        if self._models_annotators() and self._by_vote():
            return counted_posterior(self.table_, self._estimate())
        return self.posterior_.astype(np.float64)

    @property
    def confidence_(self) -> NDArray[Any]:
        """How sure to be of the class given to each item, shape (n_items,).

        Never above what `posterior_` has, which takes mistakes for independent, nor below a guess,
        1 / n_classes: see `annotrace.diagnosis.confidence`. Methods that do not model annotators
        give their own word.
        Where nothing compares annotators, a label is as likely right as wrong: 0.5.
        Votes are weighed by how often each annotator goes with the class given, and it may be above
        their shares, which are no probabilities.
        """
        chances = self._chances()
        sure: NDArray[Any] = chances[np.arange(len(chances)), self._estimate()]
        return sure

    @property
    def diagnosis_(self) -> Diagnosis:
        """Whether the labels show the truth, why not, and what would help."""
        self._check_diagnosable()
        kept: tuple[Any, Diagnosis] | None = self.__dict__.get("_diagnosed")
        if kept is None or kept[0] is not self.posterior_:
            table, posterior, gold = self.table_, self.posterior_, getattr(self, "gold_", None)
            if (past := self._past()) is not None:
                table, posterior, gold = with_past(table, posterior, self.gold_, past)
            prior = self._without_labels()
            kept = (
                self.posterior_,
                diagnose(table, posterior, self.confusion_, prior=prior, gold=gold),
            )
            self.__dict__["_diagnosed"] = kept
        return kept[1]

    @property
    def confusion_low_(self) -> NDArray[np.float64]:
        """Lower ends of the 90 % intervals of `confusion_`."""
        return self.diagnosis_.crowd.cells()[0]

    @property
    def confusion_high_(self) -> NDArray[np.float64]:
        """Upper ends of the 90 % intervals of `confusion_`."""
        return self.diagnosis_.crowd.cells()[1]

    @property
    def annotators_(self) -> Any:
        """What is known of each annotator, as `LabelTable.to_frame` has frames.

        `skill` is the mean of what `low` and `high` are the interval of: drawn to the crowd's
        where labels are few. Methods that do not model annotators have no skills.
        """
        return convert_frame(self._people(), self.table_.frame_library)

    def _people(self) -> Any:
        """Give `annotators_` as a polars frame."""
        import polars as pl

        self._check_fitted()
        columns: dict[str, Any] = {
            "annotator": self.table_.annotators.tolist(),
            "n_labels": self.table_.labels_per_annotator(),
        }
        if self._models_annotators():
            found = self.diagnosis_
            columns["skill"] = found.crowd.moments.skill_mean
            columns["low"], columns["high"] = found.crowd.skills()
            columns["flags"] = ["; ".join(flags) for flags in found.flags]
        return pl.DataFrame(columns)

    def suspect_labels(self, n: int | None = None) -> Any:
        """Give the labels most likely wrong, the worst first, as the report has them.

        Chances are those of `confidence_`: less sure than `posterior_`, as people err together.

        Parameters
        ----------
        n : int, optional
            How many; all unless given.

        Returns
        -------
        frame
            item, annotator, label, probability (that the label is right), likeliest (class of the
            item), confidence (how sure to be of that).
        """
        import polars as pl

        self._check_fitted()
        table, chances, estimate = self.table_, self._chances(), self._estimate()
        rows = rank_suspects(table, chances, n)
        item = table.item[rows]
        suspects = pl.DataFrame(
            {
                "item": named_series(table.items, item),
                "annotator": named_series(table.annotators, table.annotator[rows]),
                "label": named_series(table.classes, table.label[rows]),
                "probability": label_probabilities(table, chances)[rows],
                "likeliest": named_series(table.classes, estimate[item]),
                "confidence": chances[item, estimate[item]],
            }
        )
        return convert_frame(suspects, table.frame_library)

    def _check_fitted(self) -> None:
        """Raise the error of an estimator that has not been fitted."""

    def _models_annotators(self) -> bool:
        return hasattr(self, "confusion_") and self.table_.n_classes > 1

    def _check_diagnosable(self) -> None:
        self._check_fitted()
        if not self._models_annotators():
            raise AttributeError(
                f"{type(self).__name__} has learned nothing of annotators, so there is nothing to "
                "diagnose: that takes a method with `confusion_`, and two classes."
            )
