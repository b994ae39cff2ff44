"""A plain classifier: cross-entropy on the majority vote of an item, or on every label.

The baseline of every other method. A network trained like this learns the noise of its annotators
along with the truth; weight decay and early stopping only delay that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from annotrace.methods.targets import TargetEstimator, majority_targets
from annotrace.training import Settings


@dataclass(kw_only=True, eq=False, repr=False)
class Vanilla(TargetEstimator):
    """A classifier that takes the labels for the truth.

    Parameters
    ----------
    targets : {"majority", "every"}
        What the network learns: the majority vote of each item, ties broken by `random_state`; or
        every label by itself.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.
    """

    targets: Literal["majority", "every"] = "majority"

    method: ClassVar[str] = "vanilla"

    def _make_targets(self, settings: Settings) -> Tensor:
        if self.targets == "majority":
            return majority_targets(self.table_, settings.seed)
        return torch.from_numpy(self.table_.votes())
