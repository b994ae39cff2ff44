"""A saved run, read without trusting it.

Two files are read, run.json and model.safetensors, both from the folder itself; no other name is
ever opened. All of it is checked before it is used: see `run_schema`. Sizes come from what the
files hold, not from what they claim, so that memory stays proportional to their size.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.aggregation.run_schema import (
    CODES,
    DISTRIBUTIONS,
    FRACTIONS,
    PRIOR_BY_ITEM,
    RECORDS,
    RESULT,
    VOCABULARIES,
    Array,
    check_fields,
)
from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.result import CrowdResult
from annotrace.errors import InputError, RunError
from annotrace.labels import LabelTable
from annotrace.labels.codes import check_codes
from annotrace.labels.vocabulary import Names, as_names
from annotrace.parameters import field_types
from annotrace.run_folder import DESCRIPTION, MODEL, read_unchanged, run_file
from annotrace.storage import (
    check_same_names,
    check_tensors,
    join_parts,
    parse_json,
    parse_tensors,
    read_regular,
    select_part,
)
from annotrace.version import FORMAT, __version__

MAX_BYTES = {DESCRIPTION: 2**24, MODEL: 2**33}
MAX_NESTED = 2**18
"""Lists and objects in run.json; a file of nothing else would take seconds to parse."""

MAX_CLASS_TEXT = 2**24
"""Characters of all class names, each padded to the longest: numpy stores them so."""

_MAX_REASON = 500
_DTYPES = (torch.float64, torch.float32, torch.int64, torch.int32, torch.uint8, torch.bool)
_MISSING = {
    DESCRIPTION: "no run here, there is no run.json in it. Give the folder that `annotrace fit` or "
    "`annotrace aggregate` wrote.",
    MODEL: "incomplete, there is no model.safetensors in it.",
}


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
        Attributes that `fit` set, by name, not yet checked: see `attributes`.
    modules : dict of dict of Tensor
        The state of each learned module, not yet checked: see `check_modules`.
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

    def attributes(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes that `fit` set, after checking them against their types."""
        check_fields(self.learned, wanted, sizes=_sizes(self.table))
        return self.learned

    def check_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Check the shapes of tensors of the annotator model, by name.

        To be called before the model is built, which allocates as much.
        """
        given = self.modules.get("annotators", {})
        for name, shape in shapes.items():
            if name not in given or given[name].shape != shape:
                raise InputError(f"Expected `annotators.{name}` to be of shape {shape}.")

    def check_modules(self, modules: Mapping[str, nn.Module]) -> None:
        """Check the tensors of all modules: names, shapes and types, finite weights.

        Buffers may be infinite, as the logarithm of zero is, but not NaN.
        """
        check_same_names(self.modules, modules)
        given = join_parts(**self.modules)
        states = {part: each.state_dict(keep_vars=True) for part, each in modules.items()}
        check_tensors(given, join_parts(**states))
        for name, tensor in given.items():
            if tensor.isnan().any():
                raise InputError(f"Expected `{name}` to be finite.")

    def result(self, annotator_model: AnnotatorModel | None) -> CrowdResult:
        """Return the result, with an annotator model that was restored."""
        arrays: dict[str, Any] = dict(self.arrays)
        result = CrowdResult(
            table=self.table,
            annotator_model=annotator_model,
            is_vote=self.description["is_vote"],
            **arrays,
        )
        if annotator_model is not None:
            if not result.fits_array:
                accuracies = Array("f", ("annotators", "classes"), FRACTIONS)
                accuracies.check("accuracies", result.accuracies(), _sizes(self.table))
                return result
            matrices = Array("f", ("annotators", "classes", "classes"), DISTRIBUTIONS)
            matrices.check("confusion_", result.matrices(), _sizes(self.table))
        return result


@read_unchanged
def read_run(folder: Path) -> SavedRun:
    """Read and check a folder that `save_run` wrote.

    Raises
    ------
    RunError
        If the run is missing, damaged, or from another version.
    """
    description = _parse_description(_read_file(folder, DESCRIPTION), folder)
    content = _read_model(folder, description["sha256"])
    with damaged(folder / MODEL):
        tensors = parse_tensors(content, str(folder / MODEL)).tensors
        parts = {name.partition(".")[0] for name in tensors}
        by_part = {part: select_part(tensors, part) for part in sorted(parts)}
        labels = by_part.pop("labels", {})
        table = _read_table(labels, description["positional"], str(folder / MODEL))
        arrays = _as_arrays(by_part.pop("result", {}))
        _check_result(arrays, table, description)
        learned = _as_arrays(by_part.pop("learned", {})) | description["learned"]
    return SavedRun(description, table, arrays, learned, by_part)


@contextmanager
def damaged(path: Path, otherwise: str = "") -> Iterator[None]:
    """Turn an `InputError` about what a file holds into a `RunError` that names the file.

    `otherwise` is what else may be the reason.
    """
    try:
        yield
    except InputError as error:
        reason = str(error)[:_MAX_REASON]
        raise RunError(f"{path}: {otherwise}damaged, {reason[:1].lower()}{reason[1:]}") from None


def _read_file(folder: Path, name: str) -> bytes:
    path = run_file(folder, name)
    if not os.path.lexists(path):
        raise RunError(f"{folder}: {_MISSING[name]}")
    return read_regular(path, MAX_BYTES[name])


def _read_model(folder: Path, sha256: str) -> bytes:
    content = _read_file(folder, MODEL)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise RunError(
            f"{folder / MODEL}: damaged, its content is not what run.json says was written."
        )
    return content


def _parse_description(content: bytes, folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    if content.count(b"[") + content.count(b"{") > MAX_NESTED:
        raise RunError(f"{path}: damaged, it has more than {MAX_NESTED:,} lists and objects.")
    description = parse_json(content, str(path))
    written = description.get("format") if isinstance(description, dict) else None
    if not isinstance(written, int) or isinstance(written, bool):
        raise RunError(f"{path}: damaged, it cannot be read as a run (it has no format number).")
    if written != FORMAT:
        remedy = "Update annotrace." if written > FORMAT else "Fit again."
        raise RunError(
            f"{folder}: written in format {written}; this version of annotrace, {__version__}, "
            f"reads format {FORMAT}. {remedy}"
        )
    with damaged(path):
        kind = description.get("kind")
        if not isinstance(kind, str) or kind not in RECORDS:
            raise InputError(f"Expected `kind` to be one of {', '.join(RECORDS)}.")
        check_fields(description, field_types(RECORDS[kind]))
    return description  # type: ignore[no-any-return]


def _read_table(tensors: dict[str, Tensor], positional: bool, source: str) -> LabelTable:
    wanted = dict.fromkeys((*CODES, *VOCABULARIES))
    check_same_names(tensors, wanted, optional=("truth",))
    names: dict[str, Any] = {
        name: _unpack(name, tensors.pop(name), source) for name in VOCABULARIES
    }
    codes: dict[str, Any] = _as_arrays(tensors)
    if any(column.dtype != np.int32 for column in codes.values()) or not len(codes["label"]):
        raise InputError("Expected the codes of labels to be int32, and at least one of each.")
    if positional and not np.array_equal(names["items"], np.arange(len(names["items"]))):
        raise InputError("Expected the items of a table by position to be 0, 1, 2, ...")
    return LabelTable(**codes, **names, positional=positional)


def _check_result(
    arrays: dict[str, NDArray[Any]], table: LabelTable, description: dict[str, Any]
) -> None:
    counts = _sizes(table) | {"labels": table.n_labels}
    if description["counts"] != counts:
        raise InputError(f"Expected the counts {description['counts']}, but got {counts}.")
    wanted = dict(RESULT)
    if description["kind"] == "classifier" and arrays.get("prior", np.empty(0)).ndim == 2:
        wanted["prior"] = PRIOR_BY_ITEM
    check_fields(arrays, wanted, optional=("prior_counts", "held_out"), sizes=_sizes(table))
    check_codes(arrays["estimate"], table.n_classes, "estimate")
    check_codes(arrays["gold"], table.n_classes, "gold", lowest=-1)


def _sizes(table: LabelTable) -> dict[str, int]:
    return {
        "items": table.n_items,
        "annotators": table.n_annotators,
        "classes": table.n_classes,
    }


def _as_arrays(tensors: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    for name, tensor in tensors.items():
        if tensor.dtype not in _DTYPES:
            raise InputError(f"Expected `{name}` to be of a plain type, but got {tensor.dtype}.")
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def _unpack(what: str, packed: Tensor, source: str) -> Names:
    """Return a vocabulary that is stored as the bytes of a JSON list."""
    if packed.dtype != torch.uint8 or packed.dim() != 1:
        raise InputError(f"Expected `{what}` to be bytes, but got {packed.dtype}.")
    names = parse_json(packed.numpy().tobytes(), f"{source}, {what}")
    kinds = {type(name) for name in names} if isinstance(names, list) else set()
    if len(kinds) != 1 or not kinds <= {str, int, float, bool}:
        raise InputError(f"Expected `{what}` to be a list of names of one type.")
    if len(set(names)) < len(names):
        raise InputError(f"Expected `{what}` to be distinct names.")
    if what == "classes" and len(names) * max(len(str(n)) for n in names) > MAX_CLASS_TEXT:
        raise InputError(f"Expected class names of {MAX_CLASS_TEXT:,} characters at most.")
    try:
        # The classes of a vector of labels may be floats or booleans, which do not become text.
        return np.array(names) if kinds <= {float, bool} else as_names(names)
    except UnicodeEncodeError:
        raise InputError(f"Expected `{what}` to be text that UTF-8 can hold.") from None
