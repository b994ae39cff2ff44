"""The loop of `annotrace connect` with a labelling tool: one round, or as many as are watched."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.connect_round import Round, Wishes
from annotrace.cli.next_labels import read_available
from annotrace.cli.output import new_run

if TYPE_CHECKING:
    from annotrace.connect import LabellingTool

_REFUSED = (400, 403)


def read_secret(what: str, tool: str, variables: Sequence[str], url: str) -> str:
    """Return a token or password from the environment, or ask for it without showing it.

    Warn if it would go over the network in plain text.
    """
    _warn_plain(url, what)
    for name in variables:
        if secret := os.environ.get(name):
            return secret
    if not sys.stdin.isatty():
        raise click.UsageError(f"There is no {what}: set the environment variable {variables[0]}.")
    secret = click.prompt(f"{what.capitalize()} of {tool}", hide_input=True, err=True)
    return str(secret)


def _warn_plain(url: str, what: str) -> None:
    from annotrace.connect.json_api import is_local

    if url.lower().startswith("http://") and not is_local(url):
        click.echo(
            f"Warning: the {what} goes over plain http, which others on the network can read. Use "
            "https.",
            err=True,
        )


def run_loop(
    tool: LabellingTool,
    *,
    out: Path,
    overwrite: bool,
    watch: bool,
    interval: float,
    min_new: int,
    listen: str | None = None,
    annotators: Path | None = None,
    capacity: int | None = None,
    **wishes: Any,
) -> None:
    """Do one round with a tool, or with `watch` one whenever enough is new."""
    if not watch and listen is not None:
        raise click.UsageError("--listen goes with --watch.")
    available, costs = read_available(annotators, capacity)
    step = Round(tool, out, Wishes(**wishes, available=available, costs=costs))
    if not watch:
        with new_run(out, overwrite):
            step.run(tool.pull())
        return
    with new_run(out, overwrite), _interruptible(out):
        _watch(tool, step, interval, min_new, listen)


@contextmanager
def _interruptible(out: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Stopped watching; {out} has the last result.") from None


def _watch(
    tool: LabellingTool, step: Round, interval: float, min_new: int, listen: str | None
) -> None:
    from annotrace.connect.listener import listening
    from annotrace.connect.watch import Pace, Watch

    wake = Event()
    watching = Watch(tool, step.run, Pace(interval, min_new), click.echo, wake)
    if listen is None:
        watching.run()
        return
    with listening(listen, wake) as address, _subscribed(tool, address):
        watching.run()


@contextmanager
def _subscribed(tool: LabellingTool, address: str) -> Iterator[None]:
    """Have changes reported to an address, or say why they are not; looks go on in any case."""
    from annotrace.errors import ConnectError

    try:
        tool.subscribe(address)
    except ConnectError as error:
        if error.status not in _REFUSED:
            raise
        click.echo(f"Warning: {error} Looking every --interval seconds only.", err=True)
    try:
        yield
    finally:
        try:
            tool.unsubscribe(address)
        except ConnectError as error:
            click.echo(f"Warning: the webhook to {address} could not be removed: {error}", err=True)
