"""CVAT: "CVAT for images" XML with tags, one file per job.

With consensus, every replica is a job that must be exported by itself; `meta` names its assignee.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element

from annotrace.errors import InputError
from annotrace.labels.documents import EXPORT_AGAIN, Document
from annotrace.labels.formats.base import (
    Answer,
    Format,
    Questions,
    Skipped,
    one_label,
)


def _sniff(root: Any) -> bool:
    return isinstance(root, Element) and root.tag == "annotations"


def _read(document: Document, questions: Questions, item: str | None) -> Iterator[Answer | Skipped]:
    if item not in (None, "name"):
        raise InputError(f"{document.path}: images have only a name. Remove item= (--item).")
    annotator = None
    for number, element in document.elements():
        if element.tag == "meta":
            annotator = element.findtext("job/assignee/username") or None
        elif element.tag == "image":
            yield _answer(number, element, annotator, document.place(number))
        elif element.tag == "track":
            raise InputError(
                f"{document.place(number)} is a track of a video. Export the job as 'CVAT for "
                "images', with one tag per image."
            )


def _answer(number: int, image: Element, annotator: str | None, place: str) -> Answer | Skipped:
    name = image.get("name")
    if not name:
        raise InputError(f"{place}: an image without a name. {EXPORT_AGAIN}")
    tags = [tag.get("label") for tag in image.findall("tag")]
    if None in tags:
        raise InputError(f"{place}: image {name[:60]!r} has a tag without a label. {EXPORT_AGAIN}")
    label = one_label(tags, name, place)
    return Skipped("empty") if label is None else Answer(number, name, annotator, label)


CVAT = Format("cvat", "CVAT for images", _sniff, _read)
