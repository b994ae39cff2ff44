"""A fitted result as a folder: each file written whole, checked when read, never pickled.

::

    truth.csv          item, label, confidence, one column per class
    annotators.csv     annotator, n_labels, skill, low, high, flags
    confusion.npz      confusion (annotators, classes, classes), annotators, classes
    model.safetensors  labels, posterior, learned arrays and weights, for `annotrace.load`
    run.json           method, parameters, diagnosis, versions, checksum

The commands add report.html. `annotrace.run_folder` replaces a run as a whole.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from annotrace.atomic import atomic_write
from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis.fitted import FittedCrowd, annotator_frame
from annotrace.errors import RunError
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import Names, as_names
from annotrace.labels.writing import write_classes, write_confusion, write_csv
from annotrace.run_folder import DESCRIPTION, MODEL, locked, read_unchanged, replace_run, run_file
from annotrace.version import FORMAT, __version__, versions

_CODES = ("item", "annotator", "label", "truth")
_VOCABULARIES = ("items", "annotators", "classes")
_RESULT = ("posterior", "estimate", "prior", "gold", "prior_counts")
_REQUIRED = {"kind", "method", "params", "learned", "positional", "is_vote", "sha256"}


@dataclass(frozen=True)
class SavedRun:
    """What a folder holds.

    Attributes
    ----------
    description : dict
        The content of run.json.
    table : LabelTable
    arrays : dict of ndarray
        The arrays of the result.
    learned : dict
        Attributes that `fit` set, by name.
    modules : dict of dict of Tensor
        The state of each learned module.
    """

    description: dict[str, Any]
    table: LabelTable
    arrays: dict[str, NDArray[Any]]
    learned: dict[str, Any]
    modules: dict[str, dict[str, Tensor]]

    @property
    def gold(self) -> NDArray[np.int32]:
        """The class of each gold item, -1 elsewhere."""
        return self.arrays["gold"]

    def result(self, annotator_model: AnnotatorModel | None) -> CrowdResult:
        """Return the result, with an annotator model that was restored."""
        return CrowdResult(
            table=self.table,
            annotator_model=annotator_model,
            is_vote=self.description["is_vote"],
            **self.arrays,
        )


class SavableModel(FittedCrowd, BaseEstimator, ABC):  # type: ignore[misc]
    """A fitted classifier or aggregation that a folder can hold."""

    method: ClassVar[str]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a folder; `annotrace.load` reads it back.

        A run that is there is replaced, with its report. If writing fails, it stays as it is.
        """
        check_is_fitted(self)
        save_run(self, Path(folder))

    @abstractmethod
    def learned_modules(self) -> dict[str, nn.Module]:
        """Return by name all modules that a saved run must hold."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return a description of the fit for run.json, in plain types."""

    @abstractmethod
    def restore(self, run: SavedRun) -> None:
        """Set what `fit` sets from a saved run."""


def save_run(model: SavableModel, folder: Path) -> None:
    """Replace the run in a folder by a fitted model; other writers are kept out."""
    with locked(folder), replace_run(folder) as staging:
        write_run(model, staging)


def write_run(model: SavableModel, folder: Path) -> None:
    """Write the files of a fitted model to an empty folder."""
    from safetensors.torch import save

    tensors = {name: tensor.contiguous().cpu() for name, tensor in _tensors(model).items()}
    content = save(tensors)
    with atomic_write(folder / MODEL) as file:
        file.write(content)
    result = model.result_
    diagnosis = model.diagnosis_ if result.models_annotators else None
    write_classes(
        folder / "truth.csv",
        result.table.items.tolist(),
        result.table.classes,
        result.posterior,
        labels=result.table.classes[result.estimate],
        confidence=model.confidence_,
    )
    write_csv(annotator_frame(result, diagnosis), folder / "annotators.csv")
    if result.annotator_model is not None:
        write_confusion(folder, result.table, result.matrices())
    description = _describe(model) | {
        "diagnosis": None if diagnosis is None else diagnosis.as_dict(),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    with atomic_write(folder / DESCRIPTION) as file:
        file.write((json.dumps(description, indent=1, default=_plain) + "\n").encode())


@read_unchanged
def read_run(folder: Path) -> SavedRun:
    """Read a folder that `save_run` wrote.

    Raises
    ------
    RunError
        If the run is missing, damaged, or from another version.
    """
    description = _read_description(folder)
    tensors = _read_tensors(folder, description)
    learned = {name: tensor.numpy() for name, tensor in _part(tensors, "learned").items()}
    parts = {name.partition(".")[0] for name in tensors} - {"labels", "result", "learned"}
    return SavedRun(
        description,
        _read_table(_part(tensors, "labels"), description["positional"]),
        {name: tensor.numpy() for name, tensor in _part(tensors, "result").items()},
        learned | description["learned"],
        {part: _part(tensors, part) for part in parts},
    )


def plain_params(model: SavableModel) -> dict[str, Any]:
    """Return the parameters that determine a model and that a file can hold."""
    params = {
        name: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        for name, value in model.get_params(deep=False).items()
        if name not in ("callbacks", "checkpoint", "device")
    }
    plain = (str, int, float, dict, np.generic, type(None))
    return {name: value for name, value in params.items() if isinstance(value, plain)}


def _tensors(model: SavableModel) -> dict[str, Tensor]:
    table, result = model.result_.table, model.result_
    tensors = {f"labels.{name}": _as_tensor(getattr(table, name)) for name in _CODES[:3]}
    if table.truth is not None:
        tensors["labels.truth"] = _as_tensor(table.truth)
    for name in _VOCABULARIES:
        tensors[f"labels.{name}"] = _pack(getattr(table, name))
    for name in _RESULT:
        if getattr(result, name) is not None:
            tensors[f"result.{name}"] = _as_tensor(getattr(result, name))
    for name, value in _learned(model).items():
        if isinstance(value, np.ndarray):
            tensors[f"learned.{name}"] = _as_tensor(value)
    for part, module in model.learned_modules().items():
        tensors |= {f"{part}.{name}": each for name, each in module.state_dict().items()}
    return tensors


def _learned(model: SavableModel) -> dict[str, Any]:
    """Return the attributes that `fit` set and that do not follow from the result."""
    known = {id(getattr(model.result_, name)) for name in _RESULT}
    return {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_")
        and not name.startswith("_")
        and name not in ("classes_", "feature_names_in_", "confusion_", "history_")
        and id(value) not in known
        and (
            isinstance(value, bool | int | float | str | dict | list | np.generic)
            or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")
        )
    }


def _describe(model: SavableModel) -> dict[str, Any]:
    table, result = model.result_.table, model.result_
    learned = _learned(model).items()
    return model.describe() | {
        "format": FORMAT,
        "method": model.method,
        "params": plain_params(model),
        "learned": {name: value for name, value in learned if not isinstance(value, np.ndarray)},
        "positional": table.positional,
        "is_vote": result.is_vote,
        "counts": {
            "items": table.n_items,
            "annotators": table.n_annotators,
            "labels": table.n_labels,
            "classes": table.n_classes,
        },
        "versions": versions(),
    }


def _as_tensor(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.array(array))


def _part(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    prefix = f"{part}."
    return {k[len(prefix) :]: tensor for k, tensor in tensors.items() if k.startswith(prefix)}


def _pack(names: Names) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(names.tolist()).encode()), dtype=torch.uint8)


def _unpack(packed: Tensor) -> Names:
    names = json.loads(packed.numpy().tobytes().decode())
    # The classes of a vector of labels may be floats or booleans, which are not turned into text.
    return np.array(names) if isinstance(names[0], bool | float) else as_names(names)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def _read_table(tensors: dict[str, Tensor], positional: bool) -> LabelTable:
    codes: dict[str, Any] = {name: tensors[name].numpy() for name in _CODES if name in tensors}
    names: dict[str, Any] = {name: _unpack(tensors[name]) for name in _VOCABULARIES}
    return LabelTable(**codes, **names, positional=positional)


def _read_description(folder: Path) -> dict[str, Any]:
    path = run_file(folder, DESCRIPTION)
    if not path.is_file():
        raise RunError(
            f"{folder}: no run here, there is no run.json in it. Give the folder that `annotrace "
            "fit` or `annotrace aggregate` wrote."
        )
    try:
        description: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        written = int(description["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: damaged, it cannot be read as a run ({error!r}).") from None
    if written != FORMAT:
        version = description.get("versions", {}).get("annotrace", "?")
        remedy = "Update annotrace." if written > FORMAT else "Fit again."
        raise RunError(
            f"{folder}: written by annotrace {version} in format {written}; this version, "
            f"{__version__}, reads format {FORMAT}. {remedy}"
        )
    missing = _REQUIRED - set(description)
    if missing:
        raise RunError(f"{path}: damaged, it lacks {', '.join(sorted(missing))}.")
    return description


def _read_tensors(folder: Path, description: dict[str, Any]) -> dict[str, Tensor]:
    from safetensors.torch import load

    path = run_file(folder, MODEL)
    if not path.is_file():
        raise RunError(f"{folder}: incomplete, there is no model.safetensors in it.")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != description["sha256"]:
        raise RunError(f"{path}: damaged, its content is not what run.json says was written.")
    tensors: dict[str, Tensor] = load(content)
    return tensors
