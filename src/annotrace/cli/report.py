"""`annotrace report`: what was learned, as a page for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.folders import check_file

if TYPE_CHECKING:
    from annotrace.report.result import Fitted

Command = Callable[..., Any]

FILE = "report.html"
_ANONYMOUS = "Call annotators by numbers in the report, from the highest skill down."


def report_options(command: Command) -> Command:
    """Give a command that makes a run --no-report and --anonymous."""
    anonymous = click.option("--anonymous", is_flag=True, help=_ANONYMOUS)
    wanted = click.option(
        "--report/--no-report", default=True, help=f"Write {FILE} too.  [default: report]"
    )
    return wanted(anonymous(command))


def write_run_report(model: Fitted, out: Path, wanted: bool, **options: Any) -> str:
    """Write the report of a run if it is wanted, and give what to say of it."""
    path = out / FILE
    if not wanted:
        # A report of an earlier run does not belong to these labels.
        path.unlink(missing_ok=True)
        return ""
    from annotrace.report import write_report

    write_report(model, path, **options)
    return f"Open {path} in a browser to see it all."


@click.command(short_help="Write what a run has learned as a page for people.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"html file to write.  [default: {FILE} in RUN, written over]",
)
@click.option("--overwrite", is_flag=True, help="Write over what an earlier command left there.")
@click.option("--anonymous", is_flag=True, help=_ANONYMOUS)
@click.option(
    "--images",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Pictures of the items: png, jpg or bmp files named like them.",
)
@click.option("--title", default="Annotation report", show_default=True, help="What to call it.")
def report(
    run: Path,
    out: Path | None,
    overwrite: bool,
    anonymous: bool,
    images: Path | None,
    title: str,
) -> None:
    """Write what RUN has learned as one page, for the person who runs the annotation.

    RUN is a folder that `annotrace fit`, `annotrace aggregate` or `annotrace demo` wrote. The page
    says how good the labels are and what to do next, who is reliable on what, and which items and
    labels to doubt. It is one file: it opens from disk, loads nothing, and can be sent and printed.

    \b
    Examples:
      annotrace report run
      annotrace report run --images photos/
      annotrace report run --anonymous --out for-the-team.html
    """
    from annotrace.methods.runs import load
    from annotrace.report import write_report

    if out is not None:
        check_file(out, overwrite)
    path = out or run / FILE
    write_report(load(run, device="cpu"), path, anonymous=anonymous, images=images, title=title)
    click.echo(f"Wrote {path}: open it in a browser.")
