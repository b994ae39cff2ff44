"""`annotrace report`: the HTML report of a run."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from annotrace.cli.item_texts import Texts, text_options
from annotrace.cli.options import PATH, Images, anonymous_option, image_options, overwrite_option
from annotrace.cli.output import check_file, echo_warnings
from annotrace.run_folder import REPORT, locked


@click.command(short_help="Write the report of a run as a page for managers.")
@click.argument("run", type=PATH)
@click.option(
    "--out",
    type=PATH,
    metavar="FILE",
    help=f"html file to write.  [default: {REPORT} in RUN, overwritten]",
)
@overwrite_option
@anonymous_option
@image_options("Pictures of the items: a folder of images, or tar files, named like them.")
@text_options("FILE", "Texts of the items: a table with an item column and a text column.")
@click.option("--item", metavar="COLUMN", help="Column of --text that names the item.")
@click.option("--title", default="Annotation report", show_default=True, help="Title of the page.")
def report(
    run: Path,
    out: Path | None,
    overwrite: bool,
    anonymous: bool,
    images: Images | None,
    texts: Texts | None,
    item: str | None,
    title: str,
) -> None:
    """Write the results of RUN as one page for those who manage the annotation.

    RUN is a folder that `annotrace fit`, `annotrace aggregate` or `annotrace demo` wrote. The page
    shows the quality of the labels and what to do next, how reliable each annotator is on each
    class, and which items and labels to review. It is one file: it opens from disk, loads nothing,
    and can be sent and printed.

    \b
    Examples:
      annotrace report run
      annotrace report run --images photos/
      annotrace report run --text texts.csv
      annotrace report run --anonymous --out for-the-team.html
    """
    from annotrace.methods import load
    from annotrace.report import write_report

    if out is not None:
        check_file(out, overwrite)
    path = out or run / REPORT
    shown = {
        "images": None if images is None else images.open(),
        "texts": None if texts is None else texts.read(item),
    }
    with nullcontext() if out is not None else locked(run):
        model = load(run, device="cpu")
        with echo_warnings("images"):
            write_report(model, path, anonymous=anonymous, title=title, **shown)
    click.echo(f"Wrote {path}: open it in a browser.")
