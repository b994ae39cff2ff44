"""What an aggregation found as a folder: the truth, the annotators and the labels.

::

    truth.csv          item, label, confidence, one column a class
    annotators.csv     annotator, n_labels, skill, low, high, flags
    confusion.npz      confusion (annotators, classes, classes), annotators, classes
    labels.parquet     item, annotator, label, and truth where it is known
    run.json           method, settings, diagnosis, objective, versions
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.aggregation.base import Aggregation
from annotrace.aggregation.registry import list_aggregations, name_of
from annotrace.diagnosis.diagnosed import Diagnosed
from annotrace.diagnosis.metrics import skills
from annotrace.errors import RunError
from annotrace.labels import LabelTable
from annotrace.labels.gold import gold_by_name, known_classes
from annotrace.labels.vocabulary import Names, as_names, look_up
from annotrace.labels.writing import atomic_write, write_classes, write_confusion, write_csv
from annotrace.version import FORMAT, versions

FILES = ("truth.csv", "confusion.npz", "labels.parquet")


@dataclass(eq=False)
class AggregatedRun(Diagnosed):
    """What an aggregation found, as read back from a folder.

    Attributes
    ----------
    table_ : LabelTable
        All names are text.
    posterior_ : ndarray of shape (n_items, n_classes)
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
    prior_ : ndarray of shape (n_classes,)
        How common classes are.
    objective_ : ndarray of shape (n_iterations,)
    method : str
    chosen_ : ndarray of int, shape (n_items,), or None
        The class that each item was given, ties broken; the likeliest unless given.
    settings, versions_ : dict
    compares : bool
        Whether anything compared annotators.
    past_ : ndarray of shape (n_annotators, n_classes, n_classes), or None
        The counts of an earlier time that it began with.
    gold_ : ndarray of int, shape (n_items,)
        Classes that were known for certain, -1 elsewhere.
    """

    table_: LabelTable
    posterior_: NDArray[Any]
    confusion_: NDArray[Any]
    prior_: NDArray[Any]
    objective_: NDArray[Any]
    method: str = "aggregation"
    chosen_: NDArray[np.integer[Any]] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    versions_: dict[str, str] = field(default_factory=dict)
    compares: bool = True
    past_: NDArray[Any] | None = None

    @property
    def skill_(self) -> NDArray[Any]:
        """Mean of the diagonal of `confusion_`, shape (n_annotators,)."""
        return skills(self.confusion_)

    def predict(self) -> Names:
        """Give the class that each item was given, by name, shape (n_items,)."""
        chosen: Names = self.table_.classes[self._estimate()]
        return chosen

    def _estimate(self) -> NDArray[np.integer[Any]]:
        return super()._estimate() if self.chosen_ is None else self.chosen_

    def _without_labels(self) -> NDArray[Any]:
        return self.prior_

    def _compares(self) -> bool:
        return self.compares

    def _past(self) -> NDArray[Any] | None:
        return self.past_

    def _by_vote(self) -> bool:
        makers = {entry.name: entry.maker for entry in list_aggregations()}
        return self.method in makers and makers[self.method]()._by_vote()


def save_aggregation(aggregation: Aggregation, folder: Path) -> None:
    """Write what an aggregation found to a folder, each file whole or not at all."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; give a folder to save to.")
    table = aggregation.table_
    folder.mkdir(parents=True, exist_ok=True)
    # A classifier of an earlier run does not belong to these labels.
    (folder / "model.safetensors").unlink(missing_ok=True)
    write_classes(
        folder / "truth.csv",
        table.items.tolist(),
        table.classes,
        aggregation.posterior_,
        labels=aggregation.predict(),
        confidence=aggregation.confidence_,
    )
    write_csv(aggregation._people(), folder / "annotators.csv")
    write_confusion(folder, table, aggregation.confusion_, prior_counts=aggregation._past())
    table.write(folder / "labels.parquet")
    checksums = {name: _checksum(folder / name) for name in FILES}
    said = _describe(aggregation) | {"sha256": checksums}
    with atomic_write(folder / "run.json") as file:
        file.write(json.dumps(said, indent=1).encode() + b"\n")


def describe_fitted(fitted: Diagnosed) -> dict[str, Any]:
    """Give what run.json says of whatever was fitted, with or without a classifier."""
    table = fitted.table_
    return {
        "format": FORMAT,
        "counts": {
            "items": table.n_items,
            "annotators": table.n_annotators,
            "labels": table.n_labels,
            "classes": table.n_classes,
        },
        "diagnosis": fitted.diagnosis_.as_dict() if hasattr(fitted, "diagnosis_") else None,
        "versions": versions(),
    }


def _describe(aggregation: Aggregation) -> dict[str, Any]:
    known = gold_by_name(aggregation.table_, aggregation.gold_)
    return describe_fitted(aggregation) | {
        "kind": "aggregation",
        "method": name_of(aggregation),
        "iterations": aggregation.n_iter_,
        "converged": aggregation.converged_,
        "ties": int(aggregation.ties_.sum()),
        "params": aggregation.settings,
        "compares": aggregation._compares(),
        "gold": {str(item): str(name) for item, name in known.items()},
        "prior": aggregation.prior_.tolist(),
        "objective": aggregation.objective_.tolist(),
    }


def load_aggregated(folder: Path, said: dict[str, Any]) -> AggregatedRun:
    """Read the folder that `save_aggregation` wrote, of which `said` is what run.json says.

    Raises
    ------
    RunError
        If a file is missing, damaged, or from another run.
    """
    import polars as pl

    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise RunError(f"{folder}: no {missing[0]} in it; run `annotrace aggregate` again.")
    try:
        for name, written in said.get("sha256", {}).items():
            if _checksum(folder / name) != written:
                raise RunError(
                    f"{folder / name}: not what was written, by run.json; edited since, or of "
                    "another run? Put it back, or run `annotrace aggregate` again, and keep "
                    "corrections in a file of their own."
                )
        truth = pl.read_csv(folder / "truth.csv", infer_schema=False)
        labels = pl.read_parquet(folder / "labels.parquet")
        with np.load(folder / "confusion.npz", allow_pickle=False) as arrays:
            matrices = {name: arrays[name] for name in arrays.files}
        posterior = truth[:, 3:].cast(pl.Float64).to_numpy()
        table = _table(truth["item"], labels, matrices)
        chosen = look_up(as_names(truth["label"].fill_null("").to_list()), table.classes)
        run = AggregatedRun(
            table,
            posterior,
            matrices["confusion"],
            prior_=np.asarray(said["prior"]),
            objective_=np.asarray(said["objective"]),
            method=said["method"],
            chosen_=chosen,
            settings=said["params"],
            versions_=said["versions"],
            compares=said["compares"],
            past_=matrices.get("past"),
        )
        run.gold_ = known_classes(table, said.get("gold"))
    except (pl.exceptions.PolarsError, AttributeError, KeyError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"{folder}: damaged, it cannot be read as a run ({reason}).") from None
    return run


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _table(items: Any, labels: Any, matrices: dict[str, NDArray[Any]]) -> LabelTable:
    annotators, classes = (
        as_names(list(map(str, matrices[name].tolist()))) for name in ("annotators", "classes")
    )
    names = as_names(items.fill_null("").to_list())
    item, annotator, label = (
        look_up(as_names(labels[column].cast(str).to_list()), vocabulary)
        for column, vocabulary in (("item", names), ("annotator", annotators), ("label", classes))
    )
    truth = None
    if "truth" in labels.columns:
        truth = np.full(len(names), -1, np.int32)
        truth[item] = look_up(as_names(labels["truth"].cast(str).fill_null("").to_list()), classes)
    codes = (item, annotator, label)
    return LabelTable(*codes, items=names, annotators=annotators, classes=classes, truth=truth)
