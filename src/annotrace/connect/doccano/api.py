"""The requests to doccano that the connection needs, one method each.

Written for and tried with 1.8.4 on SQLite.
"""

from __future__ import annotations

import io
import json
import time
from typing import Any
from urllib.parse import urlencode

from annotrace.connect.json_api import MAX_RESPONSE, SERVER_ERROR, JsonApi, check_token
from annotrace.errors import ConnectError, InputError
from annotrace.labels.archives import open_archive
from annotrace.limits import LABEL_LIMITS

PAGE_SIZE = 500
# Seconds between looks whether an export is ready, doubled each time, and until it is given up.
FIRST_WAIT, LONGEST_WAIT, PATIENCE = 0.1, 2.0, 600.0
# doccano answers so if nobody is logged in, too, and not 401.
FORBIDDEN = 403
REMEDIES = {
    FORBIDDEN: "the user may not read the labels of everybody. Use --user of an administrator of "
    "the project",
    404: "there is no such project. Check --project",
}
LOGIN_REMEDIES = {400: "the user name or the password is not accepted"}
_ZIP = b"PK"
_SUFFIX = ".jsonl"

Json = dict[str, Any]


class DoccanoApi:
    """A project of a doccano server.

    Parameters
    ----------
    url : str
        The address of the server.
    project : int
        The number of the project, as in its address.
    user, password : str
        Of an administrator of the project. They are exchanged for a token at the first request.
    """

    def __init__(self, url: str, project: int, user: str, password: str) -> None:
        self.project, self._user, self._password = int(project), user, password
        self._token: str | None = None
        self._api = JsonApi(url, self._authorize, REMEDIES, refused=FORBIDDEN)
        self._login = JsonApi(url, lambda renew: None, LOGIN_REMEDIES)
        self.url, self.files = self._api.url, self._api

    def _authorize(self, renew: bool) -> str:
        if renew or self._token is None:
            names = {"username": self._user, "password": self._password}
            answer = self._login.request("POST", "/v1/auth/login/", names)
            self._token = check_token(str(self._field(answer, "key")))
        return f"Token {self._token}"

    def read_project(self) -> Json:
        """Return the settings of the project."""
        found: Json = self._api.get(self._path())
        self._field(found, "project_type")
        return found

    def members(self) -> dict[int, str]:
        """Return the name of each member of the project, by the number of the user."""
        return {each["user"]: each["username"] for each in self._api.get(self._path("/members"))}

    def category_types(self) -> dict[int, str]:
        """Return the classes of the project by number."""
        return {each["id"]: each["text"] for each in self._api.get(self._path("/category-types"))}

    def examples(self) -> list[Json]:
        """Return all examples, read in pages; raise an error if their number changes meanwhile."""
        found: dict[int, Json] = {}
        totals, offset = set[int](), 0
        while not totals or offset < max(totals):
            page = {"limit": PAGE_SIZE, "offset": offset, "ordering": "created_at"}
            answer = self._api.get(self._path("/examples"), **page)
            found.update((example["id"], example) for example in self._field(answer, "results"))
            totals.add(self._field(answer, "count"))
            offset += PAGE_SIZE
        if totals != {len(found)}:
            raise ConnectError(
                f"{self.url}: the examples of project {self.project} changed while they were read. "
                "Try again.",
                is_temporary=True,
            )
        return list(found.values())

    def categories(self, example: int) -> list[Json]:
        """Return the labels of an example: of everybody in a collaborative project, else yours."""
        found: list[Json] = self._api.get(self._path(f"/examples/{example}/categories"))
        return found

    def export(self) -> dict[str, list[Json]]:
        """Return the records that doccano exports for each member, by name, one per example.

        The labels of other members can be read in no other way. doccano leaves the file of each
        export in its folder for media.
        """
        body = {"format": "JSONL", "exportApproved": False}
        answer = self._api.request("POST", self._path("/download"), body)
        content = io.BytesIO(self._wait(self._field(answer, "task_id")))
        source = f"{self.url}, the export of project {self.project}"
        with open_archive(content, source, LABEL_LIMITS) as archive:
            files = {name.removesuffix(_SUFFIX): archive.read(name) for name in archive.namelist()}
        return {member: _parse_lines(text, source) for member, text in files.items()}

    def _wait(self, task: str) -> bytes:
        """Return the file of an export when it is ready."""
        path = self._path(f"/download?{urlencode({'taskId': task})}")
        wait, deadline = FIRST_WAIT, time.monotonic() + PATIENCE
        while not (content := self._read_export(path)).startswith(_ZIP):
            if time.monotonic() > deadline:
                raise ConnectError(
                    f"{self.url} has not exported project {self.project} after {PATIENCE:.0f} s. "
                    "Is `doccano task` running beside the server?"
                )
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        return content

    def _read_export(self, path: str) -> bytes:
        try:
            return self._api.download(self.url + path, MAX_RESPONSE)
        except ConnectError as error:
            if error.status != SERVER_ERROR:
                raise
            raise ConnectError(
                f"{self.url} cannot export project {self.project}; the log of `doccano task` says "
                "why. Metadata called text or label, as columns of the export are, are a known "
                "cause.",
                status=error.status,
            ) from None

    def label_counts(self) -> Json | None:
        """Return how often each member has given each class; None if doccano cannot count.

        It cannot if somebody who has labelled is no longer a member, and answers 500.
        """
        try:
            found: Json = self._api.get(self._path("/metrics/category-distribution"))
        except ConnectError as error:
            if error.status != SERVER_ERROR:
                raise
            return None
        return found

    def progress(self) -> Json:
        """Return the number of examples, and how many of them each member has confirmed."""
        found: Json = self._api.get(self._path("/metrics/member-progress"))
        return found

    def _path(self, below: str = "") -> str:
        return f"/v1/projects/{self.project}{below}"

    def _field(self, answer: Any, name: str) -> Any:
        """Return a field of an answer, which must be an object that has it."""
        if not isinstance(answer, dict) or name not in answer:
            raise ConnectError(
                f"{self.url} does not answer as doccano 1.8 does: there is no {name!r}. Is it the "
                "address of doccano, and how old is it?"
            )
        return answer[name]


def _parse_lines(text: bytes, source: str) -> list[Json]:
    try:
        return [json.loads(line) for line in text.split(b"\n") if line.strip()]
    except (ValueError, RecursionError):
        raise InputError(f"{source} is damaged: a line is not JSON. Try again.") from None
