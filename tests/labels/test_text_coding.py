import numpy as np
import polars as pl
import pytest

from annotrace.labels.text_coding import (
    PART,
    SHORT,
    as_text_array,
    encode_series,
    encode_texts,
    first_rows,
)


@pytest.mark.parametrize("n_repeats", [1, SHORT])
@pytest.mark.parametrize("values", [["b", None, "a", ""], [2.5, None, 1.0, None]])
def test_short_and_long_series_are_encoded_alike(values, n_repeats):
    coded = encode_series(pl.Series(values * n_repeats))
    assert coded.codes.tolist() == [0, -1, 1, -1] * n_repeats
    assert coded.names.tolist() == [str(values[0]), str(values[2])]


def by_dictionary(values):
    """The codes and names of values, one after the other."""
    numbers = {}
    codes = [numbers.setdefault(value, len(numbers)) if value else -1 for value in values]
    return codes, list(numbers)


@pytest.mark.parametrize("n_parts", [1, 2, 7])
def test_the_parts_of_a_column_are_encoded_as_the_whole(n_parts):
    rng = np.random.default_rng(n_parts)
    values = [f"name {k}" if k else None for k in rng.integers(0, 300, 4000).tolist()]
    values[5:9] = ["", "\u00e9", "a name of more than fifteen bytes", ""]
    parts = [pl.Series(part.tolist(), dtype=pl.String) for part in np.array_split(values, n_parts)]
    coded = encode_texts(iter(parts))
    assert (coded.codes.tolist(), coded.names.tolist()) == by_dictionary(values)
    assert coded.codes.dtype == np.int32


def test_names_that_do_not_appear_in_the_order_of_their_categories_are_sorted():
    """Whatever polars numbers first, the first row has code 0, also across blocks of rows."""
    shuffled = np.random.default_rng(0).permutation(PART + 10)
    series = pl.Series(shuffled).cast(pl.String)
    coded = encode_texts([series.slice(PART), series.slice(0, PART), series])
    assert coded.codes[: PART + 10].tolist() == list(range(PART + 10))
    assert coded.names.tolist()[:3] == [str(k) for k in shuffled[PART : PART + 3]]
    np.testing.assert_array_equal(as_text_array(series), series.to_list())


def test_no_parts_have_no_names():
    assert len(encode_texts([]).codes) == len(encode_texts([]).names) == 0


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("start", [0, 40])
def test_the_first_row_of_each_new_code(start, in_order):
    """Whether or not larger codes appear later, with empty cells, across blocks of rows."""
    codes = np.repeat(np.arange(PART // 50 + 9, dtype=np.int32), 60)
    codes[::7] = -1
    if not in_order:
        codes = np.random.default_rng(0).permutation(codes)
    listed = codes.tolist()
    wanted = {code: row for row, code in reversed(list(enumerate(listed))) if code >= start}
    assert first_rows(codes, start).tolist() == [wanted[code] for code in sorted(wanted)]


@pytest.mark.parametrize("repeats_first", [True, False])
def test_a_column_whose_start_is_unlike_the_rest(repeats_first):
    """Only the start of a column is searched for equal texts in a row."""
    runs, distinct = ["a", "a", "a", "b"] * PART, [str(k) for k in range(SHORT)]
    values = runs + distinct if repeats_first else distinct * (PART // SHORT + 1) + runs
    coded = encode_texts([pl.Series(values)])
    assert (coded.codes.tolist(), coded.names.tolist()) == by_dictionary(values)
