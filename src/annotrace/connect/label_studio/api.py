"""The requests to Label Studio that the connection needs, one method each.

Written for and tried with the community edition 1.23 on SQLite.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from annotrace.connect.addresses import REMEDY
from annotrace.connect.json_api import JsonApi, check_token
from annotrace.errors import ConnectError

PAGE_SIZE = 500
# Predictions per request: 1,000 take about 3 s on one core.
IMPORT_SIZE = 1000
# Deleting predictions takes about 5 s per thousand.
LONG = 900.0
REMEDIES = {
    401: "the token is not accepted. Copy it again from Account & Settings, or make a new one",
    403: "the user of the token may not do this. Use the token of an administrator or manager",
    404: "there is no such project, or the user of the token cannot see it. Check --project",
}
NOT_FOUND = 404
_ELSEWHERE = f"the file is elsewhere, and redirects are not followed. {REMEDY.rstrip('.')}"
FILE_REMEDIES = {
    401: REMEDIES[401],
    403: "the user of the token may not read it, or local files are not served",
    404: "there is no such file. Upload it again, or delete the task",
    500: "it has probably lost the file. Upload it again, or delete the task",
    **dict.fromkeys((301, 302, 303, 307, 308), _ELSEWHERE),
}


class LabelStudioApi:
    """A project of a Label Studio server.

    Parameters
    ----------
    url : str
        The address of the server.
    project : int
        The number of the project, as in its address.
    token : str
        An access token: a personal one (it has two dots), which is exchanged for one of a few
        minutes, or a legacy token.

    Attributes
    ----------
    url : str
    files : JsonApi
        The same server, with other remedies: for the files that tasks name by address.
    """

    def __init__(self, url: str, project: int, token: str) -> None:
        self.project, self._token = int(project), check_token(token)
        self._access: str | None = None
        self._api = JsonApi(url, self._authorize, REMEDIES)
        self.files = JsonApi(url, self._authorize, FILE_REMEDIES)
        self._login = JsonApi(url, lambda renew: None, REMEDIES)
        self.url = self._api.url

    def _authorize(self, renew: bool) -> str | None:
        if self._token.count(".") != 2:
            return None if renew else f"Token {self._token}"
        if renew or self._access is None:
            answer = self._login.request("POST", "/api/token/refresh/", {"refresh": self._token})
            self._access = check_token(str(_field(answer, "access", self.url)))
        return f"Bearer {self._access}"

    def read_project(self) -> dict[str, Any]:
        """Return the settings of the project."""
        found: dict[str, Any] = self._api.get(self._path())
        _field(found, "parsed_label_config", self.url)
        return found

    def change_project(self, **settings: Any) -> None:
        """Change settings of the project."""
        self._api.request("PATCH", self._path(), settings)

    def users(self) -> dict[int, str]:
        """Return the e-mail address of each user that the token's user can see, by number."""
        try:
            listed = self._api.get("/api/users/")
        except ConnectError as error:
            if error.is_temporary or error.status == 401:
                raise
            return {}
        return {user["id"]: user["email"] for user in listed if user.get("email")}

    def tasks(self, include: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Iterate over all tasks by number, with some of their fields.

        Each page asks for the tasks after the last one: a task that is deleted meanwhile moves no
        other to a page that was read already.
        """
        last, query = 0, {"project": self.project, "page": 1, "page_size": PAGE_SIZE}
        while True:
            after = _filter("greater", last)
            part = {"filters": _all_of([after]), "ordering": ["tasks:id"]}
            options = {"fields": "all", "include": ",".join(include), "query": json.dumps(part)}
            page = _field(self._api.get("/api/tasks/", **query, **options), "tasks", self.url)
            yield from page
            if len(page) < PAGE_SIZE:
                return
            last = page[-1]["id"]

    def latest_change(self) -> Any:
        """Return when the task that changed last did so."""
        query = {"project": self.project, "page": 1, "page_size": 1, "include": "id,updated_at"}
        order = json.dumps({"ordering": ["-tasks:updated_at"]})
        page = self._api.get("/api/tasks/", **query, query=order)
        return [task.get("updated_at") for task in _field(page, "tasks", self.url)]

    def versions(self) -> dict[str, int]:
        """Return the number of predictions of each model version."""
        found: dict[str, int] = self._api.get(self._path("model-versions/"))
        return found

    def import_predictions(self, predictions: Sequence[Mapping[str, Any]]) -> None:
        """Add predictions."""
        for start in range(0, len(predictions), IMPORT_SIZE):
            part = predictions[start : start + IMPORT_SIZE]
            self._api.request("POST", self._path("import/predictions"), part, LONG)

    def delete_version(self, version: str) -> None:
        """Delete all predictions of a model version."""
        body = {"model_version": version}
        self._api.request("DELETE", self._path("model-versions/"), body, LONG)

    def views(self) -> list[dict[str, Any]]:
        """Return the tabs of the Data Manager."""
        listed: list[dict[str, Any]] = self._api.get("/api/dm/views/", project=self.project)
        return listed

    def write_view(self, data: Mapping[str, Any], view: int | None = None) -> int:
        """Create a tab of the Data Manager, or change one, and return its number."""
        body = {"project": self.project, "data": dict(data)}
        if view is None:
            answer = self._api.request("POST", "/api/dm/views/", body)
        else:
            answer = self._api.request("PATCH", f"/api/dm/views/{view}/", body)
        return int(_field(answer, "id", self.url))

    def mark_ground_truth(self, annotation: int) -> bool:
        """Mark an annotation as ground truth, and return whether it still exists."""
        try:
            self._api.request("PATCH", f"/api/annotations/{annotation}/", {"ground_truth": True})
        except ConnectError as error:
            if error.status != NOT_FOUND:
                raise
            return False
        return True

    def webhooks(self) -> dict[int, str]:
        """Return the addresses to which changes are reported, by number."""
        listed = self._api.get("/api/webhooks/", project=self.project)
        return {hook["id"]: hook["url"] for hook in listed}

    def add_webhook(self, url: str, actions: Iterable[str]) -> None:
        """Report changes to an address, without their content."""
        body = {"project": self.project, "url": url, "actions": list(actions)}
        options = {"send_payload": False, "send_for_all_actions": False, "is_active": True}
        self._api.request("POST", "/api/webhooks/", body | options)

    def delete_webhook(self, webhook: int) -> None:
        """Stop reporting changes."""
        self._api.request("DELETE", f"/api/webhooks/{webhook}/")

    def _path(self, below: str = "") -> str:
        return f"/api/projects/{self.project}/{below}"


def one_of(tasks: Iterable[int]) -> dict[str, Any]:
    """Return the filter of a tab that shows some tasks.

    The page of the Data Manager knows no operator for a list, and stops working with one that it
    does not know.
    """
    return {"conjunction": "or", "items": [_filter("equal", task) for task in tasks]}


def _all_of(filters: list[dict[str, Any]]) -> dict[str, Any]:
    return {"conjunction": "and", "items": filters}


def _filter(operator: str, task: int) -> dict[str, Any]:
    return {"filter": "filter:tasks:id", "operator": operator, "type": "Number", "value": task}


def _field(answer: Any, name: str, url: str) -> Any:
    """Return a field of an answer, which must be an object that has it."""
    if not isinstance(answer, dict) or name not in answer:
        raise ConnectError(
            f"{url} does not answer as Label Studio 1.23 does: there is no {name!r}. Is it the "
            "address of Label Studio, and how old is it?"
        )
    return answer[name]
