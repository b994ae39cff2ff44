"""`annotrace reproduce`: a table or figure of the paper, run and drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.experiments.options import FLAGS, options_from
from annotrace.experiments.registry import EXPERIMENTS, find_experiment

if TYPE_CHECKING:
    from annotrace.experiments.options import Options
    from annotrace.experiments.runs import Experiment, Result

Command = Callable[..., Any]


def _flags(command: Command) -> Command:
    """Give a command the options that an experiment takes."""
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


def _listed() -> str:
    return "\n".join(f"  {name:18} {shows}" for name, shows in EXPERIMENTS.items())


@click.command(
    short_help="Run an experiment of the paper, and draw its tables and figures.",
    epilog=f"\b\nExperiments:\n{_listed()}",
)
@click.argument("name", type=click.Choice(list(EXPERIMENTS)), metavar="NAME")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the images are: the idx files of MNIST, or the binary version of CIFAR-10.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of results.jsonl, tables and figures; default runs/NAME. Experiments that share "
    "one share their runs.",
)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or mps.")
@click.option("--only-draw", is_flag=True, help="Run nothing; draw what results.jsonl has.")
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
    drawn. A sweep that was stopped goes on where it was: finished runs are not repeated.

    \b
    Examples:
      annotrace reproduce digits
      annotrace reproduce mnist-em --data-dir mnist/ --out runs/mnist
      annotrace reproduce cifar10-table --data-dir cifar-10-batches-bin/ --protocol paper
      annotrace reproduce cifar10-table --only-draw
    """
    from annotrace.errors import SweepError
    from annotrace.experiments.sweep import finished, sweep
    from annotrace.labels.writing import check_writable

    experiment, options = find_experiment(name), options_from(flags)
    folder = out or Path("runs") / name
    check_writable(folder)
    failure = None
    if not only_draw:
        try:
            sweep(experiment, options, out=folder, data_dir=data_dir, device=device)
        except SweepError as error:
            failure = error
            if not finished(experiment, options, folder):
                raise
    written = experiment.draw(_finished(experiment, options, folder), folder)
    _tell(written)
    if failure is not None:
        raise failure


def _finished(experiment: Experiment, options: Options, folder: Path) -> list[Result]:
    from annotrace.errors import RunError
    from annotrace.experiments.plans import make_plan
    from annotrace.experiments.results import FILE
    from annotrace.experiments.sweep import finished

    results = finished(experiment, options, folder)
    planned = len(make_plan(experiment, options))
    if not results:
        raise RunError(
            f"{folder / FILE} has none of the {planned} runs of {experiment.name} with these "
            "options; give those that it was run with, or leave out --only-draw."
        )
    if len(results) < planned:
        click.echo(f"Drawn from {len(results)} of {planned} runs; the others are not there yet.")
    return results


def _tell(written: list[Path]) -> None:
    pages = [path for path in written if path.suffix == ".md"]
    for path in pages:
        click.echo(path.read_text(encoding="utf-8"))
    click.echo("Wrote " + ", ".join(str(path) for path in written))
