import contextlib
import errno
import os

import pytest
import torch
from torch import nn

from annotrace.errors import RunError
from annotrace.training.records import Record, RecordFile


def record(number):
    return Record({"network.x": torch.full((3,), float(number))}, {"number": number})


@pytest.fixture
def stored(tmp_path):
    """A file of two records."""
    file = RecordFile(tmp_path / "c.bin")
    file.replace(record(0))
    file.append(record(1))
    return file


def numbers(file):
    found = [file.read(number) for number in range(3)]
    return [each.values["number"] for each in found if each is not None]


def test_records_are_read_back(stored):
    assert numbers(stored) == [0, 1]
    assert torch.equal(stored.read(1).part("network")["x"], torch.ones(3))


def test_tied_weights_can_be_stored(tmp_path):
    linear = nn.Linear(2, 2)
    both = nn.ModuleList([linear, linear])
    file = RecordFile(tmp_path / "c.bin")
    file.replace(Record(both.state_dict(), {}))
    assert file.read(0).tensors.keys() == both.state_dict().keys()


def test_a_record_that_was_cut_off_anywhere_is_as_if_never_written(stored):
    whole = stored.path.read_bytes()
    stored.replace(record(0))
    end = stored.path.stat().st_size
    for size in range(end, len(whole)):
        stored.path.write_bytes(whole[:size])
        assert numbers(stored) == [0]
    stored.append(record(7))
    assert numbers(stored) == [0, 7]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_record_that_cannot_be_written_leaves_the_file_as_before(stored, monkeypatch, error):
    before = stored.path.read_bytes()

    def fail(*_):
        raise error(errno.ENOSPC, "No space left")

    monkeypatch.setattr(os, "fsync", fail)
    for change in (stored.append, stored.replace):
        with pytest.raises(error, match="No space left") as raised:
            change(record(2))
        if error is OSError:
            assert raised.value.filename == str(stored.path)
    assert stored.path.read_bytes() == before
    assert list(stored.path.parent.iterdir()) == [stored.path]


def test_every_changed_byte_is_one_error_or_no_record(stored):
    whole = stored.path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        stored.path.write_bytes(changed)
        with contextlib.suppress(RunError):
            assert numbers(stored) in ([], [0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a checkpoint of annotrace"),
        (b"PK\x03\x04", "not a checkpoint of annotrace"),
        (b"annotrace checkpoint 99\n", "another version of annotrace"),
    ],
)
def test_other_files_are_errors(tmp_path, content, message):
    (tmp_path / "c.bin").write_bytes(content)
    with pytest.raises(RunError, match=message):
        RecordFile(tmp_path / "c.bin").read(0)


def test_a_pipe_is_an_error(tmp_path):
    os.mkfifo(tmp_path / "c.bin")
    with pytest.raises(RunError, match="not a regular file"):
        RecordFile(tmp_path / "c.bin").read(0)
