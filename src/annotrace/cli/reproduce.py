"""`annotrace reproduce`: run and draw a table or figure of the paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from annotrace.experiments import EXPERIMENTS, LISTED, find_experiment
from annotrace.experiments.options import FLAGS, options_from

Command = Callable[..., Any]


def _flags(command: Command) -> Command:
    """Add the options of an experiment to a command."""
    for flag in reversed(FLAGS):
        kind: Any = click.Choice(flag.choices) if flag.choices else flag.read
        command = click.option(
            flag.flag,
            flag.name,
            type=kind,
            metavar=flag.metavar,
            help=flag.help,
            multiple=flag.repeated,
        )(command)
    return command


@click.command(
    short_help="Run an experiment of the paper, and draw its tables and figures.",
    epilog=f"\b\nExperiments:\n{LISTED}",
)
@click.argument("name", type=click.Choice(list(EXPERIMENTS)), metavar="NAME")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the images: the idx files of MNIST, or the binary version of CIFAR-10.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of results.jsonl, tables and figures; default runs/NAME. Experiments that share "
    "a folder share their runs.",
)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or mps.")
@click.option("--only-draw", is_flag=True, help="Run nothing; draw the runs in results.jsonl.")
@_flags
def reproduce(
    name: str,
    data_dir: Path | None,
    out: Path | None,
    device: str,
    only_draw: bool,
    **flags: Any,
) -> None:
    """Reproduce a table or figure of the paper (Tanno et al., CVPR 2019).

    Every run is a line of results.jsonl, from which tables (Markdown) and figures (SVG, PNG) are
    drawn. A stopped command resumes: finished runs are not repeated.

    \b
    Examples:
      annotrace reproduce digits
      annotrace reproduce mnist-em --data-dir mnist/ --out runs/mnist
      annotrace reproduce cifar10-table --data-dir cifar-10-batches-bin/ --protocol paper
      annotrace reproduce cifar10-table --only-draw
    """
    from annotrace.errors import RunError, SweepError
    from annotrace.experiments.plans import make_plan
    from annotrace.experiments.runner import finished, sweep
    from annotrace.labels.writing import check_writable

    experiment, options = find_experiment(name), options_from(flags)
    folder = out or Path("runs") / name
    check_writable(folder)
    failure = None
    if not only_draw:
        try:
            show = partial(click.echo, err=True)
            sweep(experiment, options, out=folder, data_dir=data_dir, device=device, show=show)
        except SweepError as error:
            failure = error
    results, planned = finished(experiment, options, folder), len(make_plan(experiment, options))
    if not results:
        raise failure or RunError(
            f"{folder} has none of the {planned} runs of {name} with these options; give the "
            "options of its runs, or leave out --only-draw."
        )
    if len(results) < planned:
        click.echo(f"Drawn from {len(results)} of {planned} runs; the others do not exist yet.")
    written = experiment.draw(results, folder)
    for path in written:
        if path.suffix == ".md":
            click.echo(path.read_text(encoding="utf-8"))
    click.echo("Wrote " + ", ".join(map(str, written)))
    if failure is not None:
        raise failure
