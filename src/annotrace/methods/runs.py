"""A run as a folder: written whole, checked when read, never pickled.

::

    truth.csv          item, label, confidence, one column a class
    annotators.csv     annotator, n_labels, skill, low, high, flags
    confusion.npz      confusion (annotators, classes, classes), annotators, classes
    model.safetensors  weights, posteriors and labels, for `load`
    run.json           method, settings, diagnosis, history, versions, checksum

The commands add report.html, all of it for people.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from annotrace.aggregation.runs import AggregatedRun, describe_fitted, load_aggregated
from annotrace.errors import RunError
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import Names, as_names
from annotrace.labels.writing import atomic_write, write_classes, write_confusion, write_csv
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.registry import estimator_class
from annotrace.models.backbones import Backbone
from annotrace.training import Epoch, pick_device
from annotrace.version import FORMAT, __version__

_CODES = ("item", "annotator", "label", "truth")
_LEARNED = (
    *("posterior_", "confusion_", "gold_", "fold_", "held_out_", "temperature_"),
    *("vote_confusion_", "weights_"),
)
# What json can hold.
_CHOSEN = ("chosen_", "epochs_", "mixup_", "label_loss_", "aggregation_seed_")
_VOCABULARIES = ("items", "annotators", "classes")
_NEEDED = {
    *("method", "params", "custom_backbone", "history", "sha256"),
    *("input_shape", "named_rows", "positional"),
}


def save_run(model: CrowdEstimator, folder: Path) -> None:
    """Write a fitted model to a folder, each file whole or not at all."""
    from safetensors.torch import save

    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; give a folder to save to.")
    folder.mkdir(parents=True, exist_ok=True)
    weights = save({name: tensor.contiguous().cpu() for name, tensor in _tensors(model).items()})
    with atomic_write(folder / "model.safetensors") as file:
        file.write(weights)
    table = model.table_
    write_classes(
        folder / "truth.csv",
        table.items.tolist(),
        table.classes,
        model.posterior_,
        labels=table.classes[model._estimate()],
        confidence=model.confidence_,
    )
    write_csv(model._people(), folder / "annotators.csv")
    if hasattr(model, "confusion_"):
        write_confusion(folder, table, model.confusion_)
    else:
        (folder / "confusion.npz").unlink(missing_ok=True)
    described = json.dumps(_describe(model, weights), indent=1, default=_plain) + "\n"
    with atomic_write(folder / "run.json") as file:
        file.write(described.encode())


def load(
    folder: str | Path, *, backbone: Backbone | None = None, device: str = "auto"
) -> CrowdEstimator | AggregatedRun:
    """Read a fitted model back from the folder that `save` wrote.

    The folder of an aggregation has no classifier, and gives an `AggregatedRun`.

    Parameters
    ----------
    folder : str or Path
    backbone : nn.Module, optional
        Needed where the model was trained with a module of one's own: a run holds weights, not
        code.
    device : str

    Raises
    ------
    RunError
        If the run is not there, damaged, or from a newer version.
    """
    folder = Path(folder)
    described = _read_description(folder)
    if described.get("kind") == "aggregation":
        return load_aggregated(folder, described)
    _check_complete(folder, described)
    tensors = _read_tensors(folder, described)
    params = {**described["params"], "device": device}
    if described["custom_backbone"]:
        if backbone is None:
            raise RunError(
                f"{folder}: trained with a network of its own; give it as load(..., backbone=...)."
            )
        params["backbone"] = backbone
    model = estimator_class(described["method"])(**params)
    try:
        _restore(model, described, tensors)
    except RuntimeError as error:
        if backbone is None:
            raise
        reason = str(error).splitlines()[0]
        raise RunError(
            f"{folder}: trained with another network than `backbone`: {reason}"
        ) from None
    return model


def plain_settings(model: CrowdEstimator) -> dict[str, Any]:
    """Give the parameters that make a model what it is, and that a file can hold."""
    return {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in ("callbacks", "checkpoint", "device")
        and isinstance(value, str | int | float | np.generic | None)
    }


def _tensors(model: CrowdEstimator) -> dict[str, Tensor]:
    tensors = {
        f"{part}.{name}": tensor
        for part, module in model._parts().items()
        for name, tensor in module.state_dict().items()
    }
    table = model.table_
    for name in _LEARNED:
        if hasattr(model, name):
            tensors[name] = torch.from_numpy(np.asarray(getattr(model, name)))
    for name in _CODES:
        if getattr(table, name) is not None:
            tensors[f"labels.{name}"] = torch.from_numpy(getattr(table, name).copy())
    for name in _VOCABULARIES:
        tensors[f"labels.{name}"] = _pack(getattr(table, name))
    return tensors


def _pack(names: Names) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(names.tolist()).encode()), dtype=torch.uint8)


def _unpack(packed: Tensor) -> Names:
    names = json.loads(packed.numpy().tobytes().decode())
    # A vector of labels may be of these, and its classes are not turned into names.
    return np.array(names) if isinstance(names[0], bool | float) else as_names(names)


def _describe(model: CrowdEstimator, weights: bytes) -> dict[str, Any]:
    custom = isinstance(model.backbone, torch.nn.Module)
    return describe_fitted(model) | {
        "method": model.method,
        "params": plain_settings(model),
        "custom_backbone": custom,
        "input_shape": list(model.input_shape_),
        "named_rows": model.named_rows_,
        "feature_names": list(getattr(model, "feature_names_in_", [])),
        "positional": model.table_.positional,
        "chosen": {name: getattr(model, name) for name in _CHOSEN if hasattr(model, name)},
        "history": [asdict(epoch) for epoch in model.history_],
        "sha256": {"model.safetensors": hashlib.sha256(weights).hexdigest()},
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    if not path.is_file():
        raise RunError(
            f"{folder}: no run here, there is no run.json in it. Give the folder that `annotrace "
            "fit` or `annotrace aggregate` wrote."
        )
    try:
        described: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        written = int(described["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: damaged, it cannot be read as a run ({error!r}).") from None
    if written > FORMAT:
        version = described.get("versions", {}).get("annotrace", "?")
        raise RunError(
            f"{folder}: written by a newer annotrace ({version}, format {written}); this one is "
            f"{__version__} and reads format {FORMAT}. Update annotrace."
        )
    return described


def _check_complete(folder: Path, described: dict[str, Any]) -> None:
    missing = _NEEDED - set(described)
    if missing:
        path = folder / "run.json"
        raise RunError(f"{path}: damaged, it does not say {', '.join(sorted(missing))}.")


def _read_tensors(folder: Path, described: dict[str, Any]) -> dict[str, Tensor]:
    from safetensors.torch import load as load_tensors

    path = folder / "model.safetensors"
    if not path.is_file():
        raise RunError(f"{folder}: incomplete, there is no model.safetensors in it.")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != described["sha256"]["model.safetensors"]:
        raise RunError(f"{path}: damaged, its content is not what run.json says was written.")
    tensors: dict[str, Tensor] = load_tensors(content)
    return tensors


def _restore(model: CrowdEstimator, described: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    parts: dict[str, Any] = {name: tensors[f"labels.{name}"].numpy() for name in _CODES[:3]}
    parts |= {name: _unpack(tensors[f"labels.{name}"]) for name in _VOCABULARIES}
    truth = tensors.get("labels.truth")
    model.table_ = LabelTable(
        **parts,
        truth=None if truth is None else truth.numpy(),
        positional=described["positional"],
    )
    model._set_classes()
    model.input_shape_ = tuple(described["input_shape"])
    model.n_features_in_ = int(np.prod(model.input_shape_))
    model.named_rows_ = described["named_rows"]
    if described.get("feature_names"):
        model.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    model.history_ = [Epoch(**epoch) for epoch in described["history"]]
    model.versions_ = described.get("versions", {})
    for name, value in described.get("chosen", {}).items():
        setattr(model, name, value)
    for name in _LEARNED:
        if name in tensors:
            setattr(model, name, tensors[name].numpy()[()])  # a number, if it was one
    device = pick_device(model.device)
    blank = torch.zeros(2, *model.input_shape_)
    model.network_ = model._network_for(blank)
    model._build_parts(device)
    for part, module in model._parts().items():
        prefix = f"{part}."
        state = {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}
        module.load_state_dict(state)
        module.to(device).eval()
