"""Which training a checkpoint belongs to."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from annotrace.training.batches import CrowdData
from annotrace.training.settings import Settings

# What only shows or stores does not change what is learned, and the seed is among the settings.
_WITHOUT_EFFECT = ("verbose", "callbacks", "checkpoint", "device", "fast", "random_state")


def fingerprint(
    estimator: Any, settings: Settings, data: CrowdData, gold: NDArray[np.int32]
) -> str:
    """Name a training by its method, settings, items, labels and known truths."""
    digest = hashlib.sha256(type(estimator).__name__.encode())
    for name, value in sorted(estimator.get_params(deep=False).items()):
        if name not in _WITHOUT_EFFECT:
            digest.update(name.encode())
            digest.update(_told(value))
    digest.update(repr(sorted(asdict(replace(settings, fast=True)).items())).encode())
    digest.update(data.digest.encode())
    for column in (data.table.item, data.table.annotator, data.table.label, gold):
        digest.update(column.tobytes())
    return digest.hexdigest()


def _told(value: Any) -> bytes:
    """Give what tells a parameter from others: weights of a module, all values of an array."""
    if isinstance(value, nn.Module):
        weights = [part.flatten().view(torch.uint8).cpu().numpy() for part in _tensors(value)]
        return b"".join([repr(value).encode(), *(part.tobytes() for part in weights)])
    if isinstance(value, np.ndarray):
        return repr((value.shape, value.dtype.str)).encode() + value.tobytes()
    return repr(value).encode()


def _tensors(module: nn.Module) -> list[torch.Tensor]:
    return [*(weight.detach() for weight in module.parameters()), *module.buffers()]
