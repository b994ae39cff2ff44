import hashlib
import os

import pytest

from annotrace.data.image_files import ImageFile
from annotrace.errors import InputError


@pytest.fixture
def part(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"0123456789")
    return ImageFile(str(tmp_path / "a.tar"), None, "x.png", 3, 5)


def test_a_part_of_a_file_reads_like_a_file(part):
    with part.open() as file:
        assert file.read() == b"34567"
        assert file.seek(1) == 1
        assert file.read(2) == b"45"
        assert file.seek(-1, os.SEEK_END) == 4
        assert file.read(9) == b"7"
        assert file.read() == b""
        file.seek(2)
        assert file.seek(1, os.SEEK_CUR) == 3
        with pytest.raises(ValueError):
            file.seek(-1)
    assert (part.size(), part.digest()) == (5, hashlib.sha256(b"34567").digest())


def test_a_whole_file(tmp_path):
    (tmp_path / "x.png").write_bytes(b"abc")
    file = ImageFile(str(tmp_path / "x.png"))
    assert (file.size(), file.digest()) == (3, hashlib.sha256(b"abc").digest())
    (tmp_path / "x.png").unlink()
    assert file.size() == 0


def test_a_file_that_was_cut_is_an_error(part, tmp_path):
    (tmp_path / "a.tar").write_bytes(b"0123")
    with pytest.raises(InputError, match=r"a\.tar, member 'x\.png': the file was cut"):
        part.open()


def test_messages_call_a_file_by_its_name(part):
    assert str(part).endswith("a.tar, member 'x.png'")
    assert str(ImageFile("/tmp/1", name="Item 1")) == "Item 1"
