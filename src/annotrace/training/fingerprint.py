"""Which training a checkpoint belongs to."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.labels import LabelTable
from annotrace.training.settings import Settings


def fingerprint(
    estimator: Any, settings: Settings, table: LabelTable, gold: NDArray[np.int32]
) -> str:
    """Name a training by its method, settings, labels and known truths."""
    digest = hashlib.sha256()
    # What only shows or stores does not change what is learned.
    params = {
        name: repr(value)
        for name, value in estimator.get_params().items()
        if name not in ("verbose", "callbacks", "checkpoint", "device", "fast")
    }
    digest.update(repr((type(estimator).__name__, sorted(params.items()))).encode())
    digest.update(repr(sorted(asdict(replace(settings, fast=True)).items())).encode())
    for column in (table.item, table.annotator, table.label, gold):
        digest.update(column.tobytes())
    return digest.hexdigest()
