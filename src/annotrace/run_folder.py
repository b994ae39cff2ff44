"""The folder of a run: one writer at a time, and at every moment the old run or the new one.

A writer holds a lock on the folder. It writes the files of the new run to ``.staging`` inside it,
renames that to ``.commit``, which replaces the old run in one step, and then moves the files into
place. Readers prefer ``.commit`` while it exists. Whatever a killed writer left behind, the next
one removes (``.staging``) or completes (``.commit``).
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from annotrace.atomic import remove_partial, sync_folder
from annotrace.errors import RunError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

MODEL, DESCRIPTION, REPORT = "model.safetensors", "run.json", "report.html"
RUN_FILES = ("truth.csv", "annotators.csv", "confusion.npz", MODEL, DESCRIPTION, REPORT)

_LOCK, _STAGING, _COMMIT = ".lock", ".staging", ".commit"
_HELD = {errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK}

Read = TypeVar("Read")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create a folder if necessary and keep other writers out of it.

    The system releases the lock when the process ends, however it ends. A folder that is created
    here and stays empty is removed.

    Raises
    ------
    RunError
        If another process or thread is writing to the folder.
    """
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; give a folder to save to.")
    created = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        handle = _acquire(folder)
        try:
            recover(folder)
            yield
        finally:
            # While it is locked, so that nobody else holds a lock on the name that is removed.
            with suppress(OSError):
                (folder / _LOCK).unlink()
            os.close(handle)
    finally:
        for each in created:
            with suppress(OSError):
                each.rmdir()


@contextmanager
def replace_run(folder: Path) -> Iterator[Path]:
    """Replace the run in a locked folder by the files that are written to the folder yielded.

    If the block raises, the old run stays. Other files in the folder are not touched.
    """
    for name in RUN_FILES:
        if (folder / name).is_dir():
            raise RunError(f"{folder / name} is a folder; remove it, or choose another folder.")
    staging = folder / _STAGING
    try:
        staging.mkdir()
        yield staging
        sync_folder(staging)
        staging.replace(folder / _COMMIT)
        sync_folder(folder)
    except OSError as error:
        if error.filename and Path(error.filename).parent == staging:
            error.filename = str(folder / Path(error.filename).name)
        raise
    finally:
        recover(folder)


def recover(folder: Path) -> None:
    """Complete the run that was committed last, and remove what was not; for a locked folder."""
    commit = folder / _COMMIT
    if commit.is_dir() and not commit.is_symlink():
        if (commit / MODEL).exists():  # It is moved first, so nothing was moved yet.
            for name in RUN_FILES:
                if not (commit / name).exists():
                    (folder / name).unlink(missing_ok=True)
        for name in (MODEL, *RUN_FILES):
            with suppress(FileNotFoundError):
                (commit / name).replace(folder / name)
        sync_folder(folder)
        shutil.rmtree(commit)
    if (folder / _STAGING).exists():
        shutil.rmtree(folder / _STAGING)
    remove_partial(folder / REPORT)  # `annotrace report` writes it alone.


def run_file(folder: Path, name: str) -> Path:
    """Return the path of a file of the run: of a commit that is not complete, or in the folder."""
    commit = folder / _COMMIT
    pending = commit / name
    return pending if pending.exists() and not commit.is_symlink() else folder / name


def read_unchanged(read: Callable[[Path], Read]) -> Callable[[Path], Read]:
    """Repeat the reading of a run that fails because a writer replaced the run meanwhile."""

    @functools.wraps(read)
    def repeated(folder: Path) -> Read:
        while True:
            before = run_state(folder)
            try:
                return read(folder)
            except RunError:
                if run_state(folder) == before:
                    raise

    return repeated


def run_state(folder: Path) -> list[tuple[Path, int, int] | None]:
    """Return what changes whenever a file of the run that is read is replaced or moved."""
    state: list[tuple[Path, int, int] | None] = []
    for name in (MODEL, DESCRIPTION, REPORT):
        path = run_file(folder, name)
        try:
            status = path.lstat()
            state.append((path, status.st_ino, status.st_mtime_ns))
        except OSError:
            state.append(None)
    return state


def _acquire(folder: Path) -> int:
    """Lock a folder, and return the open file that holds the lock."""
    path = folder / _LOCK
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except FileNotFoundError:
            continue  # Another writer has just removed the folder that it had created.
        try:
            _lock(handle, folder)
            if _is_open(handle, path):
                os.ftruncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # The previous writer has removed the file since it was opened.


def _is_open(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _lock(handle: int, folder: Path) -> None:
    """Lock an open file, or raise at once."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _HELD:
            (folder / _LOCK).unlink(missing_ok=True)
            raise RunError(
                f"{folder}: the file system cannot lock files ({error.strerror}), so two writers "
                "could mix their files. Write to a folder on another disk and copy it."
            ) from None
        raise RunError(
            f"{folder} is being written by {_holder(handle)}. Wait until it has finished, or "
            "choose another folder."
        ) from None


def _holder(handle: int) -> str:
    try:
        written = os.read(handle, 200).decode("ascii")
    except (OSError, ValueError):
        written = ""
    return written if written.isprintable() and written else "another process"
