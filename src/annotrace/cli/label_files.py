"""Label files of the command line: reading, and notes about unusual content."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotrace.cli.output import echo_warnings

if TYPE_CHECKING:
    from annotrace.labels import LabelTable
    from annotrace.labels.columns import Layout
    from annotrace.labels.documents import Document
    from annotrace.labels.reading import Imported, Share
    from annotrace.labels.side_tables import LabelColumns

FORMATS = (
    "table",
    "label-studio",
    "label-studio-min",
    "label-studio-csv",
    "labelbox",
    "ground-truth",
    "argilla",
    "prodigy",
    "doccano",
    "cvat",
    "peerannot",
)
# What programs write for a missing label.
MISSING = ("-1", "nan", "na", "null")
# Few tasks have more classes, and most columns of text or numbers do.
MANY_CLASSES = 200
# Maximum number of pairs of names that are compared by letters: a second or two.
MAX_PAIRS = 200_000
TYPO = 0.8
# Names that are compared with each other; a second or less.
MAX_NAMES = 2**18


@dataclass(frozen=True)
class LabelFiles:
    """Label files, of which ``-`` is standard input, and options of `LabelTable.read`.

    `limits` are those given on the command line, by their names in `Limits`.
    """

    paths: tuple[Path, ...]
    options: dict[str, Any]
    limits: dict[str, int] = field(default_factory=dict)

    def read(self, share: Share | None = None) -> tuple[LabelTable, Layout | Imported | None]:
        """Read the table; return it with the columns or answers that were used.

        `share` is as in `annotrace.labels.reading.read_parts`.
        """
        from annotrace.errors import InputError
        from annotrace.labels import LabelTable
        from annotrace.labels.building import TableOptions
        from annotrace.labels.columns import ColumnNames
        from annotrace.labels.files import standard_input
        from annotrace.labels.reading import ExportOptions, read_parts
        from annotrace.limits import Limits

        piped = [path for path in self.paths if str(path) == "-"]
        if len(piped) > 1:
            raise InputError("Standard input (-) can be read only once: name it once.")
        limits = Limits(**self.limits)
        paths = [standard_input(limits) if path in piped else path for path in self.paths]
        given = dict(self.options)
        names = ColumnNames(*map(given.pop, ColumnNames._fields))
        export = ExportOptions(*map(given.pop, ("format", "question", "annotator_name", "query")))
        with echo_warnings("skip"):
            parts, used = read_parts(paths, names, TableOptions(**given), export, limits, share)
        return LabelTable(**parts), used

    def open(self) -> list[Document]:
        """Open the files as `read` does; none of them is standard input."""
        from annotrace.labels.reading import open_documents
        from annotrace.limits import Limits

        return open_documents(self.paths, Limits(**self.limits))

    def further_columns(self) -> LabelColumns:
        """Open the files once more, for columns that a table of labels does not keep."""
        from annotrace.errors import InputError
        from annotrace.labels.columns import ColumnNames
        from annotrace.labels.side_tables import LabelColumns
        from annotrace.limits import Limits

        if any(str(path) == "-" for path in self.paths):
            raise InputError("Standard input (-) can be read only once: give the labels as a file.")
        names = ColumnNames(**{name: self.options[name] for name in ColumnNames._fields})
        given = {name: self.options[name] for name in ("query", "annotator_name")}
        return LabelColumns(self.paths, names, Limits(**self.limits), **given)


def gold_from_truth(table: LabelTable) -> dict[Any, Any]:
    """Return the known classes, from which --learn-truth learns, by name."""
    from annotrace.errors import InputError
    from annotrace.labels.gold import gold_by_name

    if table.truth is None:
        raise InputError("--learn-truth needs a column of known classes: --truth COLUMN.")
    return gold_by_name(table, table.truth)


def describe_labels(
    table: LabelTable, used: Layout | Imported | None, learn_truth: bool = False
) -> str:
    """Describe what was read, from which columns or answers, and what may be unintended."""
    from annotrace.errors import count, first_few

    counts = [
        count(table.n_items, "item"),
        count(table.n_annotators, "annotator"),
        count(table.n_labels, "label"),
        count(table.n_classes, "class", "classes"),
    ]
    summary = f"{', '.join(counts)} ({first_few(table.classes, 10)})"
    notes = (f"Note: {note}" for note in _find_problems(table, used))
    return "\n".join([summary, *_describe_source(used, learn_truth), *notes])


def _describe_source(used: Layout | Imported | None, learn_truth: bool) -> list[str]:
    from annotrace.errors import first_few
    from annotrace.labels.reading import Imported, describe_skipped

    if used is None:
        return []
    if not isinstance(used, Imported):
        return list(_describe_layout(used, learn_truth))
    question = "" if used.question is None else f", question {used.question!r}"
    lines = [f"Format: {used.title}{question}"]
    if used.blank:
        lines.append(f"Files without answers: {first_few(used.blank, 10)}")
    return [*lines, describe_skipped(used.skipped)] if used.skipped else lines


def _describe_layout(layout: Layout, learn_truth: bool) -> Iterator[str]:
    """Yield which columns were used, how they were found, and which were set aside."""
    from annotrace.errors import first_few

    yield f"Columns: {_describe_columns(layout, learn_truth)}"
    if layout.set_aside:
        listed = first_few(layout.set_aside, 10)
        yield f"Columns set aside, as their values are not labels: {listed}"
    if layout.without_decimals:
        yield "Labels such as 1.0 are read as 1, as all are whole numbers."


def _describe_columns(layout: Layout, learn_truth: bool) -> str:
    from annotrace.errors import count, first_few

    roles = {"item": layout.item, "annotator": layout.annotator, "label": layout.label}
    used = [f"{role} {name!r}" for role, name in roles.items() if name is not None]
    if len(layout.by_content) == len(roles):
        used[-1] += " (recognised by content)"
    elif layout.by_content:
        used[-1] += f" ({' and '.join(layout.by_content)} recognised by content)"
    if layout.annotator_name is not None:
        used.append(f"all labels by {layout.annotator_name!r}")
    if layout.wide:
        columns = count(len(layout.answers), "column")
        used.append(f"{columns} of answers ({first_few(layout.answers, 10)})")
    if layout.truth is not None:
        use = "for training, not for evaluation" if learn_truth else "for evaluation only"
        used.append(f"truth {layout.truth!r} ({use})")
    return ", ".join(used)


def _find_problems(table: LabelTable, used: Layout | Imported | None) -> Iterator[str]:
    """Yield what is valid but rarely intended."""
    from annotrace.errors import first_few

    for what in ("classes", "annotators", "items"):
        for names in nearly_equal(getattr(table, what)[:MAX_NAMES].tolist())[:1]:
            yield (
                f"the {what} {first_few(names, 4)} differ only in capitals, spaces, a final .0 or "
                "the encoding of accents, and count as different: write them alike in the file."
            )
    for name in map(str, table.classes.tolist()):
        if name.strip().casefold() in MISSING:
            skip = f"--skip {shlex.quote(name)}"
            yield f"{name!r} counts as a class; if it stands for a missing label, add {skip}."
    if table.n_classes > MANY_CLASSES:
        yield (
            f"{table.n_classes:,} classes are many; often the column has free text or identifiers. "
            "If so, name the column of labels with --label."
        )
    if _has_header_among_rows(table, used):
        yield (
            "the header is repeated among the rows, as in files that were joined, and counts as a "
            "label: remove these rows."
        )
    if repeated := _count_repeats(table):
        yield (
            f"labels that repeat an item and annotator: {repeated:,}. They count as more labels, "
            "unless --repeats is first or last."
        )


def _count_repeats(table: LabelTable) -> int:
    """Count labels beyond the first of an item by an annotator."""
    import numpy as np

    repeated = 0
    for _, labels in table.blocks():
        pairs = table.item[labels] * np.int64(table.n_annotators) + table.annotator[labels]
        pairs.sort()
        repeated += int(np.count_nonzero(pairs[1:] == pairs[:-1]))
    return repeated


def _has_header_among_rows(table: LabelTable, used: Layout | Imported | None) -> bool:
    from annotrace.labels.columns import Layout

    if not isinstance(used, Layout) or used.wide:
        return False
    return used.annotator in table.annotators.tolist() and used.label in table.classes.tolist()


def nearly_equal(names: Iterable[Any]) -> list[list[str]]:
    """Group names that differ only in capitals, spaces, a final .0 or the encoding of accents."""
    names = list(map(str, names))
    folded = list(map(_fold, names))
    if len(set(folded)) == len(names):
        return []
    groups: dict[str, list[str]] = {}
    for name, key in zip(names, folded, strict=True):
        groups.setdefault(key, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def similar_names(names: Iterable[str], known: Iterable[Any]) -> Mapping[str, str]:
    """Return the known name that each of some others is nearly equal to, or a misspelling of.

    Names with other digits are other names: `worker 12` is not a misspelling of `worker 13`.
    """
    names = list(names)
    by_key = {_fold(name): name for name in map(str, known)}
    comparable = list(by_key) if len(names) * len(by_key) <= MAX_PAIRS else []
    found = {}
    for name in names:
        key = _fold(name)
        similar = [key] if key in by_key else get_close_matches(key, comparable, 3, TYPO)
        nearest = next((other for other in similar if _digits(other) == _digits(key)), None)
        if nearest is not None:
            found[name] = by_key[nearest]
    return found


def _fold(name: str) -> str:
    """Return a name without differences that a reader does not notice."""
    folded = "".join(name.casefold().split())
    # Most names skip what follows, and there may be millions of them.
    if not folded.isascii():
        folded = unicodedata.normalize("NFC", folded)
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", folded) if ".0" in folded else folded


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)
