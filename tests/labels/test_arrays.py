import io

import numpy as np
import pytest

from annotrace.errors import InputError


def rows(table):
    return sorted(row[:3] for row in table.to_frame().rows())


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_npy_is_positional(read):
    buffer = io.BytesIO()
    np.save(buffer, np.array([[2, -1], [10, 2]], dtype=np.int8))
    table = read(buffer.getvalue())
    assert table.positional
    assert table.classes.tolist() == ["2", "10"]
    assert table.to_wide().tolist() == [[0, -1], [1, 0]]


def test_minus_one_is_missing_in_arrays_of_whole_floats(read):
    table = read(npz(labels=np.array([[0.0, -1.0], [2.0, 0.0]])), "labels.npz")
    assert rows(table) == [(0, "0", "0"), (1, "0", "2"), (1, "1", "0")]


def test_npz_with_an_array_of_answers_and_names(read):
    table = read(
        npz(
            A=np.array([[0, -1], [1, 0]], dtype=np.int8),
            items=np.array(["a", "b"]),
            annotators=np.array([5, 6]),
            classes=np.array(["dog", "cat", "cow"]),
            truth=np.array([2, -1]),
            X=np.zeros((2, 3)),
        )
    )
    assert table.classes.tolist() == ["dog", "cat", "cow"]
    assert rows(table) == [("a", "5", "dog"), ("b", "5", "cat"), ("b", "6", "dog")]
    assert table.truth.tolist() == [2, -1]


def test_npz_with_answers_whose_names_are_named(read):
    answers = np.array([[0, 1], [1, 1], [0, 0]])
    content = npz(labels=answers, ids=np.array(["a", "b", "c"]), who=np.array(["kim", "lee"]))
    table = read(content, "labels.npz", item="ids", annotator="who")
    assert table.items.tolist() == ["a", "b", "c"]
    assert table.annotators.tolist() == ["kim", "lee"]
    assert not table.positional
    with pytest.raises(InputError, match="Expected 3 names in the items of"):
        read(content, "labels.npz", item="who")


def test_npz_with_three_columns(read):
    table = read(npz(item=np.array([3, 4]), worker=np.array(["k", "l"]), label=np.array([0, 1])))
    assert rows(table) == [("3", "k", "0"), ("4", "l", "1")]


def test_npz_by_the_only_integers_of_two_dimensions_or_by_name(read):
    one, two = np.array([[0, 1]]), np.array([[1, 0, 1]])
    assert read(npz(R=one, X=np.zeros((1, 5)))).n_annotators == 2
    assert read(npz(R=one, S=two), label="S").n_annotators == 3


def test_an_empty_cell_is_named_by_its_file_and_array(read):
    columns = {"item": ["a", "b"], "worker": ["k", "k"], "label": ["x", ""]}
    with pytest.raises(InputError, match=r"labels\.npz, row index 1, column 'label' is empty"):
        read(npz(**columns), "labels.npz")
