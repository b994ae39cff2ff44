"""The confusion matrices given: how good the classifier would be if the annotators were known.

The upper bound of the paper's figures. Also of use where annotators are known from earlier work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from annotrace.crowd.annotator_model import FixedMatrices
from annotrace.crowd.losses import crowd_nll
from annotrace.errors import InputError
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.recipe import Trial
from annotrace.training import Batch, CrowdData, Epoch, Settings


@dataclass(kw_only=True, eq=False, repr=False)
class Oracle(NetworkEstimator):
    """A classifier learned through known confusion matrices.

    Parameters
    ----------
    confusion : array-like of shape (n_annotators, n_classes, n_classes)
        confusion[annotator, true, reported], in the order of the table's annotators and classes.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.
    """

    confusion: Any = None

    method: ClassVar[str] = "oracle"

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Minimise the cross-entropy of the labels through the given matrices."""
        matrices = torch.as_tensor(np.asarray(self._checked(), dtype=np.float32))
        self.annotator_model_ = FixedMatrices(matrices).to(data.device)
        return self._train(self.network_, self._objective(data, trial.mixup), data, settings)

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        model, labels = self.annotator_model_, (batch.row, batch.annotator, batch.label)
        assert model is not None
        return self._with_gold(batch, logits, lambda given: crowd_nll(given, model, *labels))

    def _checked(self) -> Any:
        expected = (self.table_.n_annotators, self.table_.n_classes, self.table_.n_classes)
        if self.confusion is None or np.shape(self.confusion) != expected:
            got = None if self.confusion is None else np.shape(self.confusion)
            raise InputError(
                f"Expected `confusion` of shape {expected} (annotators, true, reported), "
                f"but got {got}."
            )
        return self.confusion

    def _build_modules(self, device: torch.device) -> None:
        sizes = self.table_.n_annotators, self.table_.n_classes
        self.annotator_model_ = FixedMatrices.uniform(*sizes).to(device)
