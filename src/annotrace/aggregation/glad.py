r"""GLAD: able annotators, easy items.

Annotator r has an ability :math:`a_r` and item i an ease :math:`e^{b_i}`; a label is right with
probability :math:`\sigma(a_r e^{b_i})`, and wrong labels are spread evenly. EM with normal priors
of mean 1 and variance 1 on a and b, as in the paper; in the M-step a few Fisher scoring sweeps
over annotators, then items, each step kept only where it gains, so that no iteration loses.

Use it where items differ in difficulty and classes are alike. It has no confusion matrix: an
annotator who mixes two classes up is merely of little ability.

J. Whitehill, T. Wu, J. Bergsma, J. Movellan and P. Ruvolo, Whose vote should count more: optimal
integration of labels from labelers of unknown expertise, NIPS 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from annotrace.aggregation.base import Aggregation
from annotrace.aggregation.dawid_skene import RARE, estimate_prior
from annotrace.aggregation.evidence import Evidence

# Mean of the normal priors on ability and on log ease.
TYPICAL = 1.0


def log_right(ability: Tensor, log_ease: Tensor, right: Tensor) -> Tensor:
    """Give the expected log likelihood of each label, the share of wrong labels left out.

    Parameters
    ----------
    ability, log_ease : Tensor of shape (n_labels,)
        Of the annotator and the item of each label.
    right : Tensor of shape (n_labels,)
        Probability that the label is right.
    """
    margin = ability * log_ease.exp()
    return logsigmoid(-margin) + right * margin


class GLAD(Aggregation):
    """Annotators of different ability, items of different ease.

    Parameters
    ----------
    sweeps : int
        Fisher scoring sweeps over annotators and items in each M-step.
    max_iter, tol, warm_iter, random_state
        As in `Aggregation`.

    Attributes
    ----------
    ability_ : ndarray of shape (n_annotators,)
        0 is guessing, below 0 adversarial.
    ease_ : ndarray of shape (n_items,)
        1 / difficulty; near 0 an item is hard for everyone.
    """

    ability_: NDArray[Any]
    ease_: NDArray[Any]

    def __init__(
        self,
        *,
        sweeps: int = 3,
        max_iter: int = 100,
        tol: float = 1e-5,
        warm_iter: int = 10,
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        super().__init__(max_iter=max_iter, tol=tol, warm_iter=warm_iter, random_state=random_state)
        self.sweeps = sweeps

    def _start(self, evidence: Evidence) -> Tensor:
        table = evidence.table
        self._item = torch.from_numpy(table.item.astype(np.int64))
        self._annotator = torch.from_numpy(table.annotator.astype(np.int64))
        self._label = torch.from_numpy(table.label.astype(np.int64))
        self._ability = torch.full((table.n_annotators,), TYPICAL, dtype=evidence.dtype)
        self._log_ease = torch.full((table.n_items,), TYPICAL, dtype=evidence.dtype)
        return evidence.votes()

    def _learn(self, evidence: Evidence, state: Tensor) -> None:
        right = state[self._item, self._label]
        self._past_right = _past_right(evidence)
        for _ in range(self.sweeps):
            self._learn_abilities(right)
            self._learn_ease(right)
        self._log_prior = estimate_prior(evidence, state).clamp_(min=RARE).log_()

    def _learn_abilities(self, right: Tensor) -> None:
        ease = self._log_ease.exp()[self._item]

        def slope(ability: Tensor) -> tuple[Tensor, Tensor]:
            chance = torch.sigmoid(ability[self._annotator] * ease)
            return (right - chance) * ease, chance * (1 - chance) * ease**2

        def value(ability: Tensor) -> Tensor:
            return log_right(ability[self._annotator], self._log_ease[self._item], right)

        self._ability = _scored(self._ability, self._annotator, slope, value, self._past_right)

    def _learn_ease(self, right: Tensor) -> None:
        ability = self._ability[self._annotator]

        def slope(log_ease: Tensor) -> tuple[Tensor, Tensor]:
            margin = ability * log_ease.exp()[self._item]
            chance = torch.sigmoid(margin)
            return (right - chance) * margin, chance * (1 - chance) * margin**2

        def value(log_ease: Tensor) -> Tensor:
            return log_right(ability, log_ease[self._item], right)

        self._log_ease = _scored(self._log_ease, self._item, slope, value)

    def _infer(self, evidence: Evidence) -> tuple[Tensor, float]:
        margin = self._ability[self._annotator] * self._log_ease.exp()[self._item]
        wrong = logsigmoid(-margin) - np.log(max(evidence.shape[1] - 1, 1))
        posterior, log_likelihood = evidence.infer_labels(margin, wrong, self._log_prior)
        spread = (self._ability - TYPICAL).square().sum() + (self._log_ease - TYPICAL).square().sum()
        past = _past_value(self._ability, self._past_right).sum()
        return posterior, log_likelihood + float(past - spread / 2)

    def _describe(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        pass
