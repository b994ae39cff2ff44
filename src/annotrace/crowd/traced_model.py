"""Annotator models that give the likelihood of labels and traces of matrices in one pass."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from annotrace.crowd.annotator_model import AnnotatorModel, check_shape
from annotrace.crowd.safe_math import at_least_float32
from annotrace.errors import InputError


class TracedModel(AnnotatorModel):
    """An annotator model that estimates its mean trace from the labels of a batch.

    A step then touches the annotators of its batch only, however many there are.
    """

    _trace_weight: Tensor | None

    @abstractmethod
    def log_likelihood_and_traces(self, annotator: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return `log_likelihood` and the trace of each label's annotator, in one pass.

        Returns
        -------
        log_likelihood : Tensor of shape (n_labels, n_classes)
        traces : Tensor of shape (n_labels,)
        """

    @abstractmethod
    def mean_of_all_traces(self) -> Tensor:
        """Return the mean trace over all annotators, shape ()."""

    def mean_trace(self, annotator: Tensor | None = None, n_rows: int | None = None) -> Tensor:
        """Return the mean over annotators of the trace of their matrices, shape ().

        Parameters
        ----------
        annotator : LongTensor of shape (n_labels,), optional
            The annotators of a batch's labels, from which the mean over all annotators is then
            estimated without bias. A sparse `Confusion` needs it.
        n_rows : int, optional
            The number of items in the batch; needed with `annotator`.
        """
        if annotator is None:
            return self.mean_of_all_traces()
        if n_rows is None:
            raise InputError("`mean_trace(annotator)` needs `n_rows`, the items of the batch.")
        traces = self.log_likelihood_and_traces(annotator, torch.zeros_like(annotator))[1]
        return torch.dot(traces, self.trace_weights(annotator, n_rows))

    def trace_weights(self, annotator: Tensor, n_rows: int) -> Tensor:
        """Return the weight of each label's trace in the estimate of the mean trace, (n_labels,).

        An annotator with n labels among N items has n B / N labels in a batch of B items, on
        average; each brings N / (n B R) of the trace, which sums to 1 / R.
        """
        if self._trace_weight is None:
            raise InputError(
                "Estimating the mean trace from a batch requires the label frequencies: give "
                f"`{type(self).__name__}(..., frequency=labels_per_annotator / n_items)`."
            )
        return at_least_float32(self._trace_weight.index_select(0, annotator)) / n_rows

    def _set_frequency(self, frequency: Tensor | None) -> None:
        """Keep the weight of an annotator's trace, (n_annotators,); 0 for those without labels."""
        weight = None
        if frequency is not None:
            check_shape("frequency", frequency, (self.n_annotators,))
            weight = 1 / (frequency.float() * torch.count_nonzero(frequency))
            weight = torch.where(frequency > 0, weight, 0.0)
        self.register_buffer("_trace_weight", weight, persistent=False)
