"""Model-bootstrapped EM (Khetan et al., ICLR 2018): Algorithm 3 of the paper.

As generalized EM, with two changes that let it learn from one label per item. The matrices are
counted from what the network *predicts*, one class per item, so that they need no second label to
disagree with; and the prior of the E-step is the share of each class among these predictions, so
that the network is not counted twice.

The same errors of the paper's listing are corrected as in `gem`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from annotrace.methods.gem import GeneralizedEM
from annotrace.parameters import Count, NotNegative


@dataclass(kw_only=True, eq=False, repr=False)
class ModelBootstrappedEM(GeneralizedEM):
    """EM whose matrices are counted from the network's predictions.

    Parameters
    ----------
    n_steps, smoothing, keep_weights
        As in `GeneralizedEM`. Two steps, as in the original; more feed errors back. Digits with one
        label per item by pairwise flippers at .5, four draws: .866 with two steps, .836 with four;
        .905 with two and ``keep_weights=False``.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.
    """

    n_steps: Count = 2
    smoothing: NotNegative = 0.1

    method: ClassVar[str] = "mbem"

    def _counted(self, truth: Tensor, log_p: Tensor) -> Tensor:
        return F.one_hot(log_p.argmax(1), log_p.shape[1]).to(truth.dtype)

    def _log_prior(self, log_p: Tensor) -> Tensor:
        predicted = F.one_hot(log_p.argmax(1), log_p.shape[1]).double()
        return predicted.mean(0).clamp_min(1e-12).log()
