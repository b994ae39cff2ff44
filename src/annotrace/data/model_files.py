"""The files of a model: found on disk or downloaded from the hub, and their fingerprint."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from annotrace.data.byte_store import ByteStore
from annotrace.data.hugging_face import first_sentence, require, silent_loading
from annotrace.errors import InputError
from annotrace.regular_files import digest_file, open_regular

MODULES = "modules.json"
"""The file by which a folder of sentence-transformers is recognised."""

_CONFIG = "config.json"
_WEIGHTS, _OLD_WEIGHTS = ".safetensors", ".bin"
_SUFFIXES = (_WEIGHTS, _OLD_WEIGHTS, ".json", ".txt", ".model", ".vocab", ".bpe")
_OTHER_FOLDERS = frozenset(["onnx", "openvino", "coreml"])
_OTHER_FILES = [
    *(f"{folder}/*" for folder in sorted(_OTHER_FOLDERS)),
    *("*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf", "*.pt", "*.pth", "*.ckpt"),
    *("*.py", "*.md"),
]
_REPOSITORY = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?", re.ASCII)


class ModelFiles(NamedTuple):
    """A model on disk.

    Attributes
    ----------
    name : str
        As the user wrote it.
    folder : Path
    revision : str or None
        The commit of a model from the hub.
    """

    name: str
    folder: Path
    revision: str | None = None

    @property
    def is_sentence_model(self) -> bool:
        """Whether sentence-transformers wrote the folder."""
        return self.has(MODULES)

    def has(self, *patterns: str) -> bool:
        """Whether the folder has a file that matches one of some patterns."""
        return any(path.is_file() for pattern in patterns for path in self.folder.glob(pattern))


def find_model(
    name: str | PathLike[str], revision: str | None = None, *, verbose: bool = False
) -> ModelFiles:
    """Find the folder of a model, or download it from the hub if there is no such folder.

    Parameters
    ----------
    name : str or Path
        A folder, or the name of a model on the Hugging Face hub.
    revision : str, optional
        The commit of a model on the hub; the newest by default.
    verbose : bool
        Whether to announce a download.
    """
    folder, given = Path(name), os.fspath(name)
    if folder.is_dir():
        files = ModelFiles(given, folder)
    elif not folder.exists() and _REPOSITORY.fullmatch(given):
        files = _download(given, revision, verbose)
    else:
        raise InputError(
            f"{given}: no such folder. An encoder is the folder of a model, or the name of one on "
            "the Hugging Face hub."
        )
    if not files.has(MODULES, _CONFIG):
        raise InputError(
            f"{given} has no {_CONFIG}, so that it is not the folder of a model. Name the folder "
            "that `save_pretrained` or the hub wrote."
        )
    return files


def _download(name: str, revision: str | None, verbose: bool) -> ModelFiles:
    """Download a model, unless the cache of the hub has it."""
    snapshot_download = require("huggingface_hub").snapshot_download
    if verbose:
        sys.stderr.write(f"Looking for {name} on the Hugging Face hub.\n")
    with silent_loading():
        try:
            # The same weights are often there in several formats.
            skipped = [*_OTHER_FILES, f"*{_OLD_WEIGHTS}"]
            folder = Path(snapshot_download(name, revision=revision, ignore_patterns=skipped))
            if not any(folder.rglob(f"*{_WEIGHTS}")):
                snapshot_download(name, revision=revision, ignore_patterns=_OTHER_FILES)
        except Exception as error:  # Of the hub, the network or the disk.
            raise InputError(
                f"{name} is not a folder here, and cannot be had from the Hugging Face hub "
                f"({_reason(error)}). Check the name and the connection, or download the model "
                "elsewhere and name its folder."
            ) from None
    return ModelFiles(name, folder, folder.name)


def _reason(error: Exception) -> str:
    errors = require("huggingface_hub").errors
    reasons: list[tuple[type[Exception], str]] = [
        (errors.GatedRepoError, "its owner has not granted you access"),
        (errors.RepositoryNotFoundError, "it has no such model, or a private one"),
        (errors.RevisionNotFoundError, "this version of it is no longer there"),
        (
            errors.LocalEntryNotFoundError,
            "there is no connection, and it was not downloaded before",
        ),
    ]
    known = (reason for kind, reason in reasons if isinstance(error, kind))
    return next(known, first_sentence(error))


def fingerprint_model(folder: Path, cache: Path | None) -> str:
    """Return a digest of the names and contents of the files that define a model.

    Parameters
    ----------
    folder : Path
    cache : Path or None
        A folder to remember digests of files in, so that they are computed only once for each path,
        size and time of modification.
    """
    store = None if cache is None else ByteStore(cache / "model-files.sqlite")
    files = {
        path.relative_to(folder).as_posix(): _digest(path.resolve(), store).hex()
        for path in sorted(_model_files(folder))
    }
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


def _model_files(folder: Path) -> Iterator[Path]:
    nested = (folder / MODULES).is_file()
    files = [path for path in folder.glob("**/*" if nested else "*") if path.is_file()]
    has_weights = any(path.suffix == _WEIGHTS for path in files)
    for path in files:
        parts = path.relative_to(folder).parts
        is_hidden = any(part.startswith(".") or part in _OTHER_FOLDERS for part in parts)
        is_superseded = has_weights and path.suffix == _OLD_WEIGHTS
        if path.suffix in _SUFFIXES and not is_hidden and not is_superseded:
            yield path


def _digest(path: Path, store: ByteStore | None) -> bytes:
    """Return the sha256 of a file, from the store if it has not changed since."""
    found = path.stat()
    known_as = f"{path}\0{found.st_size}\0{found.st_mtime_ns}".encode(errors="surrogatepass")
    key = hashlib.sha256(known_as).digest()
    known = {} if store is None else store.get([key])
    if key not in known:
        with open_regular(path, InputError) as file:
            known[key] = digest_file(file)
        if store is not None:
            store.put(known.items())
    return known[key]
