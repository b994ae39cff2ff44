import numpy as np
import pytest
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.multiclass import type_of_target

import annotrace as at
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.matching import match_rows, merge_tables
from annotrace.labels.vocabulary import as_names


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (np.array([1, 2], np.int16), np.array([65537, 3])),
        (np.array([0, 1], np.int32), np.array([5_000_000_000, 1])),
        (np.array([7, 8], np.uint8), np.array([300, 7])),
    ],
)
def test_integers_beyond_int64_are_not_wrapped(before, after):
    old, new = (
        at.LabelTable([0, 1], [0, 0], [0, 1], items=names, annotators=names[:1], classes=names)
        for names in (before, after)
    )
    merged = merge_tables(old, new)
    expected = [*before.tolist(), *(name for name in after.tolist() if name not in before)]
    assert merged.items.tolist() == expected
    assert merged.classes.tolist() == expected
    assert {row[0] for row in merged.to_frame().rows()} == set(expected)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], "2 items of the labels have no features ('c', 'd'). Names must match"),
        (["a", "b", "c", "d", "e"], "1 row of features has no item in the labels ('e')"),
        (["a", "b", "c", "e"], "1 item of the labels has no features ('d') and 1 row of"),
        (["a", "b", "c", "d", "a"], "1 item has more than one row of features: 'a'"),
    ],
)
def test_unmatched_names_are_counted_and_named(names, message):
    with pytest.raises(InputError) as caught:
        match_rows(as_names(["b", "a", "c", "d"]), as_names(names))
    assert message in str(caught.value)


def test_the_file_of_the_labels_is_named(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("item,worker,label\na,kim,x\nb,kim,y\n")
    table = at.LabelTable.read(path)
    assert table.source == str(path)
    with pytest.raises(InputError, match=r"^1 item of .*labels\.csv has no features \('b'\)\."):
        table.select_items([0, 1]).match_items(["a"])


def test_rows_are_matched_in_their_order():
    assert match_rows(as_names(["7", "8"]), as_names([8, 7])).tolist() == [1, 0]


def test_merged_tables_keep_the_codes_of_the_first():
    rows = {"item": ["a", "b"], "worker": ["kim", "lee"], "label": ["x", "y"], "truth": ["x", ""]}
    more = {"item": ["b", "c"], "worker": ["max", "kim"], "label": ["z", "y"], "truth": ["y", "z"]}
    merged = merge_tables(at.LabelTable.from_long(rows), at.LabelTable.from_long(more))
    assert merged.items.tolist() == ["a", "b", "c"]
    assert merged.annotators.tolist() == ["kim", "lee", "max"]
    assert merged.classes[merged.truth].tolist() == ["x", "y", "z"]
    assert sorted(row[:3] for row in merged.to_frame().rows()) == [
        ("a", "kim", "x"),
        ("b", "lee", "y"),
        ("b", "max", "z"),
        ("c", "kim", "y"),
    ]


def test_numbers_and_text_are_not_merged():
    old = at.LabelTable.from_codes([0, 1], [0, 0], [0, 1])
    new = at.LabelTable.from_long({"item": ["x"] * 2, "worker": [0, 0], "label": [0, 1]})
    with pytest.raises(InputError, match="new items to have the same type as before"):
        merge_tables(old, new)


def test_known_names_keep_their_type_when_they_are_repeated_as_text():
    old = LabelTable.from_long({"item": [1, 2], "worker": ["kim", "lee"], "label": [0, 1]})
    new = LabelTable.from_long({"item": ["2", "1"], "worker": ["lee", "kim"], "label": [0, 1]})
    merged = merge_tables(old, new)
    assert merged.items.tolist() == [1, 2]
    assert merged.item.tolist() == [0, 0, 1, 1]


@pytest.fixture
def by_position():
    return LabelTable.from_codes(
        [0, 0, 1, 2], [0, 1, 1, 0], [0, 1, 1, 2], n_items=4, n_annotators=3, truth=[0, 1, 2, -1]
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([2, 0], [2, 0]),
        (np.array([True, False, True, False]), [0, 2]),
        (slice(1, None), [1, 2, 3]),
        (slice(0), np.array([], dtype=int)),
        (-1, [3]),
        ((np.array([2, 1]), ...), [2, 1]),
    ],
    ids=["positions", "mask", "slice", "none", "one", "with an ellipsis"],
)
def test_a_table_is_indexed_by_rows(by_position, rows, expected):
    part = by_position[rows]
    assert part == by_position.select_items(expected)
    assert part.shape == (len(expected), 3)
    assert part.classes.tolist() == [0, 1, 2]


def test_a_row_beyond_the_last_is_an_error(by_position):
    with pytest.raises(IndexError, match="out of bounds"):
        by_position[[4]]


def test_scikit_learn_splits_rows_and_table_alike(by_position):
    rows, same = indexable(np.arange(4), by_position)
    assert same is by_position
    assert _safe_indexing(by_position, rows[:2]) == by_position.select_items([0, 1])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[3, 4\]"):
        indexable(np.arange(3), by_position)
    assert type_of_target(by_position) == "unknown"


def test_matched_items_may_give_up_their_names(by_position):
    named = by_position.replace(items=as_names(["a", "b", "c", "d"]), positional=False)
    matched = named.match_items(["d", "c", "b", "a"], positional=True)
    assert matched == by_position.select_items([3, 2, 1, 0])
    assert matched.positional
    assert not named.match_items(["d", "c", "b", "a"]).positional
