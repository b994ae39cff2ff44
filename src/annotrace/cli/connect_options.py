"""Options of `annotrace connect`: those of every tool, and those of tools that are written to."""

from __future__ import annotations

from typing import Any

import click

from annotrace.cli.options import (
    PATH,
    Command,
    Decorator,
    anonymous_option,
    out_options,
    quiet_option,
    raw_option,
    seed_option,
)

_POSITIVE = click.FloatRange(min=0, min_open=True)

_READ_OPTIONS = (
    click.argument("url"),
    click.option(
        "--project", type=click.IntRange(min=1), required=True, help="Number of the project."
    ),
    out_options("RUN", "Folder to write the run to."),
    click.option(
        "--item", metavar="FIELD", help="Field that names an item.  [default: its number]"
    ),
    click.option("--skip", metavar="ANSWER", multiple=True, help="An answer that is not a label."),
    click.option(
        "--text",
        metavar="FIELD",
        help="Train a classifier on this text of the items, as `fit` does.",
    ),
    click.option(
        "--encoder",
        metavar="NAME_OR_PATH",
        help="Encode the texts or images with a pretrained model, as `fit` does.",
    ),
    click.option(
        "--method",
        metavar="NAME",
        help="A method of `annotrace aggregate`, or for texts and images of `annotrace fit`; by "
        "default theirs.",
    ),
    click.option(
        "--gold",
        type=PATH,
        metavar="FILE",
        help="Table of items and their true classes: learned from, and marked as ground truth "
        "where the tool can and somebody has given that class.",
    ),
)
_LOOP_OPTIONS = (
    click.option("--watch", is_flag=True, help="Keep going: fit again when enough labels are new."),
    click.option(
        "--interval",
        type=click.FloatRange(min=1),
        default=30,
        show_default=True,
        help="With --watch: seconds between looks.",
    ),
    click.option(
        "--min-new",
        type=click.IntRange(min=1),
        default=10,
        show_default=True,
        help="With --watch: new or changed labels until the next fit.",
    ),
    click.option("--cost", type=_POSITIVE, help="Cost of one label."),
    click.option(
        "--min-gain",
        type=click.FloatRange(min=0),
        default=0.01,
        show_default=True,
        help="Further labels pay as long as the best one is expected to gain so many correct "
        "items.",
    ),
    seed_option("The same labels and seed give the same run."),
    anonymous_option,
    raw_option,
    quiet_option,
)
_WRITE_OPTIONS = (
    click.option("--push", is_flag=True, help="Write predictions back, hidden from annotators."),
    click.option(
        "--queue", is_flag=True, help="Give each annotator a tab with the tasks to label."
    ),
    click.option(
        "--budget",
        type=_POSITIVE,
        help="Labels to plan with --queue, as in `annotrace next`.  [default: 10 per annotator]",
    ),
    click.option(
        "--annotators",
        type=PATH,
        metavar="FILE",
        help="csv of those who can be asked, as in `annotrace next`; by default all who have "
        "answered.",
    ),
    click.option(
        "--capacity", type=click.IntRange(min=0), help="Maximum number of planned labels by each."
    ),
    click.option(
        "--listen",
        metavar="HOST:PORT",
        help="With --watch: also look when a webhook calls this address, by which the server "
        "reaches this machine.",
    ),
)


def read_options(command: Command) -> Command:
    """Add the argument URL, and what is read and fitted."""
    return _add(_READ_OPTIONS, command)


def loop_options(command: Command) -> Command:
    """Add when a round is repeated, and how runs are written."""
    return _add(_LOOP_OPTIONS, command)


def write_options(command: Command) -> Command:
    """Add what is written back, and --listen."""
    return _add(_WRITE_OPTIONS, command)


def refused_option(name: str, why: str, **attributes: Any) -> Decorator:
    """Return an option of other tools, which is not listed, and an error that says why."""

    def refuse(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value:
            raise click.UsageError(f"{why}: leave out {name}.")

    return click.option(name, expose_value=False, hidden=True, callback=refuse, **attributes)


def _add(options: tuple[Decorator, ...], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
