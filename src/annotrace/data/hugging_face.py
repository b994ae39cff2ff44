"""The packages of Hugging Face, which are optional: imported when needed, and kept silent."""

from __future__ import annotations

import importlib
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from annotrace.errors import AnnotraceError, InputError
from annotrace.threads import GLOBAL_STATE

_INSTALL = 'Install the encoders: pip install "annotrace[encoders]".'
# Before sentence-transformers 6, a folder could name any class on this machine to be imported.
_OLDEST = {"transformers": 5, "sentence_transformers": 6, "huggingface_hub": 1}

_LOGGERS = tuple(_OLDEST)
_levels_before: list[int] = []
_n_silent = 0


def require(package: str) -> Any:
    """Import one of the optional packages, transformers for example."""
    try:
        found = version(package)
        module = importlib.import_module(package)
    except (ImportError, PackageNotFoundError):
        raise InputError(f"This encoder needs the package {package}. {_INSTALL}") from None
    if int(found.split(".")[0]) < _OLDEST[package]:
        raise InputError(
            f"{package} {found} is too old; at least {_OLDEST[package]}.0 is needed. {_INSTALL}"
        )
    return module


@contextmanager
def silent_logs() -> Iterator[None]:
    """Silence what the packages log below errors, in whatever order threads enter and leave."""
    global _n_silent
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    with GLOBAL_STATE:
        if _n_silent == 0:
            _levels_before[:] = [logger.level for logger in loggers]
        _n_silent += 1
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        with GLOBAL_STATE:
            _n_silent -= 1
            if _n_silent == 0:
                for logger, level in zip(loggers, _levels_before, strict=True):
                    logger.setLevel(level)


@contextmanager
def silent_loading() -> Iterator[None]:
    """Silence the logs, warnings and progress bars of a download or of loading a model."""
    with GLOBAL_STATE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Imported first, because importing it sets the level of its logs.
        bars = require("transformers").utils.logging
        with silent_logs(), _no_progress_bars(bars):
            yield


@contextmanager
def _no_progress_bars(bars: Any) -> Iterator[None]:
    """Disable the bars of transformers and of the hub."""
    if not bars.is_progress_bar_enabled():
        yield
        return
    bars.disable_progress_bar()
    try:
        yield
    finally:
        bars.enable_progress_bar()


@contextmanager
def as_input_error(what: str, remedy: str) -> Iterator[None]:
    """Raise an `InputError` of one line, "WHAT (reason). REMEDY", for any error of the packages.

    They raise errors of many types, some with messages of many lines.
    """
    try:
        yield
    except (AnnotraceError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{what} ({first_sentence(error)}). {remedy}") from None


def first_sentence(error: Exception) -> str:
    """Return the first sentence of a message, without the full stop; at most 200 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = re.split(r"\.\s", lines[0])[0] if lines else type(error).__name__
    return first[:200].rstrip(".:")
