"""--seed, as the commands take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]

# What numpy and torch both take.
LARGEST = 2**32 - 1


def seed_option(help: str) -> Callable[[Command], Command]:
    """Give a command --seed."""
    return click.option(
        "--seed", type=click.IntRange(0, LARGEST), default=0, show_default=True, help=help
    )
