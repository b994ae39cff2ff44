"""What tells the best epoch from held-out items."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.training import Batch

Score: TypeAlias = Callable[[Batch], tuple[Tensor, int]]
"""From a batch to the sum of a loss over it, and the number of terms in that."""


def held_out_score(
    select: str,
    likelihood: Score,
    class_scores: Callable[[Batch], Tensor],
    table: LabelTable,
    device: torch.device,
) -> Score:
    """Give the loss that the best epoch has the least of.

    Parameters
    ----------
    select : {"likelihood", "labels", "truth"}
        The likelihood of labels; how often the classifier differs from them; or from the truth.
    likelihood : callable
        The method's own loss, for the first.
    class_scores : callable
        From a batch to scores of classes, (n_rows, n_classes), for the others.
    table : LabelTable
    device : torch.device
    """
    if select == "likelihood":
        return likelihood
    if select == "labels":
        return lambda batch: _differences(class_scores(batch)[batch.row], batch.label)
    if table.truth is None or (table.truth < 0).any():
        raise InputError("`select='truth'` needs a table with the truth of every item.")
    truth = torch.from_numpy(table.truth.copy()).to(device)
    return lambda batch: _differences(class_scores(batch), truth[batch.item])


def _differences(scores: Tensor, label: Tensor) -> tuple[Tensor, int]:
    return (scores.argmax(1) != label).sum(), len(label)
