"""Mixup (Zhang et al., ICLR 2018): training on convex combinations of two items.

A network that sees only mixtures cannot memorise the wrong label of a single item. All random
numbers are drawn on the device, so that a step never waits for the host.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from annotrace.training.batches import Batch, Inputs

ALL_ROWS = slice(None)


class Mixture(NamedTuple):
    """A mixture of the rows of a batch: ``weight * rows + (1 - weight) * rows[partner]``.

    Attributes
    ----------
    weight : Tensor of shape ()
    partner : LongTensor of shape (n_rows,)
        A permutation of the rows.
    """

    weight: Tensor
    partner: Tensor

    def mix(self, rows: Tensor) -> Tensor:
        """Return mixed rows or targets of a batch, shape (n_rows, ...); integers become floats."""
        rows = rows if rows.is_floating_point() else rows.float()
        return torch.lerp(rows[self.partner], rows, self.weight.to(rows.dtype))

    def partners(self, batch: Batch) -> Batch:
        """Return the batch whose row k is the partner of row k, with its labels."""
        place = torch.empty_like(self.partner)
        place[self.partner] = torch.arange(len(place), device=place.device)
        item = batch.item[self.partner]
        return replace(batch, inputs=batch.inputs[self.partner], item=item, row=place[batch.row])


def draw_mixture(
    strength: float, group: Tensor, generator: torch.Generator | None = None
) -> Mixture:
    """Draw a random mixture for a batch.

    Parameters
    ----------
    strength : float
        Both parameters of the Beta distribution of the weight; 1 is uniform.
    group : LongTensor of shape (n_rows,)
        Partners are in the same group, except for one row per group.
    generator : torch.Generator, optional
        On the device of `group`; torch's global one by default.
    """
    # As `torch.distributions.Beta` draws, which takes no generator.
    both = torch.full((2,), strength, device=group.device)
    weight = torch._sample_dirichlet(both, generator=generator)[0]
    order = (group + torch.rand(len(group), device=group.device, generator=generator)).argsort()
    partner = torch.empty_like(order)
    partner[order] = order.roll(1)
    return Mixture(weight, partner)


def mixed_logits(
    network: nn.Module, inputs: Inputs, mixture: Mixture, rows: slice = ALL_ROWS
) -> Tensor:
    """Return the logits of mixed rows, shape (n_rows, n_classes).

    Parameters
    ----------
    network : nn.Module
        Its first child converts stored rows to floats, which are mixed, by a function that is
        linear apart from a constant.
    inputs : Tensor of shape (n_rows, ...), or Bags
        In their stored type.
    mixture : Mixture
    rows : slice
        Those that are wanted.
    """
    stage, *rest = network.children()
    logits: Tensor = mixture.mix(stage(inputs))[rows]
    for part in rest:
        logits = part(logits)
    return logits
