"""Regularised estimation of annotator confusion (Tanno et al., CVPR 2019).

Each annotator r has a confusion matrix A^(r), A[i, j] = p(reports j | true class i), and a network
gives p(i | x). Both are learned by gradient descent on the cross-entropy of the labels plus the
trace of the matrices (the paper's eq. 4, scaled as in its listing)::

    1/N sum_n sum_{r labelled n} -log (sum_i p(i | x_n) A^(r)[i, label]) + lam 1/R sum_r tr A^(r)

The likelihood alone cannot tell confusion from a confused classifier; the trace asks for the most
confused annotators that explain the labels. Where the mean matrix is diagonally dominant (class by
class, items of it are called by its name more often than items of any other class), the smallest
trace is the true one.

Use it where annotators err in ways of their own and labels are few, one an item even. Do not
expect it to work where most annotators are wrong about a class in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from annotrace.methods.base import CrowdEstimator
from annotrace.models import Confusion, trace_regularized_nll
from annotrace.models.confusion import Parametrization
from annotrace.training import Batch, CrowdData, Epoch, Settings

SPARSE_ABOVE = 50_000
"""Weights from which stepping all matrices costs more than finding those of the batch."""


@dataclass(kw_only=True, eq=False, repr=False)
class TraceRegularized(CrowdEstimator):
    """The paper's model: a network and a confusion matrix an annotator, the trace as a penalty.

    Parameters
    ----------
    lam : float
        Scale of the mean trace; 0 is the paper's ablation.
    confusion_lr : float, optional
        How many times the network's rate the matrices learn at: 30 by default, 1 by the paper's
        protocol. At one rate for both, the network has memorised the noise of a small set before
        the matrices have moved.
    parametrization : {"softplus", "softmax"}
    diagonal : float, optional
        Starting probability of a right label: .7 by default, the paper's weights 6I - 5 (.956 at
        ten classes) by its protocol.
    **others
        See `CrowdEstimator`.

    Examples
    --------
    >>> from annotrace.data import load_digits
    >>> from annotrace.simulate import hammer_spammers, simulate_labels
    >>> train, test = load_digits().split(1400)
    >>> table = simulate_labels(train.y, hammer_spammers(5, 10, 0.5, random_state=0),
    ...                         labels_per_item=1, random_state=0)
    >>> model = TraceRegularized(random_state=0).fit(train.X, table)
    >>> bool(model.score(test.X, test.y) > 0.85)
    True
    """

    lam: float = 0.01
    confusion_lr: float | None = None
    parametrization: Parametrization = "softplus"
    diagonal: float | None = None

    method: ClassVar[str] = "trace"

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        learned = nn.ModuleDict(self._parts())

        def objective(batch: Batch) -> Tensor:
            logits = self.network_(batch.inputs)
            return trace_regularized_nll(
                logits, self.confusion_layer_, batch.row, batch.annotator, batch.label, self.lam
            )

        history = self._train(learned, objective, self._label_loss, data, settings)
        self.confusion_ = self.confusion_layer_.matrices().double().cpu().numpy()
        return history

    def _build_parts(self, device: torch.device) -> None:
        table = self.table_
        frequency = torch.from_numpy(table.labels_per_annotator() / table.n_items).float()
        self.confusion_layer_ = Confusion(
            table.n_annotators,
            table.n_classes,
            parametrization=self.parametrization,
            diagonal=self._or_protocol("diagonal"),
            lr_scale=self._or_protocol("confusion_lr"),
            sparse=table.n_annotators * table.n_classes**2 > SPARSE_ABOVE,
            frequency=frequency,
        ).to(device)

    def _parts(self) -> dict[str, nn.Module]:
        return {"network": self.network_, "confusion": self.confusion_layer_}

    def _columns(self) -> Confusion:
        return self.confusion_layer_
