import numpy as np
import pytest

from annotrace.data import load_cifar10
from annotrace.errors import InputError

NAMES = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]


@pytest.fixture
def batches(tmp_path):
    """Six batches of two images: label, then red, green and blue planes."""
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for k, name in enumerate(NAMES):
        planes = np.zeros((2, 3, 32, 32), np.uint8)
        planes[:, 0, 1, 2] = 10 + k
        planes[:, 2, 31, 0] = 7
        records = np.concatenate([[[k], [9]], planes.reshape(2, -1)], axis=1)
        records.astype(np.uint8).tofile(folder / name)
    return folder


def test_records_become_images_with_channels_last(batches):
    train, test = load_cifar10(batches)
    assert train.X.shape == (10, 32, 32, 3)
    assert train.X.dtype == np.uint8
    assert train.X[2, 1, 2].tolist() == [11, 0, 0]
    assert train.X[2, 31, 0].tolist() == [0, 0, 7]
    assert train.y.tolist() == [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]
    assert test.y.tolist() == [5, 9]
    assert test.classes[5] == "dog"


def test_the_folder_above_is_accepted(batches):
    np.testing.assert_array_equal(load_cifar10(batches.parent)[0].X, load_cifar10(batches)[0].X)


def test_absent_files_are_named_with_where_to_get_them(batches):
    (batches / "data_batch_3.bin").unlink()
    with pytest.raises(
        InputError, match=r"lacks data_batch_3\.bin\. Download the binary version .*http"
    ):
        load_cifar10(batches)


def test_a_file_cut_short(batches):
    path = batches / "test_batch.bin"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(InputError, match=r"test_batch\.bin: 6141 bytes are not a whole number"):
        load_cifar10(batches)


def test_a_label_that_is_no_class(batches):
    path = batches / "data_batch_2.bin"
    path.write_bytes(b"\x0a" + path.read_bytes()[1:])
    with pytest.raises(InputError, match=r"data_batch_2\.bin: record 0 has label 10"):
        load_cifar10(batches)
