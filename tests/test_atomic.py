import errno
import os
import stat

import pytest

from annotrace.atomic import atomic_write, remove_partial


def write(path, content):
    with atomic_write(path) as file:
        file.write(content)


def test_a_file_is_replaced(tmp_path):
    for content in (b"old", b"new"):
        write(tmp_path / "a", content)
        assert (tmp_path / "a").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_content_is_on_disk_before_it_replaces_the_file(tmp_path, monkeypatch):
    calls = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append("sync"), sync(handle)))
    monkeypatch.setattr(os, "replace", lambda *paths: (calls.append("replace"), replace(*paths)))
    write(tmp_path / "a", b"new")
    assert calls == ["sync", "replace", "sync"]


def test_folders_need_not_be_synced(tmp_path, monkeypatch):
    sync = os.fsync

    def refuse(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_failure_keeps_the_old_file_and_leaves_no_other(tmp_path, monkeypatch, function, error):
    write(tmp_path / "a", b"old")

    def fail(*_):
        raise error(errno.ENOSPC, "No space left")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(error, match="No space left") as raised:
        write(tmp_path / "a", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}
    if error is OSError:
        assert raised.value.filename == str(tmp_path / "a")


def test_only_what_a_killed_process_left_is_removed(tmp_path):
    names = [".a.partial", ".a.0123456789abcdef.partial.txt", ".b.0123456789abcdef.partial", "a"]
    for name in (*names, ".a.0123456789abcdef.partial"):
        (tmp_path / name).touch()
    remove_partial(tmp_path / "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_the_file_is_readable_by_others_as_the_umask_says(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "a", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
