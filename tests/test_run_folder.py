"""One writer at a time, and at every moment the old run or the new one."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import annotrace as at
from annotrace import run_folder, version
from annotrace.aggregation import make
from annotrace.errors import RunError
from annotrace.labels import LabelTable
from annotrace.run_folder import (
    MODEL,
    REPORT,
    RUN_FILES,
    locked,
    read_unchanged,
    replace_run,
    run_file,
)

SOURCE = str(Path(version.__file__).parents[1])
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([SOURCE, str(Path(__file__).parent)]),
}


def write(folder, content, names=RUN_FILES):
    with locked(folder), replace_run(folder) as staging:
        for name in names:
            (staging / name).write_text(content)


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


class TestLocked:
    def test_leaves_nothing_behind(self, tmp_path):
        with locked(tmp_path / "a" / "run"):
            assert (tmp_path / "a" / "run").is_dir()
        assert list(tmp_path.iterdir()) == []

    def test_keeps_a_folder_that_was_there_or_is_used(self, tmp_path):
        (tmp_path / "empty").mkdir()
        for name in ("empty", "used"):
            with locked(tmp_path / name):
                if name == "used":
                    (tmp_path / name / "file").touch()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "used"]

    def test_a_second_writer_is_told_who_the_first_is(self, tmp_path):
        with (
            locked(tmp_path),
            pytest.raises(RunError, match=rf"written by process {os.getpid()} on \S+\. Wait"),
            locked(tmp_path),
        ):
            pass
        with locked(tmp_path):
            pass

    def test_excludes_threads(self, tmp_path):
        errors = []

        def enter():
            try:
                with locked(tmp_path):
                    pass
            except RunError as error:
                errors.append(error)

        with locked(tmp_path):
            thread = threading.Thread(target=enter)
            thread.start()
            thread.join()
        assert len(errors) == 1

    def test_a_lock_file_that_was_left_is_no_lock(self, tmp_path):
        (tmp_path / ".lock").write_text("process 1 on another")
        with locked(tmp_path):
            pass
        assert list(tmp_path.iterdir()) == []

    def test_a_lock_on_a_file_that_was_removed_is_not_enough(self, tmp_path, monkeypatch):
        """The previous writer removes the file between our opening and locking it."""
        lock, calls = run_folder._lock, []

        def lock_late(handle, folder):
            if not calls:
                (folder / ".lock").unlink()
            calls.append(handle)
            lock(handle, folder)

        monkeypatch.setattr(run_folder, "_lock", lock_late)
        with locked(tmp_path):
            assert len(calls) == 2
            with pytest.raises(RunError, match="being written"), locked(tmp_path):
                pass

    def test_without_locks_of_files_it_is_an_error(self, tmp_path, monkeypatch):
        def fail(*_):
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(run_folder.fcntl, "flock", fail)
        with pytest.raises(RunError, match=r"cannot lock files \(No locks available\)"):
            write(tmp_path / "run", "new")
        assert not (tmp_path / "run").exists()

    def test_a_file_is_not_a_folder(self, tmp_path):
        (tmp_path / "run").touch()
        with pytest.raises(RunError, match="is a file; give a folder to save to"):
            write(tmp_path / "run", "new")


class TestReplaceRun:
    def test_replaces_all_files_of_a_run_and_no_other(self, tmp_path):
        (tmp_path / "mine.txt").write_text("mine")
        write(tmp_path, "old")
        write(tmp_path, "new", RUN_FILES[1:5])
        expected = dict.fromkeys(RUN_FILES[1:5], "new")
        assert contents(tmp_path) == expected | {"mine.txt": "mine"}

    @pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space"), KeyboardInterrupt()])
    def test_a_failure_keeps_the_old_run(self, tmp_path, error):
        write(tmp_path, "old")

        def fail(name):
            if name != MODEL:
                raise error
            return "new"

        with pytest.raises(type(error)), locked(tmp_path), replace_run(tmp_path) as staging:
            _ = [(staging / name).write_text(fail(name)) for name in RUN_FILES]
        assert contents(tmp_path) == dict.fromkeys(RUN_FILES, "old")

    def test_an_error_names_the_file_as_it_would_have_been(self, tmp_path):
        with (
            pytest.raises(FileNotFoundError) as raised,
            locked(tmp_path),
            replace_run(tmp_path) as staging,
        ):
            (staging / "truth.csv").read_text()
        assert raised.value.filename == str(tmp_path / "truth.csv")

    def test_a_folder_in_place_of_a_file_is_an_error(self, tmp_path):
        (tmp_path / "truth.csv").mkdir()
        with pytest.raises(RunError, match=r"truth\.csv is a folder"):
            write(tmp_path, "new")
        assert [path.name for path in tmp_path.iterdir()] == ["truth.csv"]

    def test_an_interrupt_after_the_commit_comes_too_late(self, tmp_path, monkeypatch):
        sync = run_folder.sync_folder

        def interrupt(folder):
            if (tmp_path / ".commit").exists():
                monkeypatch.setattr(run_folder, "sync_folder", sync)
                raise KeyboardInterrupt
            sync(folder)

        monkeypatch.setattr(run_folder, "sync_folder", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path, "new")
        assert contents(tmp_path) == dict.fromkeys(RUN_FILES, "new")


KILLED = """
import itertools, os, shutil, sys
from pathlib import Path
from annotrace.run_folder import RUN_FILES, locked, replace_run, run_file
from annotrace.atomic import atomic_write
from killing import is_killed_at

def write(names):
    with locked(folder), replace_run(folder) as staging:
        for name in names:
            with atomic_write(staging / name) as file:
                file.write(str(names).encode())

os.fsync = lambda handle: None
folder, old, new = Path(sys.argv[1]), RUN_FILES, RUN_FILES[1:5]
for number in itertools.count():
    shutil.rmtree(folder, ignore_errors=True)
    write(old)
    (folder / "mine.txt").write_text("mine")
    was_killed = is_killed_at(number, folder, lambda: write(new))
    seen = {run_file(folder, name).read_text() for name in ("model.safetensors", "run.json")}
    with locked(folder):
        pass
    names = new if seen == {str(new)} else old
    found = {path.name: path.read_text() for path in folder.iterdir()}
    assert seen == {str(names)}, (number, seen)
    assert found == {"mine.txt": "mine", **dict.fromkeys(names, str(names))}, (number, found)
    print("new" if names is new else "old")
    if not was_killed:
        break
"""


def test_killed_at_any_file_operation_it_holds_the_old_run_or_the_new(tmp_path):
    done = run_script(KILLED, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    found = done.stdout.split()
    assert found == ["old"] * found.count("old") + ["new"] * found.count("new")
    assert found.count("old") > 10
    assert found.count("new") > 5


def run_script(code, *args):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )


class TestReadUnchanged:
    def test_repeats_what_failed_while_the_run_was_replaced(self, tmp_path):
        write(tmp_path, "old")
        calls = []

        @read_unchanged
        def read(folder):
            described = run_file(folder, "run.json").read_text()
            if not calls:
                write(folder, "new")
            calls.append(described)
            if run_file(folder, MODEL).read_text() != described:
                raise RunError("damaged")
            return described

        assert read(tmp_path) == "new"
        assert calls == ["old", "new"]

    def test_raises_what_stays(self, tmp_path):
        @read_unchanged
        def read(folder):
            raise RunError("damaged")

        with pytest.raises(RunError, match="damaged"):
            read(tmp_path)

    def test_a_link_in_place_of_the_commit_is_not_followed(self, tmp_path):
        write(tmp_path / "other", "other")
        write(tmp_path / "run", "own")
        (tmp_path / "run" / ".commit").symlink_to(tmp_path / "other")
        assert run_file(tmp_path / "run", MODEL).read_text() == "own"


@pytest.fixture
def votes():
    return make("majority").fit(LabelTable.from_codes([0, 0, 1], [0, 1, 0], [1, 1, 0]))


@pytest.mark.parametrize("name", ["truth.csv", "confusion.npz", "run.json"])
def test_a_full_disk_keeps_the_old_run(tmp_path, votes, monkeypatch, name):
    other = make("dawid-skene").fit(LabelTable.from_codes([0, 1, 1], [0, 1, 0], [1, 1, 0]))
    votes.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    replace = os.replace

    def fail(source, target):
        if Path(target).name == name:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="No space left"):
            other.save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert at.load(tmp_path).method == "majority"


def test_a_reader_beside_a_writer_sees_whole_runs(tmp_path, votes, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    other = make("majority").fit(LabelTable.from_codes([0, 0, 1], [0, 1, 0], [1, 1, 1]))
    votes.save(tmp_path)

    has_read = threading.Event()

    def save_often():
        while not has_read.is_set():
            other.save(tmp_path)
            votes.save(tmp_path)

    writer = threading.Thread(target=save_often)
    writer.start()
    try:
        seen = [at.load(tmp_path).predict().tolist() for _ in range(20)]
    finally:
        has_read.set()
        writer.join()
    assert all(each in ([1, 0], [1, 1]) for each in seen)


def test_of_concurrent_commands_one_succeeds_and_the_others_say_so(tmp_path):
    rows = [f"{k},{who},{k % 3}" for k in range(300) for who in "abc"]
    (tmp_path / "labels.csv").write_text("\n".join(["item,annotator,label", *rows]))
    command = [sys.executable, "-m", "annotrace", "aggregate", "labels.csv", "--out", "con"]
    command.append("--no-report")
    started = [
        subprocess.Popen(
            command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    results = [(*process.communicate(), process.returncode) for process in started]
    assert sorted(code for _, _, code in results) == [0, 2, 2]
    for out, error, code in results:
        assert (b"Wrote con" in out) == (code == 0)
        if code:
            assert error.count(b"\n") == 1
            assert b"con is being written by" in error or b"con already has" in error
    assert at.load(tmp_path / "con").table_.n_items == 300
    assert {path.name for path in (tmp_path / "con").iterdir()} == {*RUN_FILES} - {REPORT}


def test_killed_commands_resume_and_concurrent_ones_do_not_mix():
    """A few of what `make kills` tries."""
    script = Path(__file__).with_name("kill_runs.py")
    options = ["--kills", "2", "--kinds", "fit", "overwrite", "--commands", "4", "--folders", "2"]
    done = subprocess.run(
        [sys.executable, script, *options], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "4 commands at once into 2 folders: 2 succeeded, 2 folders hold one whole run",
        "2 kills: 2 loadable, 2 resumable, 2 equal",
    ]
