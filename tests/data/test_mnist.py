import gzip
from pathlib import Path

import numpy as np
import pytest

from annotrace.data import load_mnist
from annotrace.errors import InputError

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data" / "mnist"


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def write_mnist(folder, n_train=5, n_test=3, pack=lambda content: content, ending=""):
    folder.mkdir(parents=True, exist_ok=True)
    for part, n in (("train", n_train), ("t10k", n_test)):
        images = np.arange(n * 28 * 28).reshape(n, 28, 28)
        for kind, array in (("images-idx3", images), ("labels-idx1", np.arange(n))):
            (folder / f"{part}-{kind}-ubyte{ending}").write_bytes(pack(idx(array)))


@pytest.mark.parametrize("below", ["", "MNIST/raw"])
@pytest.mark.parametrize(("pack", "ending"), [(bytes, ""), (gzip.compress, ".gz")])
def test_idx_files_gz_or_not_in_either_place(tmp_path, below, pack, ending):
    write_mnist(tmp_path / below, pack=pack, ending=ending)
    train, test = load_mnist(tmp_path)
    assert train.X.shape == (5, 28, 28)
    assert train.X.dtype == np.uint8
    assert train.X[0, 0, :3].tolist() == [0, 1, 2]
    assert train.y.tolist() == [0, 1, 2, 3, 4]
    assert test.X.shape == (3, 28, 28)
    assert train.classes.tolist() == list(range(10))


def test_absent_files_are_named_with_where_to_get_them(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(
        InputError, match=r"lacks t10k-labels-idx1-ubyte .* download them from https://"
    ):
        load_mnist(tmp_path)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda content: content[:-1], "3935 bytes, but the header specifies 3936"),
        (lambda content: b"\x00\x00\x08\x01" + content[4:], "magic number 2049, expected 2051"),
        (lambda content: content[:6], "truncated or damaged"),
        (lambda content: idx(np.zeros((4, 28, 28))), "has 4 images, but"),
    ],
)
def test_damaged_images(tmp_path, spoil, message):
    write_mnist(tmp_path)
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(InputError) as caught:
        load_mnist(tmp_path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_label_that_is_no_digit(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.array([0, 1, 77, 3, 4])))
    with pytest.raises(InputError, match="label 77 at index 2; expected 0 to 9"):
        load_mnist(tmp_path)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real files are not here")
def test_the_real_files():
    train, test = load_mnist(SHARED)
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(train.y).tolist() == counts
    assert test.X.shape == (10000, 28, 28)
