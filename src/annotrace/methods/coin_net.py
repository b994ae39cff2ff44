"""COINNet (Nguyen, Ibrahim and Fu, NeurIPS 2024): confusion matrices and outliers.

A network gives p(x), and annotator r has a confusion matrix A^(r). Some labels are outliers, which
the matrix does not explain: the distribution of the label of item n is shifted by e(n, r), which
sums to zero::

    q(n, r) = A^(r)T p(x_n) + e(n, r),  clipped to 0 and 1 and divided by its sum

The loss is the mean cross-entropy of the labels, a penalty that leaves most items without outliers,
and the volume of the predictions, as in `GeoCrowdLayer`::

    - mean log q(n, r)[label]
    + mu1 mean_n (sum_r |e(n, r)|^2)^(p/2)
    - mu2 log det sum_n p(x_n) p(x_n)^T

With several annotators an outlier shows by leaving the subspace that the labels of other items
span; one annotator alone is not enough.

The paper leaves open what an outlier says about the true class: here its shift is the same for all
classes (see `OutlierConfusion`), so that the posterior trusts such a label less. Held-out labels
have no outlier, and neither have new items. A warm start begins without outliers. The settings of
the matrices are those of `TraceRegularized`.

Use it where good annotators fail on single items, several labels per item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotrace.crowd.confusion import Confusion
from annotrace.crowd.label_outliers import LabelOutliers, OutlierConfusion, add_outliers
from annotrace.crowd.sums import sum_groups
from annotrace.methods.geo_crowd_layer import log_determinant
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.recipe import Trial
from annotrace.parameters import NotNegative, Positive
from annotrace.training import Batch, CrowdData, Epoch, Settings

ROUNDING = 1e-10
"""Added to squared norms, so that the penalty has a gradient at zero."""


@dataclass(kw_only=True, eq=False, repr=False)
class COINNet(NetworkEstimator):
    """A network, a confusion matrix per annotator, and outliers.

    Parameters
    ----------
    mu1 : float
        Weight of the penalty of outliers.
    mu2 : float
        Weight of the log-volume of the predictions.
    p : float
        Power of the norm of an item's outliers, at most 1: the smaller, the fewer items have any.
    outlier_lr : float
        Learning rate of the outliers as a multiple of the network's.
    confusion_lr, diagonal
        As in `TraceRegularized`.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.
    """

    mu1: NotNegative = 0.01
    mu2: NotNegative = 0.01
    p: Positive = 0.4
    outlier_lr: Positive = 1.0
    confusion_lr: Positive | None = None
    diagonal: float | None = None

    method: ClassVar[str] = "coin-net"
    repairs_classes: ClassVar[bool] = True

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Minimise cross-entropy, penalty and negative log-volume over minibatches."""
        self._build_modules(data.device)
        if trial.start is not None:
            self._annotators.set_matrices(torch.from_numpy(trial.start.matrices))
        learned = nn.ModuleDict(self.learned_modules())
        return self._train(learned, self._objective(data, trial.mixup), data, settings)

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        outliers = self._annotators.outliers(batch.item[batch.row], batch.annotator)
        matrices = self._annotators.nominal.log_matrices()[batch.annotator]

        def label_loss(given: Tensor) -> Tensor:
            reported = reported_log_proba(given[batch.row], matrices, outliers)
            return F.nll_loss(reported, batch.label, reduction="sum") / max(len(batch.label), 1)

        loss = self._with_gold(batch, logits, label_loss)
        loss = loss + self.mu1 * outlier_penalty(outliers, batch.row, len(logits), self.p)
        predictions = torch.softmax(logits.float(), 1)
        return loss - self.mu2 * log_determinant(predictions.T @ predictions)

    @property
    def _annotators(self) -> OutlierConfusion:
        assert isinstance(self.annotator_model_, OutlierConfusion)
        return self.annotator_model_

    def _build_modules(self, device: torch.device) -> None:
        table = self.table_
        sizes = table.n_annotators, table.n_classes
        nominal = Confusion(
            *sizes,
            diagonal=self._or_protocol("diagonal"),
            lr_scale=self._or_protocol("confusion_lr"),
        )
        item, annotator = (
            torch.from_numpy(codes.astype(np.int64)) for codes in (table.item, table.annotator)
        )
        outliers = LabelOutliers(item, annotator, *sizes, lr_scale=self.outlier_lr)
        self.annotator_model_ = OutlierConfusion(nominal, outliers).to(device)


def reported_log_proba(logits: Tensor, log_matrices: Tensor, outliers: Tensor) -> Tensor:
    """Return the log-probability of each report of labels, shape (n_labels, n_classes).

    Parameters
    ----------
    logits : Tensor of shape (n_labels, n_classes)
        Of the item of each label.
    log_matrices : Tensor of shape (n_labels, n_classes, n_classes)
        Of its annotator.
    outliers : Tensor of shape (n_labels, n_classes)
    """
    log_p = F.log_softmax(logits.to(log_matrices.dtype), dim=1)
    reported = torch.logsumexp(log_p[:, :, None] + log_matrices, dim=1)
    return add_outliers(reported.exp(), outliers).log()


def outlier_penalty(outliers: Tensor, row: Tensor, n_rows: int, p: float) -> Tensor:
    """Return the mean over rows of the norm of all their outliers to the power of p, shape ().

    Parameters
    ----------
    outliers : Tensor of shape (n_labels, n_classes)
    row : LongTensor of shape (n_labels,)
        The row, an item, of each label.
    n_rows : int
    p : float
    """
    (squares,) = sum_groups(outliers.square().sum(1, keepdim=True), (row, n_rows))
    return (squares + ROUNDING).pow(p / 2).mean()
