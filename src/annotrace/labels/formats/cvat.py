"""CVAT: "CVAT for images" XML with tags, one file per job.

With consensus, every replica is a job that must be exported by itself; `meta` names its assignee.
"""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

from annotrace.errors import InputError
from annotrace.labels.documents import EXPORT_AGAIN, Document
from annotrace.labels.formats.base import Answers, Format, Questions, Record


def _sniff(root: Any) -> bool:
    return isinstance(root, Element) and root.tag == "annotations"


def _read(document: Document, questions: Questions, item: str | None) -> Answers:
    if item not in (None, "name"):
        raise InputError(f"{document.path}: images have only a name. Remove item= (--item).")
    annotator = None
    for number, element in document.elements():
        if not isinstance(element, Element):
            raise InputError(f"{document.path} is not XML, so not {CVAT.title}. {EXPORT_AGAIN}")
        record = Record(number, document.place(number), element.attrib)
        if element.tag == "meta":
            annotator = element.findtext("job/assignee/username") or None
        elif element.tag == "image":
            name, tags = _check_image(element, record.place)
            yield record.answer(name, annotator, tags)
        elif element.tag == "track":
            raise InputError(
                f"{record.place} is a track of a video. Export the job as 'CVAT for images', with "
                "one tag per image."
            )


def _check_image(image: Element, place: str) -> tuple[str, list[str | None]]:
    name = image.get("name")
    if not name:
        raise InputError(f"{place}: an image without a name. {EXPORT_AGAIN}")
    tags = [tag.get("label") for tag in image.findall("tag")]
    if None in tags:
        raise InputError(f"{place}: image {name[:60]!r} has a tag without a label. {EXPORT_AGAIN}")
    return name, tags


CVAT = Format("cvat", "CVAT for images", _sniff, _read)
