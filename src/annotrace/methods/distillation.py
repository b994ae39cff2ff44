"""Distillation: one network that learns the posterior of all items.

It has not learned any wrong label that the posterior corrects, and no items are held out from its
training. `Recipe(refit=...)` trains it in place of the network that a method has learned, and
`distill=True` in place of the networks of `CrossFittedEM`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from annotrace.crowd.losses import cross_entropy
from annotrace.training import Batch, CrowdData, draw_mixture, mixed_logits


def distillation_loss(
    network: nn.Module, posterior: Tensor, mixup: float, data: CrowdData
) -> Callable[[Batch], Tensor]:
    """Return the cross-entropy of a posterior, of mixtures of two items if `mixup` is not 0.

    Parameters
    ----------
    network : nn.Module
        Its first child is linear apart from a constant; see `annotrace.training.mixed_logits`.
    posterior : Tensor of shape (n_items, n_classes)
    mixup : float
        Parameter of the Beta distribution.
    data : CrowdData
        From whose generator mixtures are drawn.
    """
    targets = posterior.float().to(data.device)

    def plain_loss(batch: Batch) -> Tensor:
        return cross_entropy(network(batch.inputs), targets[batch.item]).mean()

    def mixed_loss(batch: Batch) -> Tensor:
        mixture = draw_mixture(mixup, torch.zeros_like(batch.item), data.random.generator)
        logits = mixed_logits(network, batch.inputs, mixture)
        return cross_entropy(logits, mixture.mix(targets[batch.item])).mean()

    return mixed_loss if mixup else plain_loss
