"""Warnings, as the commands tell them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def telling_warnings(parameter: str) -> Iterator[None]:
    """Tell the warnings of a block, one a line, and a parameter in them as an option."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        yield
    option = "--" + parameter.replace("_", "-")
    for warning in raised:
        said = str(warning.message).replace(f"`{parameter}`", option)
        click.echo(f"Warning: {said}", err=True)
