"""results.jsonl survives a process that is killed while it writes, and a disk that is full."""

import errno
import io
import json
from pathlib import Path

import pytest

from annotrace.errors import RunError
from annotrace.experiments.results import add_result, read_results

FIRST, SECOND = {"key": "a", "accuracy": 0.5}, {"key": "b", "accuracy": 0.6}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "out" / "results.jsonl"
    assert read_results(path) == []
    path.parent.mkdir()
    add_result(path, FIRST)
    add_result(path, SECOND)
    return path


def test_what_is_added_is_read_back_a_line_a_run(path):
    assert read_results(path) == [FIRST, SECOND]
    assert [json.loads(line) for line in path.read_text().splitlines()] == [FIRST, SECOND]


@pytest.mark.parametrize("lost", range(2, 30))
def test_a_half_written_last_line_is_skipped_and_replaced(path, lost):
    path.write_bytes(path.read_bytes()[:-lost])
    assert read_results(path) == [FIRST]
    add_result(path, SECOND)
    assert read_results(path) == [FIRST, SECOND]


def test_a_last_line_that_only_lacks_its_end_is_kept(path):
    path.write_bytes(path.read_bytes()[:-1])
    assert read_results(path) == [FIRST, SECOND]
    add_result(path, {"key": "c"})
    assert [result["key"] for result in read_results(path)] == ["a", "b", "c"]


def test_reading_changes_nothing(path):
    path.write_bytes(path.read_bytes()[:-5])
    before = path.read_bytes()
    read_results(path)
    assert path.read_bytes() == before


def test_another_damaged_line_is_named(path):
    first, second = path.read_text().splitlines()
    path.write_text(f"{first[:-3]}\n{second}\n")
    with pytest.raises(RunError, match=r"results\.jsonl, line 1: not a run; delete the line"):
        read_results(path)


def test_what_json_has_no_word_for_is_not_written(path):
    before = path.read_bytes()
    with pytest.raises(ValueError):
        add_result(path, {"key": "c", "accuracy": float("nan")})
    assert path.read_bytes() == before


class AlmostFull(io.FileIO):
    """A file on a disk with a given number of free bytes."""

    space = 0

    def write(self, content):
        if not self.space:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = super().write(content[: self.space])
        self.space -= written
        return written


@pytest.mark.parametrize("space", [0, 1, 10])
def test_a_line_that_the_disk_does_not_take_whole_is_not_there_at_all(path, space, monkeypatch):
    def opened(path, *_, **__):
        file = AlmostFull(path, "ab+")
        file.space = space
        return file

    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", opened)
        message = r"results\.jsonl: No space left on device\. The last run is not in it"
        with pytest.raises(RunError, match=message):
            add_result(path, {"key": "c", "accuracy": 0.7})
    assert path.read_bytes() == before
    add_result(path, {"key": "d"})
    assert [result["key"] for result in read_results(path)] == ["a", "b", "d"]


def test_a_disk_that_takes_a_line_in_parts_gets_all_of_it(path, monkeypatch):
    class Slow(io.FileIO):
        def write(self, content):
            return super().write(content[:3])

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda path, *_, **__: Slow(path, "ab+"))
        add_result(path, {"key": "c", "accuracy": 0.7})
    assert [result["key"] for result in read_results(path)] == ["a", "b", "c"]
