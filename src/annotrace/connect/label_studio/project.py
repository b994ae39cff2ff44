"""A project in Label Studio: answers in; predictions, tabs and ground truth out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotrace.connect.label_studio.api import LabelStudioApi
from annotrace.connect.label_studio.predictions import make_current, write_predictions
from annotrace.connect.label_studio.tabs import SHARED, allow_annotations, write_tabs
from annotrace.connect.label_studio.tasks import (
    ANSWER_FIELDS,
    Control,
    Json,
    find_control,
    has_label,
    prepare_task,
    with_marked_labels,
)
from annotrace.connect.tool import MarkedGold, Prediction, Pulled, Pushed
from annotrace.errors import ConnectError, InputError
from annotrace.labels import LabelTable
from annotrace.labels.building import TableOptions, build_parts
from annotrace.labels.documents import Document, json_value
from annotrace.labels.formats.label_studio import LABEL_STUDIO
from annotrace.labels.reading import ExportOptions, Imported, import_answers
from annotrace.labels.vocabulary import as_names, union_names

# Scores are rounded, so that the last digits of a fit elsewhere make no new version.
DIGITS = 4
# Fields of tasks and of their annotations alike.
_FIELDS = ("id", "data", "annotations", "drafts", *ANSWER_FIELDS)
_REFUSED = (400, 403)
_ACTIONS = (
    *("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED"),
    *("TASKS_CREATED", "TASKS_DELETED"),
)


class LabelStudio:
    """A project in Label Studio; the methods are those of `LabellingTool`.

    Parameters
    ----------
    url, project, token
        As in `LabelStudioApi`.
    question : str, optional
        The control whose answers are the labels; needed if there are several.
    item : str, optional
        The field of a task that names it; its number by default.
    options : TableOptions
        Classes, answers to skip, and what to do with repeated answers.
    """

    title = "Label Studio"

    def __init__(
        self,
        url: str,
        project: int,
        token: str,
        *,
        question: str | None = None,
        item: str | None = None,
        options: TableOptions | None = None,
    ) -> None:
        self._api = LabelStudioApi(url, project, token)
        self._question, self._item, self._options = question, item, options or TableOptions()
        self._tasks: dict[str, Json] = {}
        self._config: dict[str, Any] = {}
        self.source = f"{self.title} project {self._api.project}"
        self.files = self._api.files

    def pull(self) -> Pulled:
        """Return the tasks and answers.

        An annotation that is marked as ground truth is the true class of its task.
        """
        self._config = self._api.read_project()["parsed_label_config"]
        users = self._api.users()
        tasks = [prepare_task(task, users) for task in self._api.tasks(_FIELDS)]
        self._tasks = self._by_name(tasks)
        data = {name: task["data"] for name, task in self._tasks.items()}
        if not any(map(has_label, tasks)):
            return Pulled(None, None, data)
        table, used = self._read(with_marked_labels(tasks))
        return Pulled(table.with_items(list(data)), used, data)

    def _by_name(self, tasks: Sequence[Json]) -> dict[str, Json]:
        by_name: dict[str, Json] = {}
        for task in tasks:
            name = task["id"] if self._item is None else task["data"].get(self._item)
            if by_name.setdefault(str(name), task) is not task:
                raise InputError(
                    f"{self.source}, tasks {by_name[str(name)]['id']} and {task['id']} have the "
                    f"same {self._item!r}, {str(name)[:60]!r}. Name tasks by another field with "
                    "--item, or leave it out."
                )
        return by_name

    def _read(self, tasks: Sequence[Json]) -> tuple[LabelTable, Imported]:
        texts = [json_value(task) for task in tasks]
        document = Document(Path(self.source), "task", texts[:1], lambda: enumerate(texts, start=1))
        export = ExportOptions(question=self._question)
        columns, used = import_answers([document], LABEL_STUDIO, export, self._item)
        asked = self._config.get(used.question or "", {}).get("labels") or []
        asked = [name for name in asked if name not in self._options.skip]
        if asked:
            found = columns.label.without(self._options.skip).names
            columns = replace(columns, classes=union_names(as_names(asked), found))
        return LabelTable(**build_parts(columns, self._options)), used

    def marker(self) -> Any:
        """Return the counts of the project, and when a task last changed."""
        project = self._api.read_project()
        counts = {name: project[name] for name in project if name.endswith("_number")}
        counts.pop("total_predictions_number", None)  # They change by our own pushes.
        return counts, project["parsed_label_config"], self._api.latest_change()

    def push(self, predictions: Sequence[Prediction]) -> Pushed:
        """Replace annotrace's predictions, hidden from annotators, and order a tab by them."""
        control = self._control()
        made = [
            {
                "task": self._tasks[each.item]["id"],
                "result": [control.answer(each.label)],
                "score": round(each.score, DIGITS),
            }
            for each in predictions
        ]
        version, n_sent, n_gone = write_predictions(self._api, made)
        make_current(self._api, version)
        allow_annotations(self._api, len(self._annotators()))
        write_tabs(self._api, {SHARED: None})
        return Pushed(version, n_sent, n_gone)

    def queue(self, plan: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Create a tab for each annotator, with the tasks to label."""
        allow_annotations(self._api, len(self._annotators() | set(plan)))
        numbers = {who: [self._tasks[item]["id"] for item in items] for who, items in plan.items()}
        return write_tabs(self._api, numbers)

    def mark_gold(self, gold: Mapping[str, str]) -> MarkedGold:
        """Mark one annotation of each gold item, with its class, as ground truth."""
        control, marked = self._control(), MarkedGold(0, 0, [])
        for item, name in gold.items():
            answers = self._tasks[item]["annotations"]
            fitting = [answer for answer in answers if control.class_of(answer) == name]
            if any(answer["ground_truth"] for answer in fitting):
                marked = marked._replace(n_known=marked.n_known + 1)
            elif fitting and self._api.mark_ground_truth(fitting[0]["id"]):
                marked = marked._replace(n_marked=marked.n_marked + 1)
            else:
                marked.unmarked.append(item)
        return marked

    def subscribe(self, url: str) -> None:
        """Have changes of answers and tasks reported by a webhook."""
        if url in self._api.webhooks().values():
            return
        try:
            self._api.add_webhook(url, _ACTIONS)
        except ConnectError as error:
            if error.status not in _REFUSED:
                raise
            raise ConnectError(
                f"{self.title} refuses a webhook to {url} ({error.status}). It blocks addresses on "
                "its own machine or network unless it is started with "
                "SSRF_PROTECTION_ENABLED=false ML_BLOCK_LOCAL_IP=false.",
                status=error.status,
            ) from None

    def unsubscribe(self, url: str) -> None:
        """Remove the webhook."""
        for number, known in self._api.webhooks().items():
            if known == url:
                self._api.delete_webhook(number)

    def _control(self) -> Control:
        return find_control(self._config, self._question, self.source)

    def _annotators(self) -> set[str]:
        """Return everybody who has answered."""
        answers = (answer for task in self._tasks.values() for answer in task["annotations"])
        return {str(answer["completed_by"]) for answer in answers}
