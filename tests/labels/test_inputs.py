import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables import crowd

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.frames import frame_from_table

LONG = {
    "task": ["b", "a", "b", "c"],
    "worker": ["kim", "lee", "lee", "kim"],
    "label": [2, 10, 2, 10],
}


def rows(table):
    return sorted(row[:3] for row in frame_from_table(table).rows())


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_long_frames_of_every_kind_give_the_same_table(make):
    table = LabelTable.from_long(make(LONG))
    assert rows(table) == sorted(zip(*LONG.values(), strict=True))
    assert table.items.tolist() == ["b", "a", "c"]
    assert table.annotators.tolist() == ["kim", "lee"]
    assert table.classes.tolist() == [2, 10]
    assert not table.positional


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_a_null_is_an_error_with_its_row(make):
    with pytest.raises(InputError, match=r"row index 1, column 'worker' is empty"):
        LabelTable.from_long(make(LONG | {"worker": ["kim", None, "lee", "kim"]}))


def test_categories_and_nullable_integers_of_pandas():
    frame = pd.DataFrame(LONG)
    frame["worker"] = frame["worker"].astype("category")
    frame["label"] = frame["label"].astype("Int64")
    assert LabelTable.from_long(frame) == LabelTable.from_long(LONG)


def test_categories_of_numbers_stay_numbers_beside_a_missing_cell():
    codes = pd.Categorical.from_codes([0, 1, 1, -1], categories=[2, 10])
    table = LabelTable.from_wide(
        pd.DataFrame({"item": range(4), "kim": [2, 10, 2, 2], "lee": codes})
    )
    assert table.classes.tolist() == [2, 10]
    assert table.n_labels == 7


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["b", "a"])])
def test_categories_of_polars_are_their_text(kind):
    lee = pl.Series(["b", None], dtype=kind)
    table = LabelTable.from_wide(pl.DataFrame({"item": [1, 2], "kim": ["a", "b"], "lee": lee}))
    assert table.classes.tolist() == ["a", "b"]


def test_nothing_beside_text_in_a_list_is_no_class():
    table = LabelTable.from_wide([["a", float("nan")], ["b", "b"], ["a", -1]])
    assert table.classes.tolist() == ["a", "b"]


def test_columns_of_one_name_are_rejected():
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=["item", "worker", "label", "label"])
    with pytest.raises(InputError, match="columns 3 and 4 are both named 'label'"):
        LabelTable.from_long(frame)


def test_numbers_in_text_keep_numeric_order():
    table = LabelTable.from_long(LONG | {"label": ["2", "10", "2", "10"]})
    assert table.classes.tolist() == ["2", "10"]


def test_booleans_and_dates_become_text():
    days = pl.Series(["2024-01-02", "2024-01-01", "2024-01-02", "2024-01-01"]).str.to_date()
    frame = pl.DataFrame(LONG | {"task": days, "label": [True, False, True, True]})
    table = LabelTable.from_long(frame)
    assert table.items.tolist() == ["2024-01-02", "2024-01-01"]
    assert table.classes.tolist() == ["False", "True"]


def test_columns_of_unequal_length():
    with pytest.raises(InputError, match="equal length"):
        LabelTable.from_long(LONG | {"label": [1]})


def test_lists_in_cells_are_rejected():
    with pytest.raises(InputError, match="contains several labels"):
        LabelTable.from_long(pl.DataFrame(LONG | {"label": [["x"], ["x", "y"], ["y"], ["y"]]}))


def test_a_wide_frame_is_not_long_and_the_other_way_round():
    with pytest.raises(InputError, match=r"use a wide table \(from_wide for frames\)"):
        LabelTable.from_long({"item": ["a"], "kim": [1], "lee": [0]})
    with pytest.raises(InputError, match="Use from_long"):
        LabelTable.from_wide(LONG)


@pytest.mark.parametrize("dtype", ["string", "Int64", "boolean", "Float64", "category", "object"])
def test_missing_values_of_every_pandas_type(dtype):
    values = [True, False, None] if dtype == "boolean" else [1, 0, None]
    frame = pd.DataFrame({"item": ["a", "b", "c"], "kim": pd.array(values, dtype=dtype)})
    table = LabelTable.from_wide(frame)
    assert table.to_wide().tolist() == [[1], [0], [-1]]


def test_other_columns_of_a_wide_frame_are_set_aside():
    wide = {"item": ["a", "b"], "text": ["some text", "more text"], "kim": [1, 0], "lee": [1, 1]}
    assert LabelTable.from_wide(wide).annotators.tolist() == ["kim", "lee"]
    assert LabelTable.from_wide(pd.DataFrame(wide)).annotators.tolist() == ["kim", "lee"]


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_annotators_of_a_wide_frame_can_be_named(make):
    wide = make({"item": ["a", "b"], "level": [0, 1], "kim": [1, 0], "lee": [1, 1]})
    table = LabelTable.from_wide(wide, annotators=["lee", "kim"])
    assert table.annotators.tolist() == ["lee", "kim"]
    assert table.to_wide().tolist() == [[1, 1], [1, 0]]
    with pytest.raises(InputError, match="has no column 'sam'"):
        LabelTable.from_wide(wide, annotators=["sam"])
    with pytest.raises(InputError, match=r"Use annotators=\['kim'\]"):
        LabelTable.from_wide(wide, annotators="kim")


def test_annotators_of_a_pandas_frame_without_an_item_column():
    frame = pd.DataFrame({"w1": [0, 1], "w2": [1, 1], "level": [0, 0]}, index=["a", "b"])
    table = LabelTable.from_wide(frame, annotators=["w1", "w2"])
    assert table.items.tolist() == ["a", "b"]
    assert table.annotators.tolist() == ["w1", "w2"]


def test_columns_of_a_long_frame_by_content():
    columns, rows = crowd()
    table = LabelTable.from_long(pl.DataFrame(columns | {"row": range(300)}))
    assert (table.n_items, table.n_annotators, table.n_classes) == (100, 8, 3)
    assert table.n_labels == len(rows["label"])


def test_columns_named_by_numbers():
    frame = pd.DataFrame([[0, 1], [1, 0]]).assign(item=["a", "b"])
    table = LabelTable.from_wide(frame)
    assert table.annotators.tolist() == ["0", "1"]
    assert table.to_wide().tolist() == [[0, 1], [1, 0]]


def test_dicts_and_arrays_need_no_frame_library(monkeypatch):
    for name in ("polars", "narwhals", "pandas", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    assert LabelTable.from_long(LONG).n_labels == 4
    assert LabelTable.from_wide([[0, 1], [1, -1]]).n_labels == 3


def test_rows_of_several_lengths():
    with pytest.raises(InputError, match="Expected rows of equal length"):
        LabelTable.from_wide([[0, 1], [1]])


def test_an_index_of_several_levels():
    index = pd.MultiIndex.from_tuples([("x", 1), ("y", 2)])
    with pytest.raises(InputError, match="The index of the frame has 2 levels"):
        LabelTable.from_wide(pd.DataFrame({"kim": [0, 1]}, index=index))


def test_something_that_is_no_frame():
    with pytest.raises(InputError, match="but got int"):
        LabelTable.from_long(3)


@pytest.mark.parametrize(
    "answers",
    [
        np.array([[0, -1], [3, 0], [-1, -1]]),
        np.array([[0, np.nan], [3, 0], [np.nan, np.nan]]),
        np.array([[0, -1], [3, 0], [-1, np.nan]]),
        np.array([[0, -1], [3, 0], [-1, -1]], dtype=np.float32),
        [[0, None], [3, 0], [None, None]],
        np.array([[0, -1.0], [3, 0], [None, np.float32(-1)]], dtype=object),
        np.array([[0, None], [3, 0], [-1, np.nan]], dtype=object),
        np.ma.array([[0, 7], [3, 0], [7, 7]], mask=[[0, 1], [0, 0], [1, 1]]),
    ],
)
def test_missing_answers_of_an_array(answers):
    table = LabelTable.from_wide(answers)
    assert table.positional
    assert table.classes.tolist() == [0, 3]
    assert table.to_wide().tolist() == [[0, -1], [1, 0], [-1, -1]]


def test_an_array_of_text_with_names():
    table = LabelTable.from_wide(
        np.array([["x", ""], ["y", "x"]]), items=["a", "b"], annotators=["lee", "kim"]
    )
    assert not table.positional
    assert table.annotators.tolist() == ["lee", "kim"]
    assert rows(table) == [("a", "lee", "x"), ("b", "kim", "x"), ("b", "lee", "y")]


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_wide_frames(make):
    wide = make({"item": ["a", "b", "c"], "lee": [0, None, None], "kim": [1, 1, None]})
    table = LabelTable.from_wide(wide)
    assert rows(table) == [("a", "kim", 1), ("a", "lee", 0), ("b", "kim", 1)]
    assert table.annotators.tolist() == ["lee", "kim"]
    assert table.labels_per_item().tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("answers", "given", "message"),
    [
        ([0, 1], {}, "but got shape (2,)"),
        ([[0, 1]], {"items": ["a", "b"]}, "Expected 1 name in `items`, but got 2"),
        (
            [[0, 1]],
            {"annotators": ["a", "a"]},
            "distinct names in `annotators`, but got 1 repeated name: 'a'",
        ),
        ([[-1, -1]], {}, "the array has no labels"),
        ([[1, 1]], {}, "all labels are '1'"),
        ([[0, 1], [2, 0]], {"classes": [0, 1]}, "row index 1, column index 0: '2' is not among"),
        ({"kim": [0], "lee": [1]}, {}, "found no item"),
        ({"item": ["a", None], "lee": [1, 2]}, {}, "row index 1, column 'item' is empty"),
        ({"item": ["a"], "lee": [1]}, {"items": ["b"]}, "`items` name the rows of an array"),
    ],
)
def test_wide_input_that_cannot_be_used(answers, given, message):
    with pytest.raises(InputError) as caught:
        LabelTable.from_wide(answers, **given)
    assert message in str(caught.value)


class ClassLabel:
    """The part of `datasets.ClassLabel` that the library uses."""

    def __init__(self, names):
        self.names = names


class Dataset:
    """The part of `datasets.Dataset` that the library uses, with selected rows."""

    def __init__(self, columns, features, selected):
        self.table, self.features, self.selected = pa.table(columns), features, selected

    def with_format(self, type):
        assert type == "arrow"
        return self

    def __getitem__(self, rows):
        assert rows == slice(None)
        return self.table.take(self.selected)


def test_a_dataset_gives_the_rows_selected_and_the_names_of_classes():
    columns = {"image": ["a", "a", "b"], "annotator": ["kim", "lee", "kim"], "label": [1, 0, -1]}
    dataset = Dataset(columns, {"image": object(), "label": ClassLabel(["no", "yes"])}, [1, 0])
    table = LabelTable.from_long(dataset)
    assert sorted(table.to_frame().rows()) == [("a", "kim", "yes"), ("a", "lee", "no")]


def test_a_frame_of_cleanlab_names_items_by_its_index(tmp_path):
    frame = pd.DataFrame({"w1": [0.0, 1.0, None], "w2": [None, 1.0, 0.0]}, index=["a", "b", "c"])
    table = LabelTable.from_wide(frame)
    assert table.items.tolist() == ["a", "b", "c"]
    assert table.annotators.tolist() == ["w1", "w2"]
    assert not table.positional
    frame.to_parquet(tmp_path / "a.parquet")
    assert LabelTable.read(tmp_path / "a.parquet").to_wide().tolist() == table.to_wide().tolist()
    assert LabelTable.from_wide(pl.DataFrame({"item": [1, 2], "w": [0, 1]})).n_annotators == 1
