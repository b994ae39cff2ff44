"""Checkpoints: stop a fit and resume it, with bitwise equal results.

A fit that trains several networks has two files, whatever their number: one with what each finished
training has learned, which grows by one record per training, and one with the whole state of the
training in progress.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.distributed import current
from annotrace.errors import InputError, RunError
from annotrace.seeds import seed_of
from annotrace.storage import check_tensors
from annotrace.training.batches import CrowdData
from annotrace.training.records import Record, RecordFile
from annotrace.training.settings import Settings

# Parameters that do not change the result; the seed is part of the settings.
_WITHOUT_EFFECT = ("verbose", "callbacks", "checkpoint", "device", "cuda_graphs", "random_state")


class CheckpointSeries:
    """The checkpoints of a fit that trains several networks one after the other.

    On resuming, finished trainings are read back, the interrupted one continues, and the
    computations between trainings are repeated.

    Parameters
    ----------
    path : path-like or None
        The file of finished trainings; that of the training in progress has the same name and
        ".training". None disables checkpoints.
    """

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self._n_started = 0

    def seed(self, random_state: Any) -> int:
        """Return the seed of the fit: without a random state, that of the interrupted fit."""
        if random_state is None and self.path is not None and self.path.exists():
            first = Checkpoint(self.path, 0)
            record = first.finished.read(0) or first.read_progress()
            if record is not None:
                return int(first.value(record, "seed", int))
        return seed_of(random_state)

    def next(self, fingerprint: str, seed: int) -> Checkpoint | None:
        """Return the checkpoint of the next training.

        Parameters
        ----------
        fingerprint : str
            Identifies the settings and data. A checkpoint with another one is an error.
        seed : int
        """
        if self.path is None:
            return None
        checkpoint = Checkpoint(self.path, self._n_started, fingerprint, seed)
        if self._n_started == 0 and current().is_first and not checkpoint.finished.exists():
            # The user deleted it to start again, so a training in progress is obsolete.
            checkpoint.clear()
        self._n_started += 1
        return checkpoint

    def clear(self) -> None:
        """Remove all checkpoints."""
        if self.path is not None and current().is_first:
            Checkpoint(self.path, 0).clear()


class Checkpoint:
    """What is stored of one training of a fit.

    Parameters
    ----------
    path : Path
        The file of finished trainings.
    number : int
        Of the training in the fit, from 0.
    fingerprint : str
    seed : int
    """

    def __init__(self, path: Path, number: int, fingerprint: str = "", seed: int = 0) -> None:
        self.finished = RecordFile(path)
        self.in_progress = RecordFile(path.with_name(f"{path.name}.training"))
        self.number = number
        self.identity = {"number": number, "fingerprint": fingerprint, "seed": seed}

    def read_finished(self) -> Record | None:
        """Return the record of the training if it has finished."""
        record = self.finished.read(self.number) if self.finished.exists() else None
        return None if record is None else self._checked(record)

    def read_progress(self) -> Record | None:
        """Return the state of the training if it was interrupted."""
        if not self.in_progress.exists():
            return None
        record = self.in_progress.read(0)
        if record is None:
            raise self.in_progress.damaged("it is not complete")
        # The process may have been killed before it removed the state of a finished training.
        is_own = self.value(record, "number", int) == self.number
        return self._checked(record) if is_own else None

    def save(self, record: Record) -> None:
        """Store the state of the training; the previous one is kept until this one is whole."""
        self.in_progress.replace(self._identified(record))
        if not self.finished.exists():
            self.finished.replace()

    def finish(self, record: Record) -> None:
        """Store what the finished training has learned."""
        write = self.finished.append if self.finished.exists() else self.finished.replace
        write(self._identified(record))
        self.in_progress.remove()

    def clear(self) -> None:
        """Remove the files, the training in progress first: alone it would be obsolete."""
        self.in_progress.remove()
        self.finished.remove()

    def value(self, record: Record, name: str, kind: type) -> Any:
        """Return a value of a record, checked to be of a type."""
        if type(found := record.values.get(name)) is not kind:
            raise self.damaged(f"`{name}` is not of type {kind.__name__}")
        return found

    def tensors_like(
        self, expected: dict[str, Tensor], found: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Return tensors, checked to be able to replace others; see `check_tensors`."""
        try:
            check_tensors(found, expected)
        except InputError as error:
            raise self.damaged(str(error).rstrip(".")) from None
        return found

    def damaged(self, reason: str) -> RunError:
        """Return the error that the checkpoint cannot be used."""
        return self.finished.damaged(reason)

    def _identified(self, record: Record) -> Record:
        return record._replace(values={**self.identity, **record.values})

    def _checked(self, record: Record) -> Record:
        if self.identity["fingerprint"] and (
            self.value(record, "fingerprint", str) != self.identity["fingerprint"]
        ):
            raise RunError(
                f"{self.finished.path}: belongs to a training with other settings or data; resume "
                "with those, or delete the file to start again."
            )
        return record


def fingerprint(
    estimator: Any, settings: Settings, data: CrowdData, gold: NDArray[np.int32]
) -> str:
    """Return a hash of the method, its parameters, the settings, items, labels and gold classes.

    Parameters
    ----------
    estimator : BaseEstimator
    settings : Settings
    data : CrowdData
    gold : ndarray of shape (n_items,)
    """
    digest = hashlib.sha256(type(estimator).__name__.encode())
    for name, value in sorted(estimator.get_params(deep=False).items()):
        if name not in _WITHOUT_EFFECT:
            digest.update(name.encode())
            digest.update(_as_bytes(value))
    digest.update(repr(sorted(asdict(replace(settings, cuda_graphs=True)).items())).encode())
    digest.update(data.digest.encode())
    for column in (data.table.item, data.table.annotator, data.table.label, gold):
        digest.update(column.tobytes())
    return digest.hexdigest()


def _as_bytes(value: Any) -> bytes:
    """Return a parameter as bytes, with all weights of a module and all values of an array."""
    if isinstance(value, nn.Module):
        tensors = [*(weight.detach() for weight in value.parameters()), *value.buffers()]
        weights = [tensor.flatten().view(torch.uint8).cpu().numpy() for tensor in tensors]
        return b"".join([repr(value).encode(), *(weight.tobytes() for weight in weights)])
    if isinstance(value, np.ndarray):
        return repr((value.shape, value.dtype.str)).encode() + value.tobytes()
    if isinstance(value, FunctionType):  # Its repr has an address.
        return f"{value.__module__}.{value.__qualname__}".encode()
    return repr(value).encode()
