"""The choice of an augmentation by held-out labels, the same for every method.

A network learns from four fifths of the items with each augmentation in turn, from the weakest to
the strongest, and one confusion matrix for all annotators beside it. An augmentation replaces a
weaker one if the labels of the other items are significantly more likely by it. So digits are not
mirrored, and photos are, if there are enough of them to tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.crowd.confusion import Confusion
from annotrace.crowd.losses import label_log_likelihood
from annotrace.data.augmentation import KINDS, Kind, make_augmentation
from annotrace.labels.codes import split_positions
from annotrace.training import Batch, CrowdData, Epoch, Settings, autocast

HELD_OUT = 0.2
MIN_ITEMS = 50
"""Of fewer items too few would be held out; they are not augmented."""

N_STEPS = 4000
"""Steps of each training, if its epochs have more, but at least `MIN_EPOCHS`."""

MIN_EPOCHS = 5

PATIENCE = 5
MIN_GAIN = 1.0
"""By how many standard errors held-out labels must be more likely."""

TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Held-out labels are scored at the best of these: an augmented network is less confident, which
says nothing about its choice of classes."""


class Run(Protocol):
    """A function that trains modules on some items; see `annotrace.training.train`."""

    def __call__(
        self,
        learned: nn.Module,
        objective: Callable[[Batch], Tensor],
        data: CrowdData,
        items: NDArray[np.intp],
        settings: Settings,
        score: Callable[[], float] | None = None,
        /,
    ) -> list[Epoch]:
        """Return the history."""


class _Split(NamedTuple):
    rest: NDArray[np.intp]
    held_out: NDArray[np.intp]


def choose_augmentation(
    data: CrowdData, settings: Settings, build: Callable[[], nn.Module], run: Run
) -> Kind:
    """Return the augmentation by which held-out labels are most likely.

    Parameters
    ----------
    data : CrowdData
        Images, and their labels. What is drawn from its generator later does not depend on this.
    settings : Settings
        Of the training whose augmentation is chosen.
    build : callable
        Returns a new network, from images to logits of shape (n_rows, n_classes).
    run : callable
        Trains it.
    """
    labelled = np.flatnonzero(data.table.labels_per_item() > 0)
    if len(labelled) < MIN_ITEMS:
        return KINDS[0]
    split = _Split(
        *(labelled[part] for part in split_positions(len(labelled), HELD_OUT, settings.seed))
    )
    settings = _shortened(settings, len(split.rest))
    best, lowest = KINDS[0], _losses(KINDS[0], data, split, settings, build, run)
    for kind in KINDS[1:]:
        losses = _losses(kind, data, split, settings, build, run)
        if _is_significant(lowest - losses):
            best, lowest = kind, losses
    return best


def _shortened(settings: Settings, n_items: int) -> Settings:
    longest = max(MIN_EPOCHS, round(N_STEPS * settings.batch_size / n_items))
    return replace(settings, epochs=min(settings.epochs, longest), patience=PATIENCE)


def _losses(
    kind: Kind,
    data: CrowdData,
    split: _Split,
    settings: Settings,
    build: Callable[[], nn.Module],
    run: Run,
) -> Tensor:
    """Train with an augmentation; return the loss of each held-out item, shape (n_held_out,)."""
    data.augment = make_augmentation(kind, tuple(data.source.shape))
    items = torch.from_numpy(split.held_out).to(data.device)
    # Each training starts from the same weights.
    with data.random.reseeded(settings.seed):
        network = build()
        annotators = Confusion(1, data.table.n_classes, diagonal=0.7, lr_scale=30.0)
        learned = nn.ModuleDict({"network": network, "annotators": annotators.to(data.device)})

        def objective(batch: Batch) -> Tensor:
            batch = data.share(batch)
            likelihood = _log_likelihood(batch, network(batch.inputs), annotators)
            return -likelihood.sum() / len(batch.item)

        def losses() -> Tensor:
            return _held_out_losses(network, annotators, data, items, settings)

        run(learned, objective, data, split.rest, settings, lambda: float(losses().mean()))
        return losses()


@torch.no_grad()
def _held_out_losses(
    network: nn.Module, annotators: Confusion, data: CrowdData, items: Tensor, settings: Settings
) -> Tensor:
    """Return the loss of the labels of each item at the best temperature, shape (n_items,)."""
    network.eval()
    parts = []
    for batch in data.batches(items):
        with autocast(data.device, settings.precision):
            logits = network(batch.inputs).float()
        each = [_log_likelihood(batch, logits / t, annotators) for t in TEMPERATURES]
        total = logits.new_zeros(len(TEMPERATURES), len(batch.item))
        parts.append(total.index_add_(1, batch.row, torch.stack(each)))
    losses = -torch.cat(parts, dim=1).double().cpu()
    return losses[losses.sum(1).argmin()]


def _log_likelihood(batch: Batch, logits: Tensor, annotators: Confusion) -> Tensor:
    """Return log p(label | image) of each label if all annotators are alike, (n_labels,)."""
    return label_log_likelihood(
        logits, annotators, batch.row, torch.zeros_like(batch.annotator), batch.label
    )


def _is_significant(gain: Tensor) -> bool:
    """Whether the mean of paired gains, shape (n,), exceeds its standard error."""
    return bool(gain.mean() > MIN_GAIN * gain.std() / len(gain) ** 0.5)
