"""Runs of `annotrace aggregate`: no classifier, but the truth, the annotators and the labels."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.aggregation.registry import list_aggregations
from annotrace.diagnosis.diagnosed import Diagnosed
from annotrace.errors import RunError
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import as_names, look_up

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
    gold_ : ndarray of int, shape (n_items,)
        The classes that were learned from, -1 for others; only where there are any.
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

    def _estimate(self) -> NDArray[np.integer[Any]]:
        return super()._estimate() if self.chosen_ is None else self.chosen_

    def _without_labels(self) -> NDArray[Any]:
        return self.prior_

    def _by_vote(self) -> bool:
        makers = {entry.name: entry.maker for entry in list_aggregations()}
        return self.method in makers and makers[self.method]()._by_vote()

    def _compares(self) -> bool:
        return bool(np.any(self.table_.labels_per_item() > 1) or self._learned().any())


def load_aggregated(folder: str | Path) -> AggregatedRun:
    """Read the folder that `annotrace aggregate` wrote.

    Raises
    ------
    RunError
        If a file is missing, damaged, or from another run.
    """
    import polars as pl

    folder = Path(folder)
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise RunError(f"{folder}: no {missing[0]} in it; run `annotrace aggregate` again.")
    try:
        truth = pl.read_csv(folder / "truth.csv", infer_schema=False)
        labels = pl.read_parquet(folder / "labels.parquet")
        with np.load(folder / "confusion.npz", allow_pickle=False) as arrays:
            matrices = {name: arrays[name] for name in ("confusion", "annotators", "classes")}
        posterior = truth[:, 3:].cast(pl.Float64).to_numpy()
        table = _table(truth["item"], labels, matrices)
        chosen = look_up(as_names(truth["label"].fill_null("").to_list()), table.classes)
        said = _said(folder)
    except (pl.exceptions.PolarsError, ValueError, KeyError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"{folder}: damaged, it cannot be read as a run ({reason}).") from None
    described = _described(said, posterior)
    run = AggregatedRun(table, posterior, matrices["confusion"], chosen_=chosen, **described)
    if said.get("learned_truth") and table.truth is not None:
        run.gold_ = table.truth
    return run


def _said(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return said


def _described(said: dict[str, Any], posterior: NDArray[Any]) -> dict[str, Any]:
    """Give what run.json says beside the tables; runs of before 0.2 do not have all of it."""
    return {
        "prior_": np.asarray(said.get("prior", posterior.mean(axis=0))),
        "objective_": np.asarray(said.get("objective", [])),
        "method": said.get("method", "aggregation"),
        "settings": said.get("params", {}),
        "versions_": said.get("versions", {}),
    }


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
