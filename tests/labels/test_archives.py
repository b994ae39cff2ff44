import io
import zipfile

import pytest

from annotrace.errors import InputError, LimitError
from annotrace.labels.archives import open_archive
from annotrace.limits import LABEL_LIMITS, Limits


def packed(method=zipfile.ZIP_DEFLATED, **members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file


def read_all(file, limits=LABEL_LIMITS):
    with open_archive(file, "a.zip", limits) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_members_are_read(method):
    assert read_all(packed(method, a=b"1", b=b"22")) == {"a": b"1", "b": b"22"}


def test_members_count_together():
    with pytest.raises(LimitError, match=r"a\.zip: 3,000 bytes .*--max-size"):
        read_all(packed(a=bytes(1000), b=bytes(2000)), Limits(max_size=2500))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("place", [30, 33, -20])
def test_damage_gets_one_line(method, place):
    content = bytearray(packed(method, a=b"some text" * 9).getvalue())
    content[place] ^= 0xFF
    with pytest.raises(InputError, match=r"a\.zip is a damaged zip file"):
        read_all(io.BytesIO(bytes(content)))
