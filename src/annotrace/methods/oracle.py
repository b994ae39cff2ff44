"""The confusion matrices given: how well the classifier could do if the annotators were known.

The upper bound of the paper's figures. Also of use where annotators are known from their past.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from annotrace.errors import InputError
from annotrace.methods.base import CrowdEstimator
from annotrace.models import FixedConfusion, crowd_nll
from annotrace.training import Batch, CrowdData, Epoch, Settings


@dataclass(kw_only=True, eq=False, repr=False)
class Oracle(CrowdEstimator):
    """A classifier learned through known confusion matrices.

    Parameters
    ----------
    confusion : array-like of shape (n_annotators, n_classes, n_classes)
        confusion[annotator, true, reported], in the order of the table's annotators and classes.
    **others
        See `CrowdEstimator`.
    """

    confusion: Any = None

    method: ClassVar[str] = "oracle"

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        self._layer.set_matrices(self._given())

        def objective(batch: Batch) -> Tensor:
            def label_loss(logits: Tensor) -> Tensor:
                return crowd_nll(logits, self._layer, batch.row, batch.annotator, batch.label)

            return self._with_gold(batch, self.network_(batch.inputs), label_loss)

        history = self._train(self.network_, objective, self._label_loss, data, settings)
        self.confusion_ = self._layer.matrices().cpu().double().numpy()
        return history

    def _given(self) -> Tensor:
        expected = (self.table_.n_annotators, self.table_.n_classes, self.table_.n_classes)
        if self.confusion is None or np.shape(self.confusion) != expected:
            got = None if self.confusion is None else np.shape(self.confusion)
            raise InputError(
                f"Expected `confusion` of shape {expected} (annotators, true, reported), "
                f"but got {got}."
            )
        return torch.as_tensor(np.asarray(self.confusion, dtype=np.float32))

    def _build_parts(self, device: torch.device) -> None:
        self._layer = FixedConfusion(self.table_.n_annotators, self.table_.n_classes).to(device)

    def _parts(self) -> dict[str, nn.Module]:
        return {"network": self.network_, "confusion": self._layer}

    def _columns(self) -> FixedConfusion:
        return self._layer
