import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import annotrace as at
from annotrace.data import ArraySource, ItemSource, as_source
from annotrace.errors import InputError


def test_images_stay_as_they_are():
    X = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    source = as_source(X)
    assert isinstance(source, ItemSource)
    assert len(source) == 2
    assert source.shape == (3, 3)
    assert source.items is None
    batch = source.load(np.array([1, 0, 1]))
    assert batch.dtype == np.uint8
    np.testing.assert_array_equal(batch, X[[1, 0, 1]])
    assert np.shares_memory(source.X, X)


def test_a_source_is_taken_as_it_is():
    source = ArraySource(np.zeros((2, 1)), items=["a", "b"])
    assert as_source(source) is source
    with pytest.raises(InputError, match="but ArraySource names its own items"):
        as_source(source, items=["a", "b"])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_have_an_item_column_and_numbers(make):
    source = as_source(make({"width": [1.5, 2.5], "image": ["a", "b"], "count": [3, 4]}))
    assert source.items.tolist() == ["a", "b"]
    assert source.load(np.array([0, 1])).tolist() == [[1.5, 3], [2.5, 4]]


def test_given_items_leave_every_column_a_feature():
    source = as_source(pd.DataFrame({"id": [1, 2], "x": [3, 4]}), items=["a", "b"])
    assert source.shape == (2,)
    assert source.items.tolist() == ["a", "b"]


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_columns_of_lists(make):
    source = as_source(make({"id": [1, 2], "embedding": [[1.0, 2.0], [3.0, 4.0]]}))
    assert source.X.tolist() == [[1, 2], [3, 4]]


def test_arrays_in_a_polars_column_keep_their_type_and_shape():
    images = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
    source = as_source(pl.DataFrame({"id": [1, 2], "pixels": images}))
    assert source.X.dtype == np.uint8
    np.testing.assert_array_equal(source.X, images)


@pytest.mark.parametrize(
    ("X", "items", "message"),
    [
        (np.zeros(3), None, "but got shape (3,). Use X.reshape(-1, 1)"),
        (np.zeros((3, 0)), None, "to have at least one feature, but got shape (3, 0)"),
        ([["a"] * 3, ["b"] * 3], None, "Expected X to be numbers, but got <U1"),
        (np.array([[None], [1]]), None, "Expected X to be numbers, but got object"),
        ([[0.0, 1.0], [np.nan, 1.0]], None, "X, row index 1, column 0 is nan"),
        ([[0.0, np.inf], [0.0, 1.0]], ["a", "b"], "row index 0 (item 'a'), column 1 is inf"),
        ([[1.0], [1e300]], ["a", "b"], "(item 'b'), column 0 is 1e+300. It exceeds float32"),
        ([[1.0], [-1e300]], None, "row index 1, column 0 is -1e+300. It exceeds float32"),
        (np.zeros((2, 1)), ["a"], "Expected 2 names in items of X, but got 1"),
        (np.zeros((2, 1)), ["a", "a"], "but got 1 repeated name: 'a'"),
        (pd.DataFrame({"hue": ["r", "g"], "x": [1, 2]}), None, "column 'hue' has type String"),
        (pd.DataFrame({"item": [1, 2]}), None, "no feature columns"),
        (pl.DataFrame({"item": ["a", None], "x": [1, 2]}), None, "row index 1, column 'item' is e"),
        (
            pl.DataFrame({"item": ["a", "b"], "x": [1.0, None], "y": [1.0, 2.0]}),
            None,
            "row index 1 (item 'b'), column 'x' is nan",
        ),
        (
            pl.DataFrame({"id": [1, 2], "e": [[1.0], [1.0, 2.0]]}),
            None,
            "expected lists of equal length",
        ),
    ],
)
def test_features_that_cannot_be_used(X, items, message):
    with pytest.raises(InputError) as caught:
        as_source(X, items)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_frame_of_numbers_alone_is_positional():
    source = as_source(pd.DataFrame([[1, 2], [3, 4]]))
    assert source.items is None
    assert source.X.tolist() == [[1, 2], [3, 4]]


def test_a_lazy_frame_is_to_be_collected():
    lazy = pl.LazyFrame({"item": [1, 2], "x": [1, 2]})
    with (
        pytest.warns(pl.exceptions.PerformanceWarning),
        pytest.raises(InputError, match="but got LazyFrame: collect it first"),
    ):
        as_source(lazy)


def test_a_frame_with_a_column_named_load_is_a_frame():
    frame = pd.DataFrame({"load": [1.0, 2.0], "voltage": [3.0, 4.0]})
    assert as_source(frame).columns == ["load", "voltage"]
    model = at.Vanilla(epochs=1, validation_fraction=0).fit(frame, [0, 1])
    assert model.predict_proba(frame).shape == (2, 2)
