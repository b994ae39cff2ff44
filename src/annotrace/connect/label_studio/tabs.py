"""Tabs of Label Studio's Data Manager: who is to label what, as there are no assignments.

With several annotators, Label Studio's uncertainty sampling is random. A tab keeps an order exactly
if annotators choose "Label Tasks As Displayed" in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from annotrace.connect.label_studio.api import LabelStudioApi, one_of

SHARED = "doubtful first"
# Tasks that a tab lists: each is a filter of its own, and takes the server a millisecond.
MAX_TASKS = 100
NO_TASK = 0
# What would tell an annotator the answers of others.
_TELLING = (
    *("predictions_results", "predictions_score", "predictions_model_versions"),
    *("annotations_results", "annotators", "total_predictions"),
)


def write_tabs(api: LabelStudioApi, tasks: Mapping[str, Sequence[int] | None]) -> dict[str, str]:
    """Create tabs that list some tasks, or all, the most doubtful first; change those that exist.

    Returns
    -------
    dict
        The address of each tab.
    """
    known = api.views()
    if not known:  # The page shows this tab by itself only until another one is saved.
        api.write_view({"title": "Default", "type": "list", "target": "tasks"})
    by_title = {(view.get("data") or {}).get("title"): view["id"] for view in known}
    addresses = {}
    for name, numbers in tasks.items():
        title = title_of(name)
        tab = api.write_view(_describe(title, numbers), by_title.get(title))
        addresses[name] = f"{api.url}/projects/{api.project}/data?tab={tab}"
    return addresses


def title_of(name: str) -> str:
    """Return the title of a tab; the page cuts titles, so that the name comes first."""
    return f"{name} (annotrace)"


def allow_annotations(api: LabelStudioApi, number: int) -> None:
    """Have a task given out until so many have answered it: the tabs decide who is asked."""
    if api.read_project()["maximum_annotations"] < number:
        api.change_project(maximum_annotations=number)


def _describe(title: str, tasks: Iterable[int] | None) -> dict[str, Any]:
    hidden = [f"tasks:{column}" for column in _TELLING]
    tab: dict[str, Any] = {
        "title": title,
        "type": "list",
        "target": "tasks",
        "ordering": ["tasks:predictions_score"],
        "hiddenColumns": {"explore": hidden, "labeling": hidden},
    }
    if tasks is not None:
        tab["filters"] = one_of(list(tasks)[:MAX_TASKS] or [NO_TASK])
    return tab
