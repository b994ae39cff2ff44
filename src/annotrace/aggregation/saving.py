"""A fitted result as a folder: each file written whole, never pickled.

::

    truth.csv          item, label, confidence, one column per class
    annotators.csv     annotator, n_labels, skill, low, high, accuracy, accuracy_low,
                       accuracy_high, flags
    confusion.npz      confusion (annotators, classes, classes), annotators, classes; above
                       2e8 cells accuracies (annotators, classes) in place of confusion
    model.safetensors  labels, posterior, learned arrays and weights, for `annotrace.load`
    run.json           method, parameters, diagnosis, versions, checksum

The commands add report.html. `annotrace.run_folder` replaces a run as a whole, and `run_reader`
reads it back.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.aggregation.run_reader import SavedRun
from annotrace.aggregation.run_schema import CODES, NEVER_SAVED, RESULT, VOCABULARIES
from annotrace.atomic import atomic_write
from annotrace.diagnosis.fitted import FittedCrowd, annotator_frame
from annotrace.estimators import Estimator, check_fitted
from annotrace.labels.vocabulary import Names
from annotrace.labels.writing import write_accuracies, write_classes, write_confusion, write_csv
from annotrace.run_folder import DESCRIPTION, MODEL, locked, replace_run
from annotrace.storage import join_parts, tensor_parts
from annotrace.version import FORMAT, versions

NAMES_AT_ONCE = 2**18


class SavableModel(FittedCrowd, Estimator, ABC):
    """A fitted classifier or aggregation that a folder can hold.

    A class that learns more than its base declares it in `saved_attributes`: names of attributes
    that `fit` sets, and their annotations or `Array`. Only these are saved and read back.
    """

    method: ClassVar[str]
    saved_attributes: ClassVar[Mapping[str, Any]] = {"versions_": dict[str, str]}

    def save(self, folder: str | Path, *, raw: bool = False) -> None:
        """Write the fitted model to a folder; `annotrace.load` reads it back.

        A run that is there is replaced, with its report. If writing fails, it stays as it is.

        Parameters
        ----------
        folder : str or Path
        raw : bool
            Write names to csv as they are, even if a spreadsheet would take them for formulas; see
            `LabelTable.write`.
        """
        check_fitted(self)
        save_run(self, Path(folder), raw=raw)

    @abstractmethod
    def learned_modules(self) -> dict[str, nn.Module]:
        """Return by name all modules that a saved run must hold."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return a description of the fit for run.json, in plain types."""

    @abstractmethod
    def restore(self, run: SavedRun) -> None:
        """Set what `fit` sets from a saved run."""


def save_run(model: SavableModel, folder: Path, *, raw: bool = False) -> None:
    """Replace the run in a folder by a fitted model; other writers are kept out."""
    with locked(folder), replace_run(folder) as staging:
        write_run(model, staging, raw=raw)


def write_run(model: SavableModel, folder: Path, *, raw: bool = False) -> None:
    """Write the files of a fitted model to an empty folder; see `SavableModel.save`."""
    digest = hashlib.sha256()
    with atomic_write(folder / MODEL) as file:
        for part in tensor_parts(_arrays(model)):
            digest.update(part)
            file.write(part)
    result = model.result_
    diagnosis = model.diagnosis_ if result.models_annotators else None
    write_classes(
        folder / "truth.csv",
        result.table.items,
        result.table.classes,
        result.posterior,
        labels=result.table.classes[result.estimate],
        confidence=model.confidence_,
        raw=raw,
    )
    write_csv(annotator_frame(result, diagnosis), folder / "annotators.csv", raw=raw)
    if result.annotator_model is not None:
        if result.fits_array:
            write_confusion(folder, result.table, result.matrices())
        else:
            write_accuracies(folder, result.table, result.accuracies())
    description = _describe(model) | {
        "diagnosis": None if diagnosis is None else diagnosis.as_dict(),
        "sha256": digest.hexdigest(),
    }
    with atomic_write(folder / DESCRIPTION) as file:
        file.write((json.dumps(description, indent=1, default=_plain) + "\n").encode())


def plain_params(model: SavableModel) -> dict[str, Any]:
    """Return the parameters that determine a model and that a file can hold."""
    params = {
        name: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        for name, value in model.get_params(deep=False).items()
        if name not in NEVER_SAVED
    }
    plain = (str, int, float, dict, np.generic, type(None))
    return {name: value for name, value in params.items() if isinstance(value, plain)}


def _arrays(model: SavableModel) -> dict[str, Tensor | NDArray[Any]]:
    table, result = model.result_.table, model.result_
    labels = _only_arrays({name: getattr(table, name) for name in CODES})
    labels |= {name: _pack(getattr(table, name)) for name in VOCABULARIES}
    modules = {part: module.state_dict() for part, module in model.learned_modules().items()}
    return join_parts(
        labels=labels,
        result=_only_arrays({name: getattr(result, name) for name in RESULT}),
        learned=_only_arrays(_learned(model)),
        **modules,
    )


def _learned(model: SavableModel) -> dict[str, Any]:
    """Return the attributes that `fit` set and that do not follow from the result."""
    return {name: getattr(model, name) for name in model.saved_attributes}


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


def _only_arrays(values: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    return {name: each for name, each in values.items() if isinstance(each, np.ndarray)}


def _pack(names: Names) -> NDArray[np.uint8]:
    """Return names as the bytes of a JSON list, of which a part at a time is Python's."""
    starts = range(0, max(len(names), 1), NAMES_AT_ONCE)
    parts = (json.dumps(names[start : start + NAMES_AT_ONCE].tolist())[1:-1] for start in starts)
    return np.frombuffer(f"[{', '.join(parts)}]".encode(), np.uint8)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
