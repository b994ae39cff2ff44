import io

import numpy as np
import pytest

from annotrace.errors import InputError
from annotrace.labels.npy import load_arrays

MAGIC = b"\x93NUMPY"


def load(content):
    return load_arrays(io.BytesIO(content), "X.npy")[""]


def file_with(header, content=b"", version=(1, 0)):
    length = len(header).to_bytes(2 if version == (1, 0) else 4, "little")
    return MAGIC + bytes(version) + length + header.encode() + content


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", ">i2", "|b1", "<U3", "S2", "<f2", "<c8", "<M8[D]"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_arrays_are_those_that_numpy_wrote(dtype, order, version):
    array = np.asarray(np.arange(6).reshape(2, 3).astype(dtype), order=order)
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    loaded = load(file.getvalue())
    assert loaded.dtype == array.dtype
    assert loaded.flags.writeable
    np.testing.assert_array_equal(loaded, array)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,)])
def test_small_shapes(shape):
    file = io.BytesIO()
    np.save(file, np.ones(shape))
    assert load(file.getvalue()).shape == shape


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2L,), }",
        '{"shape": (2,), "fortran_order": False, "descr": "<i8"}',
    ],
)
def test_headers_that_other_programs_write(header):
    assert load(file_with(header, bytes(16))).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (file_with("{'descr': '<i8', 'shape': (2,)}", bytes(16)), "not that of a plain array"),
        (file_with("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (2,)}"), "plain"),
        (file_with("{'descr': '<i3', 'fortran_order': False, 'shape': (2,)}"), "neither numbers"),
        (file_with("{'descr': 'U0', 'fortran_order': False, 'shape': (9999,)}"), "neither numbers"),
        (file_with("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}"), "Python objects"),
        (
            file_with("{'descr': '<i8', 'fortran_order': False, 'shape': (3,)}", bytes(16)),
            "24 byte",
        ),
        (
            file_with("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", b"\xff" * 4),
            "Unico",
        ),
        (file_with("{'descr': 'S1', 'fortran_order': False, 'shape': (1,)}", b"\xff"), "Unicode"),
        (MAGIC, "not that of a plain array"),
        (MAGIC + b"\x01\x00\xff\xff" + b"(" * 70_000, "not that of a plain array"),
    ],
)
def test_other_files_get_one_line(content, message):
    with pytest.raises(InputError, match=message):
        load(content)


class Shrinking(io.BytesIO):
    """A file that another program cuts off while it is read."""

    def readinto(self, buffer):
        return 0


def test_a_file_that_ends_early_is_rejected():
    content = file_with("{'descr': '<i8', 'fortran_order': False, 'shape': (2,)}", bytes(16))
    with pytest.raises(InputError, match=r"X\.npy is damaged: it ends early"):
        load_arrays(Shrinking(content), "X.npy")


@pytest.mark.parametrize("name", [", ", "i4,i4", "a8", "(2,)i4", "int64", "<i99999999999"])
def test_only_plain_types_reach_numpy(name):
    header = f"{{'descr': '{name}', 'fortran_order': False, 'shape': (1,), }}".encode()
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)
    with pytest.raises(InputError, match="not that of a plain array"):
        load_arrays(io.BytesIO(content), "a.npy")
