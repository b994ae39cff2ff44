"""Mixup (Zhang et al., ICLR 2018): training rows that lie between two items.

A network that has only seen mixtures cannot memorise the label of any one item, which is what
wrong labels call for. Everything is drawn on the device, so that a step never waits for the host.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from annotrace.training.batches import Batch


class Mixture(NamedTuple):
    """How the rows of a batch are mixed: ``weight * rows + (1 - weight) * rows[partner]``.

    Attributes
    ----------
    weight : Tensor of shape ()
    partner : LongTensor of shape (n_rows,)
        A permutation of the rows.
    """

    weight: Tensor
    partner: Tensor

    def mix(self, rows: Tensor) -> Tensor:
        """Mix the rows, or the targets, of a batch, shape (n_rows, ...); bytes become numbers."""
        rows = rows if rows.is_floating_point() else rows.float()
        return torch.lerp(rows[self.partner], rows, self.weight.to(rows.dtype))

    def partners(self, batch: Batch) -> Batch:
        """Give the batch whose row k has the labels of the partner of row k."""
        place = torch.empty_like(self.partner)
        place[self.partner] = torch.arange(len(place), device=place.device)
        item = batch.item[self.partner]
        return replace(batch, inputs=batch.inputs[self.partner], item=item, row=place[batch.row])


def draw_mixture(strength: float, group: Tensor) -> Mixture:
    """Draw how to mix a batch.

    Parameters
    ----------
    strength : float
        Both parameters of the Beta distribution of the weight: 1 is uniform.
    group : LongTensor of shape (n_rows,)
        Partners are drawn within a group, but for one row of each.
    """
    shape = torch.full((), strength, device=group.device)
    weight = torch.distributions.Beta(shape, shape, validate_args=False).sample()
    order = (group + torch.rand(len(group), device=group.device)).argsort()
    partner = torch.empty_like(order)
    partner[order] = order.roll(1)
    return Mixture(weight, partner)


def mixed_logits(network: nn.Module, inputs: Tensor, mixture: Mixture) -> Tensor:
    """Give what a network says of mixed rows, (n_rows, n_classes).

    Parameters
    ----------
    network : nn.Module
        Its first child brings stored rows to numbers that can be mixed.
    inputs : Tensor of shape (n_rows, ...)
        As stored.
    mixture : Mixture
    """
    stage, *rest = network.children()
    logits: Tensor = mixture.mix(stage(inputs))
    for part in rest:
        logits = part(logits)
    return logits
