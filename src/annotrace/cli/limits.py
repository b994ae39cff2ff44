"""Options that raise the limits on the files that a command reads."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from annotrace.limits import FEATURE_LIMITS, LABEL_LIMITS, Limits

_UNITS = {"": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}


def parse_size(text: str) -> int:
    """Return the number of bytes in a size such as 500MB or 8GB."""
    match = re.fullmatch(r"(\d{1,12})([KMG]?B|)", text, re.IGNORECASE)
    if match is None:
        raise click.BadParameter(f"Expected a size such as 500MB or 8GB, but got {text!r}.")
    return int(match[1]) * _UNITS[match[2].upper()]


class LimitOption(click.Option):
    """An option that `ReadingCommand` lists among the limits."""


def _option(name: str, help: str, type: Callable[[str], int] = int, metavar: str = "N") -> Any:
    return click.option(name, cls=LimitOption, type=type, metavar=metavar, help=help)


_SIZES = f"{LABEL_LIMITS.max_size // 2**30}GB; features {FEATURE_LIMITS.max_size // 2**30}GB"
_RATIOS = f"{LABEL_LIMITS.max_expansion}; features {FEATURE_LIMITS.max_expansion}"
_OPTIONS = (
    _option("--max-size", f"Bytes, unpacked.  [default: {_SIZES}]", parse_size, "SIZE"),
    _option(
        "--max-expansion",
        f"Ratio of unpacked to packed size, above 128MB.  [default: {_RATIOS}]",
    ),
    _option("--max-columns", f"Columns of a table.  [default: {LABEL_LIMITS.max_columns}]"),
    _option(
        "--max-cell",
        "Characters of the name of an item, annotator or class.  "
        f"[default: {LABEL_LIMITS.max_cell}]",
    ),
    _option(
        "--max-depth",
        f"Nested levels of JSON, XML or columns.  [default: {LABEL_LIMITS.max_depth}]",
    ),
    _option(
        "--max-seconds",
        "Seconds that a database may take to answer a query.  "
        f"[default: {LABEL_LIMITS.max_seconds}]",
    ),
)


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --max-size and the like to a command, which takes those given as a dict `limits`."""

    @functools.wraps(command)
    def with_limits(**options: Any) -> Any:
        limits = {name: options.pop(name) for name in (part.name for part in fields(Limits))}
        given = {name: value for name, value in limits.items() if value is not None}
        return command(**options, limits=given)

    for option in reversed(_OPTIONS):
        with_limits = option(with_limits)
    return with_limits


class ReadingCommand(click.Command):
    """A command whose help lists the limits on files under a heading of their own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the limits below them."""
        records = [
            (isinstance(param, LimitOption), record)
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
            and (record := param.get_help_record(ctx)) is not None
        ]
        for is_limit, heading in ((False, "Options"), (True, "Limits on the files that are read")):
            with formatter.section(heading):
                formatter.write_dl([record for limit, record in records if limit == is_limit])
