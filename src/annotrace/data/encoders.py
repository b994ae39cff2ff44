"""Encoders: what turns texts or images into features, by name, by path, or a function."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from annotrace.data.encoding_cache import Cache, cache_folder
from annotrace.data.hugging_face import as_input_error, silent_loading, silent_logs
from annotrace.data.model_files import ModelFiles, find_model, fingerprint_model
from annotrace.data.pretrained import PretrainedModel, load_model
from annotrace.data.raw_items import Kind
from annotrace.devices import pick_device
from annotrace.errors import InputError
from annotrace.parameters import check_parameters

# Raised when the same model and items give other features, so that no cache of before is used.
_VERSION = 1


class Encoder(Protocol):
    """A function from a list of texts, pairs of texts or Pillow images to an array.

    A plain function is an encoder. It may have attributes: `fingerprint`, a text that identifies
    it and whatever it depends on, so that its results are cached; and `min_side`, for images: JPEG
    files may be decoded at a reduced size with sides of at least twice this.
    """

    def __call__(self, items: list[Any], /) -> ArrayLike:
        """Return features of shape (n_items, n_features); n_features is always the same."""


@dataclass(frozen=True)
class EncoderRecord:
    """What identifies an encoder, so that new items can be encoded the same way later.

    Attributes
    ----------
    name : str
        The name or path that the user gave, or the name of a function.
    kind : "text", "pairs" or "images"
        The items that it encodes.
    origin : "hub", "folder" or "function"
    fingerprint : str
        A digest of the model and of how it is used; "" for a function without one.
    revision : str or None
        The commit of a model from the hub.
    """

    name: str
    kind: Kind
    origin: Literal["hub", "folder", "function"]
    fingerprint: str
    revision: str | None = None

    def __post_init__(self) -> None:
        check_parameters(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> EncoderRecord:
        """Restore a record from what `to_dict` returned; anything else is an `InputError`."""
        try:
            return cls(**fields)
        except TypeError:
            raise InputError("It is not the record of an encoder.") from None

    def to_dict(self) -> dict[str, str | None]:
        """Return the fields, for JSON."""
        return asdict(self)


class FunctionEncoder:
    """A function of the user's as an encoder."""

    def __init__(self, function: Encoder, kind: Kind, cache_key: str | None = None) -> None:
        if not callable(function):
            raise InputError(
                "Expected `encoder` to be a name, a path or a function from a list of items to an "
                f"array, but got {type(function).__name__}."
            )
        name = getattr(function, "__qualname__", type(function).__qualname__)
        key = getattr(function, "fingerprint", None) if cache_key is None else cache_key
        self.function, self.min_side = function, getattr(function, "min_side", None)
        fingerprint = "" if key is None else _fingerprint("function", key, kind, self.min_side)
        self.record = EncoderRecord(name, kind, "function", fingerprint)

    def __call__(self, items: Any) -> Any:
        """Encode a batch."""
        return self.function(list(items))


class PretrainedEncoder:
    """A pretrained model as an encoder, loaded when the first batch comes."""

    def __init__(self, files: ModelFiles, record: EncoderRecord, device: torch.device) -> None:
        self.files, self.record, self.device = files, record, device
        self._model: PretrainedModel | None = None

    @property
    def min_side(self) -> int | None:
        """The side that the model resizes images to, if it does."""
        return self._loaded().min_side

    def __call__(self, items: Any) -> NDArray[np.float32]:
        """Encode a batch."""
        model = self._loaded()
        with silent_logs(), self._named_errors("encode"):
            try:
                return model(items)
            except torch.OutOfMemoryError:
                raise InputError(
                    f"{self.record.name}: a batch does not fit into the memory of {self.device}. "
                    "Use a smaller batch_size= (--batch-size)."
                ) from None

    def _loaded(self) -> PretrainedModel:
        if self._model is None:
            with self._named_errors("be loaded to encode"), silent_loading():
                self._model = load_model(self.files, self.record.kind, self.device)
        return self._model

    def _named_errors(self, what: str) -> Any:
        items = {"text": "texts", "pairs": "pairs of texts"}.get(self.record.kind, "images")
        return as_input_error(
            f"{self.record.name} cannot {what} {items}",
            "If its files are complete, choose another model.",
        )


def load_encoder(
    encoder: str | PathLike[str] | Encoder | PretrainedEncoder,
    kind: Kind,
    *,
    device: str | torch.device = "auto",
    cache: Cache = None,
    cache_key: str | None = None,
    revision: str | None = None,
    verbose: bool = False,
) -> PretrainedEncoder | FunctionEncoder:
    """Return an encoder for items of a kind; parameters are those of `encode`."""
    if isinstance(encoder, PretrainedEncoder | FunctionEncoder):
        if encoder.record.kind != kind:
            raise InputError(
                f"The encoder {encoder.record.name} is for items of kind {encoder.record.kind!r}, "
                f"but got {kind!r}."
            )
        return encoder
    if not isinstance(encoder, str | PathLike):
        return FunctionEncoder(encoder, kind, cache_key)
    files = find_model(encoder, revision, verbose=verbose)
    modality = "images" if kind == "images" else "text"
    content = fingerprint_model(files.folder, cache_folder(cache))
    fingerprint = _fingerprint(modality, content)
    origin: Literal["hub", "folder"] = "folder" if files.revision is None else "hub"
    record = EncoderRecord(files.name, kind, origin, fingerprint, files.revision)
    return PretrainedEncoder(files, record, pick_device(device))


def encoder_from_record(
    record: EncoderRecord,
    encoder: str | Path | Encoder | None = None,
    *,
    device: str | torch.device = "auto",
    cache: Cache = None,
) -> PretrainedEncoder | FunctionEncoder:
    """Return the encoder that a record describes, to encode new items in the same way.

    Parameters
    ----------
    record : EncoderRecord
    encoder : str, Path or Encoder, optional
        Where the model is now, or the function, which a record cannot hold. By default the name in
        the record, and for a model from the hub its revision.
    device, cache
        As in `encode`.

    Raises
    ------
    InputError
        If the model is not found, or if its content is not that of the record.
    """
    if encoder is None and record.origin == "function":
        raise InputError(
            f"The features are from the function {record.name!r}, which is code and not saved. "
            "Pass it again as the encoder."
        )
    found = load_encoder(
        record.name if encoder is None else encoder,
        record.kind,
        device=device,
        cache=cache,
        revision=record.revision if encoder is None else None,
    )
    if found.record.fingerprint and found.record.fingerprint != record.fingerprint:
        raise InputError(
            f"The encoder {found.record.name} has changed: it is not the model that the features "
            f"are from ({record.fingerprint[:12]}, now {found.record.fingerprint[:12]}). Restore "
            "the model, or encode all items again and fit again."
        )
    return found


def _fingerprint(*parts: str | int | None) -> str:
    return hashlib.sha256(json.dumps([_VERSION, *parts]).encode()).hexdigest()
