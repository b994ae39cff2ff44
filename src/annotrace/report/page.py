"""The report: one HTML file that opens from disk, without network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotrace.progress import report_stage
from annotrace.report.annotators import MAX_MATRIX_CLASSES, SHOWN_OF_EACH, annotator_section
from annotrace.report.classes import agreement_of, class_section
from annotrace.report.curves import curves_of
from annotrace.report.item_texts import texts_of
from annotrace.report.overview import WRONG, likely_error, overview_of
from annotrace.report.pictures import pictures_of
from annotrace.report.regions import region_section
from annotrace.report.review import CERTAIN, suspect_labels, uncertain_items
from annotrace.report.view import Fitted, ReportView, view_of

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
# Longer names of classes are cut in matrices, where they repeat; tables show them whole.
_LONGEST_IN_MATRIX = 40


def write_report(
    model: Fitted,
    path: str | Path,
    *,
    anonymous: bool = False,
    images: Any = None,
    texts: Any = None,
    title: str = "Annotation report",
) -> None:
    """Write what a fit says about labels and annotators as one HTML page, for managers.

    Parameters
    ----------
    model : fitted classifier or aggregation
    path : str or Path
        The file to write; it needs no other file and no network.
    anonymous : bool
        Show annotators as "Annotator 1", "Annotator 2" and so on, by falling skill.
    images : path, ImageSource, or array of shape (n_items, height, width[, channels]), optional
        Pictures of the items: a folder or tar files with images named like the items, or an array
        in the order of `X` in `fit`. An `annotrace.data.ImageFolder` has options such as
        `follow_links`.
    texts : sequence of texts or of pairs of texts, frame, or TextSource, optional
        Texts of the items: with the names of items, or in the order of `X` in `fit`.
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
    from annotrace.atomic import atomic_write

    page = render(view_of(model, anonymous=anonymous), images=images, texts=texts, title=title)
    with atomic_write(Path(path)) as file:
        file.write(page.encode("utf-8"))


def render(
    view: ReportView, *, images: Any = None, texts: Any = None, title: str = "Annotation report"
) -> str:
    """Return the page as text; parameters as in `write_report`."""
    shown = pictures_of(images, view.table), texts_of(texts, view.table)
    sections: dict[str, Callable[[], Any]] = {
        "overview": lambda: overview_of(view),
        "annotators": lambda: annotator_section(view),
        "regions": lambda: region_section(view, *shown),
        "items": lambda: uncertain_items(view, *shown),
        "labels": lambda: suspect_labels(view, *shown),
        "classes": lambda: class_section(view),
        "agreement": lambda: agreement_of(view.table),
        "curves": lambda: curves_of(view.history, view.objective),
    }
    computed = {}
    for place, (section, compute) in enumerate(sections.items()):
        report_stage("Writing the report, section", place, len(sections), section)
        computed[section] = compute()
    return render_template(
        "report.html.jinja",
        title=title,
        version=view.versions.get("annotrace", ""),
        view=view,
        table=view.table,
        diagnosis=view.diagnosis,
        **computed,
        limits={
            "certain": CERTAIN,
            "wrong": WRONG,
            "usual_error": likely_error(view),
            "of_each": SHOWN_OF_EACH,
            "classes": MAX_MATRIX_CLASSES,
        },
    )


def render_template(template: str, **context: Any) -> str:
    """Return a page as text, with its style and, unless another is given, the script of reports."""
    script = context.setdefault("script", template_text("report.js"))
    digest = hashlib.sha256(script.encode()).digest()
    return (
        _environment()
        .get_template(template)
        .render(
            **context,
            written=date.today(),
            css=template_text("report.css"),
            script_hash=base64.b64encode(digest).decode(),
        )
    )


def template_text(name: str) -> str:
    """Return a style or script of the templates."""
    # Browsers convert line ends to line feeds before they compute the hash, and so does this.
    return (TEMPLATES / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for text_filter in (percent, whole, number, text, name, short_name):
        environment.filters[text_filter.__name__] = text_filter
    return environment


def percent(share: float) -> str:
    """Return a share in percent, never rounded to certain."""
    if 0 < share < 0.005:
        return "<1\u202f%"
    if 0.995 <= share < 0.99995:
        return f"{min(100 * share, 99.9):.1f}\u202f%"
    return f"{100 * share:.0f}\u202f%"


def whole(share: float) -> int:
    """Return a share as a whole number of percent."""
    return round(100 * share)


def number(value: float) -> str:
    """Return a number with thousands separators."""
    return f"{value:,.0f}"


def text(content: str) -> Any:
    """Return text as it is shown, whatever it contains."""
    from markupsafe import Markup, escape

    # A page cannot hold U+0000, and would turn a lone carriage return into a line feed. Half of a
    # surrogate pair has no encoding.
    content = content.replace("\0", "\u2400").encode("utf-8", "replace").decode("utf-8")
    return Markup(str(escape(content)).replace("\r", "&#13;"))


def name(content: str) -> Any:
    """Return a name as text of its own direction, whatever it contains."""
    from markupsafe import Markup

    return Markup(f'<bdi class="name">{text(content)}</bdi>')


def short_name(content: str) -> Any:
    """Return a name as `name` does, cut if it is long."""
    n_shown = _LONGEST_IN_MATRIX - 1
    return name(content if len(content) <= _LONGEST_IN_MATRIX else content[:n_shown] + "…")
