"""Tasks of Label Studio as the importer of its exports reads them, and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from annotrace.errors import ConnectError, first_few

Json = dict[str, Any]

# The type of an answer to each kind of control, and the field that holds its class.
_ANSWERS = {
    "Choices": ("choices", "choices"),
    "Rating": ("rating", "rating"),
    "Pairwise": ("pairwise", "selected"),
}
ANSWER_FIELDS = ("id", "completed_by", "result", "was_cancelled", "ground_truth")


class Control(NamedTuple):
    """A question of a project, in the terms of Label Studio.

    Attributes
    ----------
    name : str
    to_name : str
        What it asks about, one or more names.
    kind, field : str
        The type of its answers, and the field that holds their class.
    """

    name: str
    to_name: str
    kind: str
    field: str

    def answer(self, label: str) -> Json:
        """Return a class as an answer to the question."""
        value: Any = {"choices": [label], "rating": label}.get(self.kind, label)
        if self.kind == "rating":
            value = int(label)
        names = {"from_name": self.name, "to_name": self.to_name, "type": self.kind}
        return names | {"value": {self.field: value}}

    def class_of(self, annotation: Mapping[str, Any]) -> str | None:
        """Return the class that an annotation gives; None unless it is one."""
        parts = [part for part in annotation["result"] if part.get("from_name") == self.name]
        if annotation["was_cancelled"] or len(parts) != 1:
            return None
        value = parts[0].get("value", {}).get(self.field)
        listed = value if isinstance(value, list) else [value]
        return str(listed[0]) if len(listed) == 1 and listed[0] is not None else None


def find_control(config: Mapping[str, Any], name: str | None, source: str) -> Control:
    """Return a control of a project, by default the only one whose answers are classes."""
    suited = [each for each, control in config.items() if control.get("type") in _ANSWERS]
    if name is None and len(suited) == 1:
        name = suited[0]
    if name not in suited:
        asked = "no single control" if name is None else f"no control {name!r}"
        raise ConnectError(
            f"{source} has {asked} of choices, to which classes could be written; it has "
            f"{first_few(suited) or 'none'}. Name one with --question."
        )
    kind, field = _ANSWERS[config[name]["type"]]
    return Control(name, ",".join(config[name]["to_name"]), kind, field)


def prepare_task(task: Mapping[str, Any], users: Mapping[int, str]) -> Json:
    """Return the fields of a task that are used; annotators are named by e-mail address."""
    annotations = sorted(task.get("annotations") or [], key=lambda each: int(each["id"]))
    kept = [{name: annotation.get(name) for name in ANSWER_FIELDS} for annotation in annotations]
    for annotation in kept:
        number = annotation["completed_by"]
        annotation["completed_by"] = users.get(number, str(number))
        annotation["result"] = annotation["result"] or []
    return {
        "id": int(task["id"]),
        "data": task.get("data") or {},
        "annotations": kept,
        "drafts": task.get("drafts") or [],
    }


def has_label(task: Mapping[str, Any]) -> bool:
    """Whether a task has an answer that is not marked as ground truth."""
    return any(map(_is_label, task["annotations"]))


def _is_label(annotation: Mapping[str, Any]) -> bool:
    return bool(annotation["result"]) and not (
        annotation["was_cancelled"] or annotation["ground_truth"]
    )


def with_marked_labels(tasks: Sequence[Json]) -> list[Json]:
    """Count ground truth as a label too, if its annotator has given other labels.

    Managers mark correct answers of annotators, which would not count for them otherwise, while
    the wrong answers of others to the same task would.
    """
    labelling = {a["completed_by"] for task in tasks for a in task["annotations"] if _is_label(a)}

    def copies(task: Json) -> list[Json]:
        marked = (a for a in task["annotations"] if a["ground_truth"])
        return [a | {"ground_truth": False} for a in marked if a["completed_by"] in labelling]

    return [task | {"annotations": task["annotations"] + copies(task)} for task in tasks]
