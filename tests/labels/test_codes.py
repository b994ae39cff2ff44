import numpy as np
import pytest

from annotrace.errors import InputError
from annotrace.labels import codes
from annotrace.labels.codes import (
    check_codes,
    check_columns,
    check_positions,
    check_truth,
    count_codes,
    drop_repeats,
    item_blocks,
    item_offsets,
    labels_of,
    sort_by_item,
    sort_within_items,
    split_positions,
)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5], "Expected `item` to be integers in one dimension, but got float64"),
        ([[0]], "of shape (1, 1)"),
        ([0, 1, 3], "Expected `item` codes from 0 to 2, but entry 2 is 3."),
        ([0, -1], "but entry 1 is -1."),
    ],
)
def test_codes_are_integers_in_range(values, message):
    with pytest.raises(InputError) as caught:
        check_codes(values, 3, "item")
    assert message in str(caught.value)


def test_columns_have_one_length():
    with pytest.raises(InputError, match=r"equal length, but got \[2, 1\]"):
        check_columns([[0, 1], [0]], {"item": 2, "annotator": 1})


def test_truth_may_be_unknown():
    assert check_truth([1, -1], 2, 2).tolist() == [1, -1]
    with pytest.raises(InputError, match="one entry for each of 2 items"):
        check_truth([1], 2, 2)
    with pytest.raises(InputError, match="`truth` codes from -1 to 1, but entry 1 is 2"):
        check_truth([1, 2], 2, 2)


def test_labels_of_items_are_found_without_a_search():
    item = np.array([0, 0, 2, 2, 2, 3], dtype=np.int32)
    offsets = item_offsets(item, 5)
    assert offsets.tolist() == [0, 2, 2, 5, 6, 6]
    row, labels = labels_of(offsets, np.array([2, 1, 0]))
    assert row.tolist() == [0, 0, 0, 2, 2]
    assert labels.tolist() == [2, 3, 4, 0, 1]


def test_a_mask_or_distinct_positions():
    assert check_positions([True, False, True], 3).tolist() == [0, 2]
    assert check_positions([2, 0], 3).tolist() == [2, 0]
    with pytest.raises(InputError, match=r"a mask of shape \(3,\)"):
        check_positions([True], 3)
    with pytest.raises(InputError, match="at most once"):
        check_positions([1, 1], 3)


def test_split_divides_the_positions():
    rest, part = split_positions(10, 0.3, random_state=0)
    assert (len(rest), len(part)) == (7, 3)
    assert sorted([*rest, *part]) == list(range(10))
    assert split_positions(10, 0.3, random_state=0)[1].tolist() == part.tolist()
    with pytest.raises(InputError, match=r"in \[0, 1\), but got 1"):
        split_positions(10, 1)


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [("keep", [0, 1, 2, 3, 4]), ("first", [0, 1, 3]), ("last", [2, 3, 4])],
)
def test_repeats_keep_their_order(repeats, expected):
    item = np.array([1, 0, 1, 0, 0], dtype=np.int32)
    annotator = np.array([0, 1, 0, 0, 1], dtype=np.int32)
    kept = drop_repeats(item, annotator, repeats, 2)
    assert np.arange(len(item))[kept].tolist() == expected


def test_repeats_as_an_error_name_the_first():
    once = np.zeros(1, np.int32)
    assert drop_repeats(once, once, "error", 1).tolist() == [0]
    twice = np.zeros(2, np.int32)
    with pytest.raises(InputError, match=r"1 label repeats one, first at label 1\."):
        drop_repeats(twice, twice, "error", 1)


@pytest.mark.parametrize("large", [0, 2**30])
def test_the_labels_of_an_item_are_sorted(large):
    annotator = np.array([2, 0, 2, 1, 0], np.int32) + np.int32(large)
    label = np.array([1, 2, 0, 1, 0], np.int32)
    offsets = np.array([0, 3, 3, 5])
    found = sort_within_items(offsets, annotator, label, n_classes=3)
    assert (found[0] - large).tolist() == [0, 2, 2, 0, 1]
    assert found[1].tolist() == [2, 0, 1, 0, 1]
    assert [codes.dtype for codes in found] == [np.int32, np.int32]
    assert annotator[0] == large + 2
    none = np.empty(0, np.int32)
    assert [codes.tolist() for codes in sort_within_items(np.zeros(3, int), none, none, 2)] == [
        [],
        [],
    ]


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_blocks_of_items_cover_all_labels_in_order(size, monkeypatch):
    monkeypatch.setattr(codes, "BLOCK", size)
    item = np.array([0, 0, 2, 2, 2, 2, 5, 6, 6], dtype=np.int32)
    offsets = item_offsets(item, 9)
    assert offsets.tolist() == [0, 2, 2, 6, 6, 6, 7, 9, 9, 9]
    blocks = list(item_blocks(offsets))
    assert [k for items, _ in blocks for k in range(9)[items]] == list(range(9))
    for items, labels in blocks:
        assert np.all((item[labels] >= items.start) & (item[labels] < items.stop))
        assert labels.stop - labels.start <= size or items.stop - items.start == 1
    assert sum(labels.stop - labels.start for _, labels in blocks) == len(item)


def test_codes_are_counted_and_sorted_in_blocks(monkeypatch):
    monkeypatch.setattr(codes, "BLOCK", 10)
    item = np.random.default_rng(0).integers(0, 30, 500).astype(np.int32)
    assert count_codes(item, 40).tolist() == np.bincount(item, minlength=40).tolist()
    place = np.arange(500, dtype=np.int32)
    by_item, rows = sort_by_item([item, place])
    np.testing.assert_array_equal(rows, np.argsort(item, kind="stable"))
    np.testing.assert_array_equal(by_item, np.sort(item))
