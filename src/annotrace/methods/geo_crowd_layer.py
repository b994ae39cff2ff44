"""Geometry-regularised crowd layer (Ibrahim, Nguyen and Fu, ICLR 2023).

As in `TraceRegularized`, a network p(i | x) and a confusion matrix A^(r) per annotator are learned
together from the cross-entropy of the labels. In place of the trace, the loss rewards volume::

    F:  - lam log det sum_n p(x_n) p(x_n)^T        (predictions spread over the classes)
    W:  - lam log det sum_r A^(r) A^(r)^T          (rows of the matrices differ)

Both criteria identify the truth up to the order of classes: F if some items are nearly certain of
each class, W if some annotator is nearly perfect on each. The initial diagonal decides the order.

Use "F" where classes are well separated, "W" where there are a few experts. With ``lam=0`` it is
the plain crowd layer (Rodrigues and Pereira, AAAI 2018) with matrices whose rows sum to one;
`CrowdLayer` has that paper's own weights, which a softmax follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from annotrace.crowd.confusion import Confusion
from annotrace.crowd.losses import crowd_nll
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.recipe import Trial
from annotrace.parameters import NotNegative, Positive
from annotrace.training import Batch, CrowdData, Epoch, Settings

RIDGE = 1e-6
"""Added to the diagonal: a batch may lack a class."""


@dataclass(kw_only=True, eq=False, repr=False)
class GeoCrowdLayer(NetworkEstimator):
    """A network and a confusion matrix per annotator, with a volume as regulariser.

    Parameters
    ----------
    volume : {"F", "W"}
        Of the predictions, or of the confusion matrices.
    lam : float
        Weight of the log-volume, the paper's .001 by default; 0 for none.
    confusion_lr, diagonal
        As in `TraceRegularized`.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.
    """

    volume: Literal["F", "W"] = "F"
    lam: NotNegative = 0.001
    confusion_lr: Positive | None = None
    diagonal: float | None = None

    method: ClassVar[str] = "geo-crowd-layer"
    repairs_classes: ClassVar[bool] = True

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Minimise the cross-entropy of the labels minus the log-volume."""
        self._build_modules(data.device)
        if trial.start is not None:
            self._layer.set_matrices(torch.from_numpy(trial.start.matrices))
        learned = nn.ModuleDict(self.learned_modules())
        return self._train(learned, self._objective(data, trial.mixup), data, settings)

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        labels = (batch.row, batch.annotator, batch.label)
        nll = self._with_gold(batch, logits, lambda given: crowd_nll(given, self._layer, *labels))
        return nll - self.lam * self._log_volume(logits) if self.lam else nll

    def _log_volume(self, logits: Tensor) -> Tensor:
        # In half precision rounding can make the product indefinite, and its determinant NaN.
        with torch.autocast(logits.device.type, enabled=False):
            if self.volume == "F":
                predictions = torch.softmax(logits.float(), 1)
                return log_determinant(predictions.T @ predictions)
            matrices = self._layer.log_matrices().exp()
            return log_determinant(torch.einsum("rij,rkj->ik", matrices, matrices))

    @property
    def _layer(self) -> Confusion:
        assert isinstance(self.annotator_model_, Confusion)
        return self.annotator_model_

    def _build_modules(self, device: torch.device) -> None:
        self.annotator_model_ = Confusion(
            self.table_.n_annotators,
            self.table_.n_classes,
            diagonal=self._or_protocol("diagonal"),
            lr_scale=self._or_protocol("confusion_lr"),
        ).to(device)


def log_determinant(gram: Tensor) -> Tensor:
    """Return log det of a positive semidefinite matrix (n, n), a small ridge added."""
    ridge = RIDGE * torch.eye(len(gram), device=gram.device, dtype=gram.dtype)
    # Unlike `logdet` it does not wait for the device, so that a step can be recorded.
    factor, _ = torch.linalg.cholesky_ex(gram + ridge)
    half: Tensor = factor.diagonal().log().sum()
    return 2 * half
