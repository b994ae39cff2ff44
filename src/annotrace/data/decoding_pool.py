"""Decoding of many images, ahead of their use, by several processes."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from annotrace.data.decoding import Rendering, render_image
from annotrace.data.decoding_worker import DecodingWorker
from annotrace.data.image_files import ImageFile
from annotrace.data.image_formats import MissingDecoderError
from annotrace.errors import InputError

MIN_BYTES = 2**25
"""Fewer bytes of images are decoded by this process: starting others would take longer."""


def decode_ahead(
    files: Sequence[ImageFile], rendering: Rendering, n_workers: int | None = None
) -> Generator[Any, None, None]:
    """Yield images in the order of their files, and the `InputError` of a file that is broken.

    At most one image per process, and one more, is decoded before its turn. Close the generator
    to end the processes early.

    Parameters
    ----------
    files : sequence of ImageFile
    rendering : Rendering
    n_workers : int, optional
        The number of processes; 0 decodes in this one. By default one per core, and none for less
        than 32 MiB of files or for whole images: to send the pixels of a photo takes as long as to
        decode it.
    """
    if n_workers is None and rendering.is_whole:
        n_workers = 0
    n_processes = count_processes(files, n_workers)
    if n_processes == 0:
        yield from (_render(file, rendering) for file in files)
        return
    pool = _Pool(n_processes)
    try:
        yield from pool.map(files, rendering)
    finally:
        pool.close()


def count_processes(files: Sequence[ImageFile], n_workers: int | None) -> int:
    """Return how many processes decode some files; see `decode_ahead`."""
    if n_workers is not None:
        return min(n_workers, len(files))
    # A program that is frozen cannot start Python, and one core is busy already.
    if getattr(sys, "frozen", False) or _n_cores() == 1 or not _has_bytes(files, MIN_BYTES):
        return 0
    return min(_n_cores(), len(files))


class _Pool:
    """Threads that each wait for a process."""

    def __init__(self, n_processes: int) -> None:
        self.workers: list[DecodingWorker] = []
        self.idle: SimpleQueue[DecodingWorker] = SimpleQueue()
        self.threads = ThreadPoolExecutor(n_processes, "annotrace-decoding")
        try:
            for _ in range(n_processes):
                self.workers.append(DecodingWorker())
                self.idle.put(self.workers[-1])
        except OSError as error:
            self.close()
            raise InputError(
                f"No process could be started to decode images ({error.strerror}). Decode them in "
                "this one with n_workers=0 (--workers 0)."
            ) from None

    def map(self, files: Iterable[ImageFile], rendering: Rendering) -> Generator[Any, None, None]:
        ahead: deque[Future[Any]] = deque()
        for file in files:
            ahead.append(self.threads.submit(self._render, file, rendering))
            if len(ahead) > len(self.workers):
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

    def close(self) -> None:
        for worker in self.workers:
            worker.end()
        self.threads.shutdown(cancel_futures=True)
        for worker in self.workers:
            worker.close()

    def _render(self, file: ImageFile, rendering: Rendering) -> Any:
        worker = self.idle.get()
        try:
            return worker.render(file, rendering)
        finally:
            self.idle.put(worker)


def _render(file: ImageFile, rendering: Rendering) -> Any:
    try:
        return render_image(file, rendering)
    except MissingDecoderError:
        raise
    except InputError as error:
        return error


def _has_bytes(files: Iterable[ImageFile], n_bytes: int) -> bool:
    found = 0
    for file in files:
        found += file.size()
        if found >= n_bytes:
            return True
    return False


def _n_cores() -> int:
    """Return the number of cores that this process may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
