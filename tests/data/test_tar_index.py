import io
import tarfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotrace.data.tar_index import read_members
from annotrace.errors import InputError

CONTENT = {"a.png": b"first", "sub/" + 60 * "long/" + "b.png": b"x" * 512, "ünï.png": b""}


def tar(format=tarfile.USTAR_FORMAT, content=CONTENT, extra=()):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=format) as archive:
        for member in extra:
            archive.addfile(member)
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def members(content):
    return list(read_members(io.BytesIO(content), "x.tar"))


SHORT = {"a.png": b"first", "sub/" + 20 * "long/" + "b.png": b"x" * 512}


@pytest.mark.parametrize(
    ("format", "content"),
    [
        (tarfile.USTAR_FORMAT, SHORT),
        (tarfile.GNU_FORMAT, CONTENT),
        (tarfile.PAX_FORMAT, CONTENT),
    ],
)
def test_members_are_those_of_tarfile(format, content):
    packed = tar(format, content)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        expected = [(member.name, member.offset_data, member.size) for member in archive]
    assert members(packed) == expected
    found = {name: packed[at : at + size] for name, at, size in members(packed)}
    assert found == content


def special(name, type, **fields):
    info = tarfile.TarInfo(name)
    info.type = type
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def test_only_regular_members_are_listed():
    extra = [
        special("folder.png", tarfile.DIRTYPE),
        special("link.png", tarfile.SYMTYPE, linkname="/etc/passwd"),
        special("hard.png", tarfile.LNKTYPE, linkname="a.png", size=10**9),
        special("device.png", tarfile.CHRTYPE, devmajor=1, devminor=5),
        special("pipe.png", tarfile.FIFOTYPE),
    ]
    assert [name for name, *_ in members(tar(content=SHORT, extra=extra))] == list(SHORT)


@pytest.mark.parametrize("size", [10**6, 2**40, 8**11 - 1, 2**62])
def test_a_size_beyond_the_file_is_refused(size):
    header = tarfile.TarInfo("a.png")
    header.size = size
    packed = header.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    with pytest.raises(InputError, match=r"x\.tar: damaged .* exceeds the file"):
        members(packed)


def test_a_cut_file_is_an_error_wherever_it_is_cut():
    packed = tar(tarfile.GNU_FORMAT)
    end = packed.rindex(b"ustar") - 257 + 512
    for cut in range(0, end + 1, 128):
        with pytest.raises(InputError, match="damaged or not a tar file"):
            members(packed[:cut])


def test_a_damaged_header_is_not_the_end():
    packed = bytearray(tar(content=SHORT))
    packed[1024 + 5] ^= 1
    with pytest.raises(InputError, match=r"at byte 1,024 \(the checksum"):
        members(bytes(packed))


@pytest.mark.parametrize("start", [b"\x1f\x8b\x08", b"BZh91", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"])
def test_a_compressed_file_is_refused(start):
    with pytest.raises(InputError, match=r"x\.tar is compressed.*gunzip"):
        members(start + bytes(2000))


def header(kind, content):
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, len(content)
    return info.tobuf() + content + bytes(-len(content) % 512)


@pytest.mark.parametrize(
    "attributes",
    [
        b"8 path=a\n",
        b"0 path=a\n",
        b"-5 path=a\n",
        b"3 x",
        b"99999999999 path=a\n",
        b"11 size=-1\n",
    ],
)
def test_malformed_attributes_are_an_error(attributes):
    with pytest.raises(InputError, match="attributes are malformed"):
        members(header(b"x", attributes) + tar(content=SHORT))


def test_huge_attributes_and_sparse_members_are_errors():
    with pytest.raises(InputError, match="a name or attributes of 1,048,577 bytes"):
        members(header(b"L", bytes(2**20 + 1)) + bytes(1024))
    with pytest.raises(InputError, match="sparse members are not read"):
        members(header(b"S", b"") + bytes(1024))


@pytest.mark.fuzz
@given(place=st.integers(0, 4000), value=st.integers(0, 255), format=st.sampled_from([0, 1, 2]))
def test_a_damaged_file_is_a_list_or_one_error(place, value, format):
    packed = bytearray(tar(format, SHORT))
    packed[place % len(packed)] = value
    with suppress(InputError):
        for member in members(bytes(packed)):
            assert 0 < member.offset <= member.offset + member.n_bytes <= len(packed)
