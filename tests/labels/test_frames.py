import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import annotrace as at
from annotrace.labels import LabelTable

LONG = {
    "task": ["b", "a", "b", "c"],
    "worker": ["kim", "lee", "lee", "kim"],
    "label": [2, 10, 2, 10],
}


def test_to_frame_gives_names_and_truth():
    table = LabelTable.from_long(LONG | {"truth": [2, None, 2, 10]})
    frame = table.to_frame()
    assert frame.columns == ["item", "annotator", "label", "truth"]
    assert frame.rows() == [
        ("b", "kim", 2, 2),
        ("b", "lee", 2, 2),
        ("a", "lee", 10, None),
        ("c", "kim", 10, 10),
    ]
    assert LabelTable.from_long(frame) == table


ROWS = {
    "item": ["a", "a", "b", "b", "c", "c"],
    "annotator": ["kim", "lee"] * 3,
    "label": ["x", "x", "y", "x", "y", "y"],
}


KINDS = [(pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame), (pa.table, pa.Table)]


def columns_of(frame):
    return list(frame.column_names if isinstance(frame, pa.Table) else frame.columns)


def values_of(frame, name):
    column = frame[name]
    return column.to_pylist() if isinstance(frame, pa.Table) else column.to_list()


@pytest.mark.parametrize(("make", "kind"), KINDS, ids=["pandas", "polars", "pyarrow"])
def test_what_is_reported_of_labels_is_of_their_library(make, kind, tmp_path):
    table = at.LabelTable.from_long(make(ROWS))
    model = at.aggregation.make("dawid-skene").fit(table)
    reported = [table.to_frame(), model.annotators_, model.suspect_labels(2), at.allocate(model, 1)]
    assert [type(frame) for frame in reported] == [kind] * 4
    assert columns_of(reported[1]) == [
        *("annotator", "n_labels", "skill", "low", "high"),
        *("accuracy", "accuracy_low", "accuracy_high", "flags"),
    ]
    assert values_of(reported[0], "label") == ROWS["label"]
    assert values_of(reported[1], "annotator") == ["kim", "lee"]
    model.save(tmp_path)
    assert isinstance(at.load(tmp_path).annotators_, pl.DataFrame)


def test_truth_that_is_not_known_is_missing():
    frame = pd.DataFrame({**ROWS, "truth": ["x", "x", None, None, "y", "y"]})
    truth = at.LabelTable.from_long(frame).to_frame()["truth"]
    assert truth.isna().tolist() == [False, False, True, True, False, False]


def test_without_a_frame_they_are_of_polars():
    for table in (at.LabelTable.from_long(ROWS), at.LabelTable.from_wide([[0, 1], [1, 1]])):
        assert isinstance(table.to_frame(), pl.DataFrame)


def test_tables_made_from_a_table_give_the_same_frames():
    table = at.LabelTable.from_long(pd.DataFrame(ROWS))
    model = at.aggregation.make("majority").fit(table)
    model.partial_fit(at.LabelTable.from_long(ROWS))
    for made in (table.select_items([0, 1]), table.with_items(["d"]), model.table_):
        assert isinstance(made.to_frame(), pd.DataFrame)
    assert table == at.LabelTable.from_long(ROWS)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.eye(4), pd.DataFrame([[0, 1], [1, 1], [0, 0], [1, 0]])),
        (pd.DataFrame(np.eye(4)), np.array([0, 1, 0, 1])),
        (np.eye(4), pd.Series([0, 1, 0, 1])),
    ],
    ids=["wide", "features", "series"],
)
def test_classifiers_give_frames_of_what_they_were_fitted_on(X, y):
    model = at.Vanilla(epochs=1, validation_fraction=0).fit(X, y)
    assert isinstance(model.annotators_, pd.DataFrame)
    assert model.annotators_["n_labels"].sum() == np.size(y)


def test_annotators_are_drawn_whatever_they_came_in():
    pytest.importorskip("matplotlib")
    table = at.LabelTable.from_long(pd.DataFrame(ROWS))
    axes = at.plots.skills(at.aggregation.make("dawid-skene").fit(table))
    assert {label.get_text() for label in axes.get_yticklabels()} == {"kim", "lee"}


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
def test_frames_without_rows_keep_their_types(make):
    model = at.aggregation.make("dawid-skene").fit(at.LabelTable.from_long(make(ROWS)))
    for full, empty in (
        (model.suspect_labels(), model.suspect_labels(0)),
        (at.allocate(model, 1), at.allocate(model, 1, available=0)),
    ):
        assert len(empty) == 0
        known = [nw.from_native(frame).schema for frame in (full, empty)]
        assert known[0] == known[1]


def test_numpy_takes_a_table_as_one_object():
    table = LabelTable.from_long(LONG)
    array = np.asarray(table)
    assert array.shape == ()
    assert array.item() is table
