"""Predictions in Label Studio, named after their content.

The name of a model version is a digest of its predictions. A push that was cut off is recognised by
it: the version exists with too few predictions or, if an import was repeated, with too many, and is
written again. The version before stays in use until the new one is complete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from annotrace.connect.label_studio.api import LabelStudioApi
from annotrace.errors import ConnectError

PREFIX = "annotrace-"
N_ATTEMPTS = 3
_BAD_REQUEST = 400

Json = dict[str, Any]


def version_of(predictions: Sequence[Json]) -> str:
    """Return the name of a model version with these predictions."""
    listed = sorted(json.dumps(each, sort_keys=True) for each in predictions)
    return PREFIX + hashlib.sha256("\n".join(listed).encode()).hexdigest()[:12]


def write_predictions(api: LabelStudioApi, predictions: Sequence[Json]) -> tuple[str, int, int]:
    """Write predictions, except those of tasks that no longer exist.

    Returns
    -------
    version : str
    n_sent : int
        0 if the server had them all.
    n_gone : int
        Tasks that no longer exist.
    """
    left = list(predictions)
    while True:
        version = version_of(left)
        try:
            return version, _complete(api, version, left), len(predictions) - len(left)
        except ConnectError as error:
            if error.status != _BAD_REQUEST:
                raise
            present = {task["id"] for task in api.tasks(["id"])}
            before, left = len(left), [each for each in left if each["task"] in present]
            if len(left) == before:
                raise


def _complete(api: LabelStudioApi, version: str, predictions: Sequence[Json]) -> int:
    """Bring a version to its number of predictions, and return how many were sent."""
    n_sent = 0
    for _ in range(N_ATTEMPTS):
        present = api.versions().get(version, 0)
        if present == len(predictions):
            return n_sent
        if present:
            api.delete_version(version)
        api.import_predictions([each | {"model_version": version} for each in predictions])
        n_sent = len(predictions)
    raise ConnectError(
        f"{api.url} has {api.versions().get(version, 0):,} predictions of version {version} after "
        f"{len(predictions):,} were sent. Does another program write to the project?"
    )


def make_current(api: LabelStudioApi, version: str) -> None:
    """Hide predictions from annotators, use a version, and delete annotrace's other versions."""
    if api.read_project()["show_collab_predictions"]:
        api.change_project(show_collab_predictions=False)
    # In this order: hiding predictions forgets the version.
    if api.read_project()["model_version"] != version:
        api.change_project(model_version=version)
    for other in api.versions():
        if other.startswith(PREFIX) and other != version:
            api.delete_version(other)
