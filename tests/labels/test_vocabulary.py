import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotrace.errors import InputError
from annotrace.labels.vocabulary import (
    TEXT,
    as_names,
    as_text,
    check_names,
    encode,
    encode_values,
    encode_with,
    look_up,
    plain_names,
    sort_names,
    union_names,
)


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        (["b", "a"], ["b", "a"], "T"),
        ([3, 1], [3, 1], "i"),
        (np.array([3, 1], np.uint8), [3, 1], "u"),
        ([3.0, 1.0], [3, 1], "i"),
        ([3.5, 1.0], ["3.5", "1.0"], "T"),
        (["a", 1], ["a", "1"], "T"),
        ([2**63, 1], ["9223372036854775808", "1"], "T"),
        ([2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)], "i"),
        ([1e20, 2e20], ["1e+20", "2e+20"], "T"),
        (np.array([2, 1], np.float16), [2, 1], "i"),
        ([True, False], ["True", "False"], "T"),
        (np.array([b"x", b"y"]), ["x", "y"], "T"),
        (np.array([2, 1], dtype=object), [2, 1], "i"),
        (range(2), [0, 1], "i"),
    ],
)
def test_names_are_integers_or_text(values, expected, kind):
    names = as_names(values)
    assert names.tolist() == expected
    assert names.dtype.kind == kind


def test_what_cannot_be_a_name():
    with pytest.raises(InputError, match="one dimension"):
        as_names(np.zeros((2, 2)))
    with pytest.raises(InputError, match="text or integers, but got complex"):
        as_names(np.array([1j]))


@pytest.mark.parametrize("values", [["b", "a", "b", "c"], [7, 3, 7, 5]])
def test_codes_count_in_order_of_appearance(values):
    codes, vocabulary = encode(as_names(values))
    assert codes.dtype == np.int32
    assert codes.tolist() == [0, 1, 0, 2]
    assert vocabulary.tolist() == [values[0], values[1], values[3]]


@given(st.lists(st.text(max_size=3)))
def test_codes_stand_for_their_names(values):
    codes, vocabulary = encode(as_names(values))
    assert vocabulary[codes].tolist() == values
    assert len(set(vocabulary.tolist())) == len(vocabulary)


@pytest.mark.parametrize(
    ("names", "vocabulary"),
    [
        (["2", "x", "10"], ["10", "2"]),
        ([2, 7, 10], [10, 2]),
        ([2, 7, 10], ["10", "2"]),
        (["2", "x", "10"], [10, 2]),
    ],
)
def test_numbers_and_text_are_looked_up_alike(names, vocabulary):
    assert look_up(as_names(names), as_names(vocabulary)).tolist() == [1, -1, 0]


def test_nothing_is_found_in_an_empty_vocabulary():
    assert look_up(np.array([1, 2]), np.empty(0, np.int64)).tolist() == [-1, -1]


def test_unknown_names_are_listed():
    with pytest.raises(InputError, match="Expected labels to be among 'a', but got 1 other: 'c'"):
        encode_with(as_names(["a", "c"]), as_names(["a"]), "labels")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["10", "2", "2"], ["2", "10"]),
        (["10", "2", "x"], ["10", "2", "x"]),
        (["1e1", "-2.5", "3"], ["-2.5", "3", "1e1"]),
        (["nan", "2", "10"], ["10", "2", "nan"]),
        ([10, 2, 2], [2, 10]),
    ],
)
def test_numbers_come_in_numeric_order(names, expected):
    assert sort_names(as_names(names)).tolist() == expected


def test_names_must_be_as_many_as_things_and_differ():
    assert check_names([2, 1], 2, "x").tolist() == [2, 1]
    with pytest.raises(InputError, match="Expected 3 names in x, but got 2"):
        check_names([2, 1], 3, "x")
    with pytest.raises(InputError, match="but got 1 repeated name: 'a'"):
        check_names(["a", "a", "b"], 3, "x")


def test_integers_as_text():
    assert as_text(np.array([7, 10])).tolist() == ["7", "10"]
    assert as_text(np.array(["a"], dtype=TEXT)).tolist() == ["a"]


def test_plain_names_are_accepted_by_numpy_and_scikit_learn():
    text = plain_names(as_names(["cat", "a longer name"]))
    assert text.dtype.kind == "U"
    assert text.astype(str).tolist() == ["cat", "a longer name"]
    assert plain_names(np.empty(0, TEXT)).dtype.kind == "U"
    numbers = np.array([3, 1])
    assert plain_names(numbers) is numbers


def test_new_names_are_appended_once():
    assert union_names(as_names(["a", "b"]), as_names(["c", "b", "c"])).tolist() == ["a", "b", "c"]
    assert union_names(as_names([1, 2]), as_names(["x"])).tolist() == ["1", "2", "x"]


def test_no_values_have_no_codes():
    assert encode_values([]).codes.tolist() == []


@pytest.mark.parametrize("dtype", ["U2", "S2", TEXT, object])
def test_empty_text_has_no_code(dtype):
    assert encode_values(np.array(["b", "", "a"], dtype=dtype)).codes.tolist() == [0, -1, 1]
