import os
import threading

import numpy as np
import polars as pl
import pytest

from annotrace.data import read_features
from annotrace.errors import InputError

X = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)


def test_npy_is_positional(tmp_path):
    np.save(tmp_path / "X.npy", X.astype(np.uint8))
    source = read_features(tmp_path / "X.npy")
    assert source.items is None
    assert source.X.dtype == np.uint8
    np.testing.assert_array_equal(source.X, X)


def test_npz_names_its_items(tmp_path):
    np.savez(tmp_path / "X.npz", X=X, items=np.array(["a", "b"]))
    source = read_features(tmp_path / "X.npz")
    assert source.items.tolist() == ["a", "b"]
    assert source.X.dtype == np.float32
    np.testing.assert_array_equal(source.X, X)


def test_parquet_has_an_item_column(tmp_path):
    path = tmp_path / "X.parquet"
    pl.DataFrame({"image_id": [7, 8], "x": X[:, 0], "rest": X}).write_parquet(path)
    source = read_features(path)
    assert source.items.tolist() == [7, 8]
    assert source.X.dtype == np.float32
    np.testing.assert_array_equal(source.X, X[:, [0, 0, 1]])


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_features_come_through_a_pipe(tmp_path, kind):
    write = {"npz": in_npz(X=X, items=["a", "b"]), "parquet": in_parquet(item=["a", "b"], x=X)}
    write[kind](tmp_path / "X")
    os.mkfifo(tmp_path / "pipe")
    content = (tmp_path / "X").read_bytes()
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[content], daemon=True)
    writer.start()
    source = read_features(tmp_path / "pipe")
    writer.join()
    assert source.items.tolist() == ["a", "b"]
    np.testing.assert_array_equal(source.X, X)


@pytest.mark.parametrize("item", ["photo", "none"])
def test_the_item_column_is_the_one_named_where_it_is_there(tmp_path, item):
    path = tmp_path / "X.parquet"
    pl.DataFrame({"item" if item == "none" else "photo": ["a", "b"], "x": X}).write_parquet(path)
    source = read_features(path, item=item)
    assert source.items.tolist() == ["a", "b"]
    np.testing.assert_array_equal(source.X, X)


def in_npz(**arrays):
    def write(path):
        with path.open("wb") as file:
            np.savez(file, **arrays)

    return write


def pickled(path):
    with path.open("wb") as file:
        np.save(file, np.array([[None]]))


def in_parquet(**columns):
    return lambda path: pl.DataFrame(columns).write_parquet(path)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.write_text("1,2\n"), "is not an npy, npz or parquet file"),
        (lambda path: path.write_bytes(b"PAR1 not really PAR1"), "damaged parquet"),
        (lambda path: path.write_bytes(b"PK\x03\x04 not really"), "is a damaged zip file"),
        (pickled, "pickle can run code"),
        (in_npz(features=X), "has no array `X`; it has features"),
        (in_npz(X=X, items=np.array(["a"])), "Expected 2 names in items of"),
        (in_npz(X=X, items=np.array(["a", "a"])), "but got 1 repeated name: 'a'"),
        (
            in_npz(X=np.array([[0, 1], [np.inf, 1]]), items=np.array(["a", "b"])),
            "row index 1 (item 'b'), column 0 is inf",
        ),
        (in_parquet(item=["a"], hue=["red"]), "column 'hue' has type String, but features must be"),
        (in_parquet(item=["a"], x=[float("nan")], y=[1.0]), "column 'x' is nan"),
    ],
)
def test_a_bad_file_gets_one_line_that_names_it(tmp_path, write, message):
    path = tmp_path / "features"
    write(path)
    with pytest.raises(InputError) as caught:
        read_features(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_features_without_rows_are_rejected(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((0, 3)))
    with pytest.raises(InputError, match=r"X\.npy has no rows"):
        read_features(tmp_path / "X.npy")
