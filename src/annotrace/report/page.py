"""The report: one HTML file that opens from disk, without network."""

from __future__ import annotations

import base64
import hashlib
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotrace.diagnosis.confidence import USUAL_ERROR
from annotrace.report.classes import agreement_of, classes_of
from annotrace.report.curves import HEIGHT, WIDTH, curves_of
from annotrace.report.doubts import doubtful_items, suspect_labels
from annotrace.report.overview import SURE, WRONG, overview_of
from annotrace.report.people import MOST_CLASSES, SHOWN_OF_EACH, people_of
from annotrace.report.pictures import pictures_of
from annotrace.report.result import Fitted, Result, result_of

if TYPE_CHECKING:
    from jinja2 import Environment

# Longer names of classes are cut in matrices, where they stand many times; tables have them whole.
_LONGEST_IN_MATRIX = 40


def write_report(
    model: Fitted,
    path: str | Path,
    *,
    anonymous: bool = False,
    images: Any = None,
    title: str = "Annotation report",
) -> None:
    """Write what was learned of labels and annotators as one HTML page, for people.

    Parameters
    ----------
    model : fitted classifier or aggregation, or what `annotrace.load` gives
    path : str or Path
        The file to write; it needs no other file and no network.
    anonymous : bool
        Call annotators "Annotator 1", "Annotator 2" and so on, from the highest skill down.
    images : folder, or array of shape (n_items, height, width[, channels]), optional
        Pictures of the items: a folder with files named like the items, or an array in the order
        of `X` in `fit`.
    title : str

    Examples
    --------
    >>> import annotrace as at
    >>> table = at.LabelTable.from_long({
    ...     "item": ["a", "a", "a", "b", "b", "c", "c"],
    ...     "annotator": ["ann", "bo", "cy", "ann", "bo", "ann", "bo"],
    ...     "label": ["cat", "cat", "dog", "dog", "dog", "cat", "dog"],
    ... })
    >>> at.write_report(at.aggregation.DawidSkene().fit(table), "report.html")  # doctest: +SKIP
    """
    from annotrace.labels.writing import atomic_write

    page = render(result_of(model, anonymous=anonymous), images=images, title=title)
    with atomic_write(Path(path)) as file:
        file.write(page.encode("utf-8"))


def render(result: Result, *, images: Any = None, title: str = "Annotation report") -> str:
    """Give the page as text; parameters as in `write_report`."""
    pictures = pictures_of(images, result.table)
    script = _file("report.js")
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            title=title,
            written=date.today(),
            result=result,
            overview=overview_of(result),
            people=people_of(result),
            items=doubtful_items(result, pictures),
            labels=suspect_labels(result, pictures),
            classes=classes_of(result),
            agreement=agreement_of(result.table),
            curves=curves_of(result),
            limits={
                "sure": SURE,
                "wrong": WRONG,
                "usual_error": USUAL_ERROR,
                "of_each": SHOWN_OF_EACH,
                "classes": MOST_CLASSES,
                "curve": (WIDTH, HEIGHT),
            },
            css=_file("report.css"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def _file(name: str) -> str:
    # Browsers read every line end as a line feed before they take the hash: so must this.
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        "name": name,
        "cut": cut,
        "count": count,
        "whole": whole,
    }
    return environment


def percent(share: float) -> str:
    """Write a share in percent, never rounded to certain."""
    if 0 < share < 0.005:
        return "<1\u202f%"
    if 0.995 <= share < 0.99995:
        return f"{min(100 * share, 99.9):.1f}\u202f%"
    return f"{100 * share:.0f}\u202f%"


def whole(share: float) -> int:
    """Give a share as a whole number of percent."""
    return round(100 * share)


def count(number: float) -> str:
    """Write a number with separators."""
    return f"{number:,.0f}"


def name(text: str) -> Any:
    """Show a name as itself, whatever is in it, apart from the direction of the text around it."""
    from markupsafe import Markup, escape

    # A page cannot hold U+0000, and would turn a lone carriage return into a line feed.
    shown = str(escape(text.replace("\0", "\u2400"))).replace("\r", "&#13;")
    return Markup(f'<bdi class="name">{shown}</bdi>')


def cut(text: str) -> Any:
    """Show a name as `name` does, cut where it is long."""
    return name(text if len(text) <= _LONGEST_IN_MATRIX else text[: _LONGEST_IN_MATRIX - 1] + "…")
