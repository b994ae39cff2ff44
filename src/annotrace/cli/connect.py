"""`annotrace connect`: the loop with a labelling tool, once or as long as it is watched."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.connect_items import task_image_options
from annotrace.cli.connect_round import Round, Wishes
from annotrace.cli.next_labels import read_available
from annotrace.cli.options import (
    PATH,
    anonymous_option,
    out_options,
    quiet_option,
    raw_option,
    seed_option,
)
from annotrace.cli.output import new_run

if TYPE_CHECKING:
    from annotrace.connect import LabellingTool

TOKENS = ("ANNOTRACE_LABEL_STUDIO_TOKEN", "LABEL_STUDIO_API_KEY")
_REFUSED = (400, 403)


@click.group(short_help="Exchange labels and predictions with a labelling tool.")
def connect() -> None:
    """Estimate true classes from the answers in a labelling tool, and write back what helps.

    \b
    Examples:
      annotrace connect label-studio http://localhost:8080 --project 1 --out run
    """


@connect.command("label-studio", short_help="Label Studio, community edition 1.23.")
@click.argument("url")
@click.option("--project", type=click.IntRange(min=1), required=True, help="Number of the project.")
@out_options("RUN", "Folder to write the run to.")
@click.option(
    "--question", metavar="NAME", help="The control whose answers are the labels, if several are."
)
@click.option(
    "--item", metavar="FIELD", help="Field of a task that names it.  [default: the task's number]"
)
@click.option("--skip", metavar="ANSWER", multiple=True, help="An answer that is not a label.")
@click.option(
    "--repeats",
    type=click.Choice(["keep", "first", "last", "error"]),
    default="keep",
    show_default=True,
    help="What to do if an annotator answered a task more than once.",
)
@click.option(
    "--text", metavar="FIELD", help="Train a classifier on this text of the tasks, as `fit` does."
)
@task_image_options
@click.option(
    "--encoder",
    metavar="NAME_OR_PATH",
    help="Encode the texts or images with a pretrained model, as `fit` does.",
)
@click.option(
    "--method",
    metavar="NAME",
    help="A method of `annotrace aggregate`, or with --text or --image of `annotrace fit`; by "
    "default theirs.",
)
@click.option(
    "--gold",
    type=PATH,
    metavar="FILE",
    help="Table of items and their true classes: learned from, and marked as ground truth where an "
    "annotation has that class.",
)
@click.option("--push", is_flag=True, help="Write predictions back, hidden from annotators.")
@click.option("--queue", is_flag=True, help="Give each annotator a tab with the tasks to label.")
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    help="Labels to plan with --queue, as in `annotrace next`.  [default: 10 per annotator]",
)
@click.option(
    "--annotators",
    type=PATH,
    metavar="FILE",
    help="csv of those who can be asked, as in `annotrace next`; by default all who have answered.",
)
@click.option(
    "--capacity", type=click.IntRange(min=0), help="Maximum number of planned labels by each."
)
@click.option("--watch", is_flag=True, help="Keep going: fit again when enough labels are new.")
@click.option(
    "--interval",
    type=click.FloatRange(min=1),
    default=30,
    show_default=True,
    help="With --watch: seconds between looks.",
)
@click.option(
    "--min-new",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="With --watch: new or changed labels until the next fit.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="With --watch: also look when a webhook calls this address, by which the server reaches "
    "this machine.",
)
@click.option("--cost", type=click.FloatRange(min=0, min_open=True), help="Cost of one label.")
@click.option(
    "--min-gain",
    type=click.FloatRange(min=0),
    default=0.01,
    show_default=True,
    help="Further labels pay as long as the best one is expected to gain so many correct items.",
)
@seed_option("The same labels and seed give the same run.")
@anonymous_option
@raw_option
@quiet_option
def label_studio(
    url: str,
    project: int,
    out: Path,
    overwrite: bool,
    question: str | None,
    item: str | None,
    skip: tuple[str, ...],
    repeats: Any,
    annotators: Path | None,
    capacity: int | None,
    watch: bool,
    interval: float,
    min_new: int,
    listen: str | None,
    **options: Any,
) -> None:
    """Read the answers of a project in Label Studio, estimate the true classes, and close the loop.

    URL is the address of the server. The access token is read from ANNOTRACE_LABEL_STUDIO_TOKEN or
    LABEL_STUDIO_API_KEY, or asked for. RUN becomes a folder as `annotrace aggregate` writes it, or
    with --text or --image as `annotrace fit` does. Annotations that are marked as ground truth are
    gold items.

    --push adds the estimated classes as predictions, with their confidence as score; annotrace's
    earlier ones are deleted, those of other models stay. --queue makes one tab per annotator with
    the tasks whose label is expected to gain most; in it, choose "Label Tasks As Displayed".

    \b
    Examples:
      annotrace connect label-studio http://localhost:8080 --project 1 --out run
      annotrace connect label-studio http://localhost:8080 --project 1 --out run \\
          --overwrite --push --queue
      annotrace connect label-studio http://localhost:8080 --project 1 --out run \\
          --text review --push --queue --watch --cost .05
      annotrace connect label-studio http://localhost:8080 --project 1 --out run \\
          --image photo --encoder facebook/dinov2-small --push
    """
    from annotrace.connect import LabelStudio
    from annotrace.labels.building import TableOptions

    if not watch and listen is not None:
        raise click.UsageError("--listen goes with --watch.")
    table = TableOptions(skip=skip, repeats=repeats)
    token = _read_token()
    _warn_plain(url)
    tool = LabelStudio(url, project, token, question=question, item=item, options=table)
    available, costs = read_available(annotators, capacity)
    wishes = Wishes(**options, available=available, costs=costs)
    step = Round(tool, out, wishes)
    if not watch:
        with new_run(out, overwrite):
            step.run(tool.pull())
        return
    with new_run(out, overwrite), _interruptible(out):
        _watch(tool, step, interval, min_new, listen)


def _read_token() -> str:
    """Return the token of the environment, or ask for it without showing it."""
    for name in TOKENS:
        if token := os.environ.get(name):
            return token
    if not sys.stdin.isatty():
        raise click.UsageError(f"There is no token: set the environment variable {TOKENS[0]}.")
    token = click.prompt("Access token of Label Studio", hide_input=True, err=True)
    return str(token)


def _warn_plain(url: str) -> None:
    from annotrace.connect.json_api import is_local

    if url.lower().startswith("http://") and not is_local(url):
        click.echo(
            "Warning: the token goes over plain http, which others on the network can read. Use "
            "https.",
            err=True,
        )


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
