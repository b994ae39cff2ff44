"""A project in doccano: answers in; doccano has no place for what would go out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from annotrace.connect.doccano.api import DoccanoApi, Json
from annotrace.connect.tool import MarkedGold, Prediction, Pulled, Pushed
from annotrace.errors import ConnectError, InputError, UnsupportedError, first_few
from annotrace.labels import LabelTable
from annotrace.labels.building import Columns, TableOptions, build_parts
from annotrace.labels.reading import Imported
from annotrace.labels.vocabulary import as_names, encode_values, union_names

# Types of projects whose answers are classes, and the field of the export that holds them.
_LABEL_FIELDS = {
    "DocumentClassification": "label",
    "ImageClassification": "label",
    "IntentDetectionAndSlotFilling": "cats",
}
_FORMER_MEMBERS = (
    "doccano cannot count the labels, as somebody who has labelled is no longer a member of the "
    "project. Unless it is collaborative, their labels are not read: add them again to use them."
)


class Doccano:
    """A project in doccano; the methods are those of `LabellingTool`.

    Parameters
    ----------
    url, project, user, password
        As in `DoccanoApi`.
    item : str, optional
        The field that names an example: one of its metadata, or ``text`` or ``filename``; its
        number by default.
    skip : sequence of str
        Classes that are not labels, such as "unsure".
    """

    title = "doccano"

    def __init__(
        self,
        url: str,
        project: int,
        user: str,
        password: str,
        *,
        item: str | None = None,
        skip: Sequence[str] = (),
    ) -> None:
        self._api = DoccanoApi(url, project, user, password)
        self.files = self._api.files
        self._item, self._skip = item, tuple(skip)
        self.source = f"{self.title} project {self._api.project}"

    def pull(self) -> Pulled:
        """Return the examples and the labels of all members."""
        project, classes = self._api.read_project(), self._api.category_types()
        field = self._label_field(project["project_type"])
        self._check_skip(list(classes.values()))
        examples = self._by_name(self._api.examples())
        data = {name: _fields(example) for name, example in examples.items()}
        if project["collaborative_annotation"]:
            answers = self._shared_answers(examples, classes)
        else:
            answers = self._own_answers(examples, field)
        labels = list(self._labels_of(answers))
        if not labels:
            return Pulled(None, None, data)
        table = self._build(labels, list(classes.values()))
        notes = () if self._api.label_counts() is not None else (_FORMER_MEMBERS,)
        return Pulled(table.with_items(list(data)), Imported(self.title, None, {}), data, notes)

    def _label_field(self, kind: str) -> str:
        if kind not in _LABEL_FIELDS:
            raise InputError(
                f"{self.source} is of the type {kind}, whose answers are not classes. Choose a "
                f"project of the type {', '.join(_LABEL_FIELDS)}."
            )
        return _LABEL_FIELDS[kind]

    def _check_skip(self, classes: list[str]) -> None:
        for name in self._skip:
            if name not in classes:
                raise InputError(
                    f"{self.source} has no class {name!r} to skip; it has {first_few(classes, 10)}."
                )

    def _by_name(self, examples: Sequence[Json]) -> dict[str, Json]:
        by_name: dict[str, Json] = {}
        for example in examples:
            name = example["id"] if self._item is None else _fields(example).get(self._item)
            if name is None or name == "":
                raise InputError(
                    f"{self.source}, example {example['id']} has no {self._item!r}. Name examples "
                    "by another field with --item, or leave it out."
                )
            if by_name.setdefault(str(name), example) is not example:
                raise InputError(
                    f"{self.source}, examples {by_name[str(name)]['id']} and {example['id']} have "
                    f"the same {self._item!r}, {str(name)[:60]!r}. Name examples by another field "
                    "with --item, or leave it out."
                )
        return by_name

    def _own_answers(
        self, examples: Mapping[str, Json], field: str
    ) -> Iterator[tuple[str, str, list[str]]]:
        """Yield item, annotator and labels from the export, which has a file for each member."""
        exported = self._exported_names(examples)
        for member, records in self._api.export().items():
            if {str(record.get("id")) for record in records} != exported.keys():
                raise ConnectError(
                    f"{self.source}: the export does not have the examples of the project. They "
                    "changed meanwhile: try again. If this persists, rename 'id' in their "
                    "metadata, which replaces their number in the export.",
                    is_temporary=True,
                )
            for record in records:
                yield exported[str(record["id"])], member, record[field]

    def _exported_names(self, examples: Mapping[str, Json]) -> dict[str, str]:
        """Return the item of each `id` in the export, which metadata called `id` replace."""
        names: dict[str, str] = {}
        for name, example in examples.items():
            shown = str((example.get("meta") or {}).get("id", example["id"]))
            if names.setdefault(shown, name) != name:
                raise InputError(
                    f"{self.source}, the export shows the examples {names[shown]!r} and {name!r} "
                    f"both with the id {shown[:60]!r}, since metadata called 'id' replace their "
                    "number there. Rename 'id' in the metadata."
                )
        return names

    def _shared_answers(
        self, examples: Mapping[str, Json], classes: Mapping[int, str]
    ) -> Iterator[tuple[str, str, list[str]]]:
        """Yield item, annotator and labels of a collaborative project, a request per example."""
        members = self._api.members()
        for item, example in examples.items():
            given: dict[str, list[str]] = {}
            for category in self._api.categories(example["id"]):
                who = members.get(category["user"], str(category["user"]))
                label = classes.get(category["label"], str(category["label"]))
                given.setdefault(who, []).append(label)
            for who, labels in given.items():
                yield item, who, labels

    def _labels_of(
        self, answers: Iterable[tuple[str, str, list[str]]]
    ) -> Iterator[tuple[str, str, str]]:
        """Yield item, annotator and the only label of each answer that has one not to skip."""
        for item, who, labels in answers:
            kept = [label for label in labels if label not in self._skip]
            if len(kept) > 1:
                raise InputError(
                    f"{self.source}, {who} has given item {item[:60]!r} several labels "
                    f"({first_few(kept)}), but an answer has one label. Keep one of them, or leave "
                    "out classes with --skip."
                )
            if kept:
                yield item, who, kept[0]

    def _build(self, labels: Sequence[tuple[str, str, str]], asked: list[str]) -> LabelTable:
        item, annotator, label = map(encode_values, zip(*labels, strict=True))
        asked = [name for name in asked if name not in self._skip]
        columns = Columns(
            self.source,
            item=item,
            annotator=annotator.sorted(),
            label=label,
            where=lambda row, role: f"{self.source}, {role} of item {labels[row][0][:60]!r}",
            classes=union_names(as_names(asked), label.names),
        )
        return LabelTable(**build_parts(columns, TableOptions()))

    def marker(self) -> Any:
        """Return how often each member has given each class, and what each has confirmed."""
        return self._api.label_counts(), self._api.progress()

    def push(self, predictions: Sequence[Prediction]) -> Pushed:
        """Raise an error: doccano stores no predictions."""
        self._refuse("stores no predictions with scores")

    def queue(self, plan: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Raise an error: everybody sees all examples."""
        self._refuse("1.8 assigns no examples to annotators")

    def mark_gold(self, gold: Mapping[str, str]) -> MarkedGold:
        """Raise an error: no label can be marked as the truth."""
        self._refuse("marks no labels as ground truth")

    def subscribe(self, url: str) -> None:
        """Raise an error: changes are reported to nobody."""
        self._refuse("calls no webhooks")

    def unsubscribe(self, url: str) -> None:
        """Do nothing, as nothing is subscribed."""

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedError(f"{self.title} {what}.")


def _fields(example: Mapping[str, Any]) -> Json:
    """Return the metadata of an example, and its text or the name of its file."""
    own = {"text": example.get("text"), "filename": example.get("upload_name")}
    return {**(example.get("meta") or {}), **{name: value for name, value in own.items() if value}}
