"""Options that several commands share."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotrace.cli.label_files import FORMATS, LabelFiles
from annotrace.cli.limits import LimitOption, limit_options
from annotrace.cli.output import echo_warnings
from annotrace.limits import MAX_PIXELS

if TYPE_CHECKING:
    from annotrace.data import ImageSource

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

PATH = click.Path(path_type=Path)
# The largest seed that both numpy and torch accept.
MAX_SEED = 2**32 - 1
# A batch of larger images does not fit into memory.
MAX_IMAGE_SIZE = 2048
EFFORTS = ("fast", "default", "thorough")

quiet_option = click.option("--quiet", is_flag=True, help="Print nothing but warnings and errors.")
overwrite_option = click.option("--overwrite", is_flag=True, help="Overwrite existing files.")
device_option = click.option(
    "--device", default="auto", show_default=True, help="auto, cpu, cuda or mps."
)
follow_links_option = click.option(
    "--follow-links",
    is_flag=True,
    help="Also read images outside the folder, to which links in it lead.",
)
skip_broken_option = click.option(
    "--skip-broken",
    is_flag=True,
    help="Leave out images that cannot be read, with a warning, and the labels of their items.",
)
workers_option = click.option(
    "--workers",
    type=click.IntRange(min=0),
    metavar="N",
    help="Processes that decode images, 0 for none.  [default: one per core, none for less than "
    "32MB]",
)
image_size_option = click.option(
    "--image-size",
    type=click.IntRange(1, MAX_IMAGE_SIZE),
    default=64,
    show_default=True,
    help="Images are resized to a square of this many pixels.",
)
max_pixels_option = click.option(
    "--max-pixels",
    cls=LimitOption,
    type=click.IntRange(min=1),
    default=MAX_PIXELS,
    show_default=True,
    help="Maximum number of pixels of an image; JPEG may have more, as it is decoded at a reduced "
    "size.",
)


def parse_effort(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> str | float | None:
    """Return a word for how much is tried, or seconds as a number."""
    if text is None or text in EFFORTS:
        return text
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise click.BadParameter(
            f"Expected {', '.join(EFFORTS)} or a number of seconds, but got {text!r}."
        )
    return seconds


effort_option = click.option(
    "--effort",
    callback=parse_effort,
    metavar="fast|default|thorough|SECONDS",
    help="For methods that choose how their networks learn, as auto does: how much they try. After "
    "so many seconds no training begins that they can do without.",
)
taxonomy_option = click.option(
    "--taxonomy",
    type=click.Path(),
    metavar="FILE",
    help="The groups of classes, for --structure taxonomy or auto: csv with the columns class and "
    "parent, or a json object from class to parent.",
)
raw_option = click.option(
    "--raw",
    is_flag=True,
    help="Write text to csv and tsv as it is: by default, text that a spreadsheet would take for a "
    "formula, as it begins with = + - or @, gets a quote (') in front.",
)
learn_truth_option = click.option(
    "--learn-truth",
    is_flag=True,
    help="Learn from the classes in the --truth column too: they become gold items.",
)
anonymous_option = click.option(
    "--anonymous",
    is_flag=True,
    help="Show annotators as numbers in the report, the highest skill first.",
)


def parse_names(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Return the names in a list such as a,b,c; a name with a comma stands in quotes."""
    return tuple(next(csv.reader([text or ""], skipinitialspace=True), ()))


cache_option = click.option(
    "--cache",
    type=PATH,
    metavar="FOLDER",
    help="Folder of the cache of --encoder.  [default: annotrace/encodings among the caches of the "
    "user]",
)
no_cache_option = click.option(
    "--no-cache", is_flag=True, help="Encode all items again, and cache nothing."
)


_READ_OPTIONS = (
    *("item", "annotator", "label", "truth", "annotators"),
    *("question", "annotator_name", "format", "query", "classes", "skip", "repeats"),
)
_LABEL_OPTIONS = (
    click.argument("labels", type=PATH, nargs=-1, required=True),
    click.option("--item", metavar="COLUMN", help="Column or field that names the item."),
    click.option("--annotator", metavar="COLUMN", help="Column that names the annotator."),
    click.option("--label", metavar="COLUMN", help="Column that holds the label."),
    click.option(
        "--truth",
        metavar="COLUMN",
        help="Column with the true class where it is known (empty elsewhere): for evaluation, not "
        "for training.",
    ),
    click.option(
        "--annotators",
        metavar="COLUMN,...",
        callback=parse_names,
        help="Columns of a table with one row per item that hold the answers of one annotator "
        "each; by default those that share their values.",
    ),
    click.option(
        "--question",
        metavar="NAME",
        help="The question to read, if a labelling tool asked several.",
    ),
    click.option(
        "--annotator-name",
        metavar="NAME",
        help="The annotator, if the file does not name one.",
    ),
    click.option(
        "--from",
        "format",
        type=click.Choice(FORMATS),
        metavar="FORMAT",
        help=f"Format of the file, if its content is ambiguous: {', '.join(FORMATS)}.",
    ),
    click.option(
        "--query",
        metavar="SQL",
        help="What to select from a SQLite or DuckDB file; by default its only table or view.",
    ),
    click.option(
        "--class",
        "classes",
        metavar="NAME",
        multiple=True,
        help="A class; repeat for each, in the desired order. Any other label is then an error.",
    ),
    click.option(
        "--skip",
        metavar="ANSWER",
        multiple=True,
        help='An answer that is not a label, such as "unsure"; may be repeated.',
    ),
    click.option(
        "--repeats",
        type=click.Choice(["keep", "first", "last", "error"]),
        default="keep",
        show_default=True,
        help="What to do if an annotator labelled an item more than once.",
    ),
)


def label_options(command: Command) -> Command:
    """Add the argument LABELS and its options to a command, passed as one `LabelFiles`."""

    @limit_options
    @functools.wraps(command)
    def with_labels(labels: tuple[Path, ...], limits: dict[str, int], **options: Any) -> Any:
        reading = {name: options.pop(name) for name in _READ_OPTIONS}
        reading["classes"] = reading["classes"] or None
        return command(LabelFiles(labels, reading, limits), **options)

    for option in reversed(_LABEL_OPTIONS):
        with_labels = option(with_labels)
    return with_labels


@dataclass(frozen=True)
class Images:
    """The path of --images, and how images are read."""

    path: Path
    follow_links: bool
    max_pixels: int
    skip_broken: bool
    workers: int | None

    def open(self, **options: Any) -> ImageSource:
        """Find the images."""
        from annotrace.data import open_images

        with echo_warnings("follow_links"):
            return open_images(
                self.path,
                follow_links=self.follow_links,
                max_pixels=self.max_pixels,
                on_error="skip" if self.skip_broken else "raise",
                n_workers=self.workers,
                **options,
            )


IMAGE_OPTIONS = ("follow_links", "max_pixels", "skip_broken", "workers")


def image_reading_options(command: Command) -> Command:
    """Add --follow-links, --skip-broken, --workers and --max-pixels to a command."""
    options = (follow_links_option, skip_broken_option, workers_option, max_pixels_option)
    for option in reversed(options):
        command = option(command)
    return command


def image_options(help: str) -> Decorator:
    """Return --images and the options of `image_reading_options`, passed as one `Images`."""

    def add_options(command: Command) -> Command:
        @functools.wraps(command)
        def with_images(*args: Any, images: Path | None, **options: Any) -> Any:
            reading = {name: options.pop(name) for name in IMAGE_OPTIONS}
            given = None if images is None else Images(images, **reading)
            return command(*args, images=given, **options)

        where = click.option("--images", type=PATH, metavar="FOLDER|TAR", help=help)
        return where(image_reading_options(with_images))

    return add_options


def seed_option(help: str) -> Decorator:
    """Return an option --seed."""
    return click.option(
        "--seed", type=click.IntRange(0, MAX_SEED), default=0, show_default=True, help=help
    )


def out_options(metavar: str, help: str, default: str | None = None) -> Decorator:
    """Return the options --out and --overwrite."""
    # click takes a default of None for a value, and would not require the option.
    given: dict[str, Any] = (
        {"required": True} if default is None else {"default": default, "show_default": True}
    )
    out = click.option("--out", type=PATH, metavar=metavar, help=help, **given)
    return lambda command: out(overwrite_option(command))


def report_options(command: Command) -> Command:
    """Add --report, --no-report and --anonymous to a command that writes a run."""
    wanted = click.option(
        "--report/--no-report", default=True, help="Write report.html.  [default: report]"
    )
    return wanted(anonymous_option(command))
