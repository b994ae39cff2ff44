"""Texts in every form that users have them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from annotrace.data import TextSource
from annotrace.data.texts import is_texts, texts_from_frame
from annotrace.errors import InputError

TEXTS = ["a fine film", "dull"]


@pytest.mark.parametrize(
    "texts",
    [
        TEXTS,
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pd.Series(TEXTS, index=[7, 3]),
        pl.Series(TEXTS),
    ],
)
def test_one_text_per_item(texts):
    assert is_texts(texts)
    source = TextSource(texts)
    assert (source.shape, source.texts[:, 0].tolist()) == ((1,), TEXTS)


@pytest.mark.parametrize("pairs", [[("a", "b"), ("c", "d")], np.array([["a", "b"], ["c", "d"]])])
def test_pairs(pairs):
    assert is_texts(pairs)
    assert TextSource(pairs).texts.tolist() == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_have_names_and_one_or_two_columns(frame):
    source = texts_from_frame(frame({"item": ["x", "y"], "text": TEXTS}))
    assert (source.items.tolist(), source.texts[:, 0].tolist()) == (["x", "y"], TEXTS)
    assert texts_from_frame(frame({"one": TEXTS, "two": TEXTS})).shape == (2,)
    assert not is_texts(frame({"a": [1.0], "b": [2.0]}))


@pytest.mark.parametrize("X", [[[1.0, 2.0]], np.zeros((2, 3)), "text", [], [["a", "b", "c"]], [1]])
def test_what_is_not_texts(X):
    assert not is_texts(X)


@pytest.mark.parametrize("missing", [None, float("nan"), 3])
def test_a_missing_text_is_named_in_one_line(missing):
    with pytest.raises(InputError, match=r"row index 1 \(item 'y'\): expected text, but got") as e:
        TextSource(["a", missing], ["x", "y"])
    assert "\n" not in str(e.value)


def test_items_must_have_the_same_number_of_texts():
    with pytest.raises(InputError, match=r"one text per item, or two, but got \[1, 2\] of them"):
        TextSource(["a", ("b", "c")])
    with pytest.raises(InputError):
        TextSource(["a", "b"], ["x"])
