import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotrace.errors import InputError
from annotrace.labels import LabelTable


@pytest.fixture
def table():
    """Four items, the last without a label; three annotators; one pair twice."""
    return LabelTable.from_long(
        {
            "item": ["b", "a", "b", "c", "b", "d"],
            "annotator": ["kim", "lee", "lee", "max", "kim", "kim"],
            "label": ["y", "x", "x", "y", "x", "?"],
            "truth": ["x", "y", "x", "", "x", ""],
        },
        skip=["?"],
    )


def test_labels_of_an_item_stand_together_in_order(table):
    assert table.items.tolist() == ["b", "a", "c", "d"]
    assert table.offsets.tolist() == [0, 3, 4, 5, 5]
    assert table.item.tolist() == [0, 0, 0, 1, 2]
    assert table.annotators[table.annotator].tolist() == ["kim", "lee", "kim", "lee", "max"]
    assert table.classes[table.label].tolist() == ["y", "x", "x", "x", "y"]
    assert table.truth.tolist() == [0, 1, -1, -1]
    assert {column.dtype for column in (table.item, table.annotator, table.label)} == {
        np.dtype(np.int32)
    }


def test_counts(table):
    assert repr(table) == "LabelTable(4 items, 3 annotators, 2 classes, 5 labels)"
    assert len(table) == 5
    assert table.labels_per_item().tolist() == [3, 1, 1, 0]
    assert table.labels_per_annotator().tolist() == [2, 2, 1]
    assert table.labels_per_class().tolist() == [3, 2]
    assert table.votes().tolist() == [[2, 1], [1, 0], [0, 1], [0, 0]]


def test_a_table_cannot_be_changed(table):
    with pytest.raises(AttributeError, match="cannot assign"):
        table.label = np.zeros(5)
    with pytest.raises(ValueError, match="read-only"):
        table.label[0] = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(table)


def test_names_are_the_tables_own():
    names = {role: np.array([7, 8]) for role in ("items", "annotators", "classes")}
    made = LabelTable([0, 1], [0, 1], [0, 1], **names)
    wide = LabelTable.from_wide([[0, 1], [1, 0]], items=names["items"])
    for own in names.values():
        own[0] = 99
    assert made.items.tolist() == made.annotators.tolist() == made.classes.tolist() == [7, 8]
    assert wide.items.tolist() == [7, 8]


@pytest.mark.parametrize(
    "twin", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_copies_are_equal_and_as_fixed(table, twin):
    other = twin(table)
    assert other == table
    assert not other.label.flags.writeable
    assert table != table.select_items([0, 1])
    assert table != "table"


def test_items_added_out_of_order_have_names():
    table = LabelTable.from_codes([0, 1], [0, 0], [0, 1])
    assert table.with_items([2, 3]).positional
    added = table.with_items([100])
    assert added.items.tolist() == [0, 1, 100]
    assert not added.positional


def test_memory_of_five_million_labels():
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, n, 500_000) for n in (100_000, 1000, 10)]
    table = LabelTable.from_codes(*columns)
    assert table.nbytes * 10 < 100e6


def test_items_in_the_order_given(table):
    part = table.select_items([2, 0])
    assert part.items.tolist() == ["c", "b"]
    assert part.truth.tolist() == [-1, 0]
    assert part.annotators.tolist() == table.annotators.tolist()
    assert part.item.tolist() == [0, 1, 1, 1]
    assert part.classes[part.label].tolist() == ["y", "y", "x", "x"]
    assert table.select_items(np.array([True, False, True, False])).items.tolist() == ["b", "c"]


def test_selected_positions_are_renumbered():
    table = LabelTable.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 0])
    assert table.select_items([2, 1]).items.tolist() == [0, 1]


def test_annotators_in_the_order_given(table):
    part = table.select_annotators([2, 0])
    assert part.annotators.tolist() == ["max", "kim"]
    assert part.n_items == table.n_items
    assert part.labels_per_annotator().tolist() == [1, 2]
    assert part.labels_per_item().tolist() == [2, 0, 1, 0]


@given(st.floats(0, 0.9), st.integers(0, 100))
def test_a_split_divides_items_and_labels(fraction, seed):
    table = LabelTable.from_codes(np.repeat(np.arange(20), 2), np.arange(40) % 3, np.arange(40) % 2)
    rest, part = table.split(fraction, random_state=seed)
    assert part.n_items == round(20 * fraction)
    assert rest.n_items + part.n_items == 20
    assert rest.n_labels + part.n_labels == 40


def test_items_match_rows_by_name(table):
    matched = table.match_items(["d", "c", "b", "a"])
    assert matched.items.tolist() == ["d", "c", "b", "a"]
    assert matched.labels_per_item().tolist() == [0, 1, 3, 1]


def test_names_of_numbers_match_text():
    table = LabelTable.from_long({"item": ["7", "8"], "worker": ["k", "k"], "label": [0, 1]})
    assert table.match_items(np.array([8, 7])).items.tolist() == ["8", "7"]


def test_items_without_labels_can_be_added(table):
    more = table.with_items(["z", "a", "z"])
    assert more.items.tolist() == ["b", "a", "c", "d", "z"]
    assert more.truth.tolist() == [0, 1, -1, -1, -1]
    assert more.labels_per_item().tolist() == [3, 1, 1, 0, 0]
    assert table.with_items([7]).items.tolist()[-1] == "7"


def test_truth_by_name(table):
    assert table.with_truth(["y", "y", "x", "x"]).truth.tolist() == [1, 1, 0, 0]
    with pytest.raises(
        InputError, match="Expected true classes to be among 'x', 'y', but got 1 other: 'q'"
    ):
        table.with_truth(["y", "y", "x", "q"])


def test_wide_has_one_label_per_cell(table):
    with pytest.raises(InputError, match=r"1 pair has several, the first \('b', 'kim'\)"):
        table.to_wide()
    once = table.select_items([1, 2])
    assert once.to_wide().tolist() == [[-1, 0, -1], [-1, -1, 1]]


def test_codes_are_positional():
    table = LabelTable.from_codes([1, 0], [0, 0], [2, 0], n_items=4, truth=[2, -1, 0, 1])
    assert table.positional
    assert (table.n_items, table.n_annotators, table.n_classes) == (4, 1, 3)
    assert table.item.tolist() == [0, 1]
    assert table.label.tolist() == [0, 2]
    with pytest.raises(InputError, match="Expected `label` codes from 0 to 1, but entry 0 is 2"):
        LabelTable.from_codes([0], [0], [2], n_classes=2)


@pytest.mark.parametrize("label", [["a", "b"], [[0, 1], [1]], [0.5, 1]])
def test_codes_that_are_no_integers_are_rejected(label):
    with pytest.raises(InputError, match="Expected `label` to be integers in one dimension"):
        LabelTable.from_codes([0, 1], [0, 0], label)


def test_importing_the_table_and_gold_does_not_import_the_readers():
    code = (
        "import sys, annotrace.labels.gold\n"
        "print(*(name for name in sys.modules if name.startswith('annotrace.labels.')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = {name.rpartition(".")[2] for name in run.stdout.split()}
    assert imported == {
        *("codes", "columns", "counting", "frames", "gold", "matching", "table", "vocabulary"),
        *("mapped_codes", "usual_names", "writing"),
    }
