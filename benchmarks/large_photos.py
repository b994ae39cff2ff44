"""Decoding of large photos: seconds, busy cores and peak memory, by number of processes.

usage: python benchmarks/large_photos.py [--photos 500] [--workers 0,1,2]
                                         [--out results/large_photos.jsonl]

    train   JPEG photos of 12 megapixels, decoded at 64 x 64 as for a fit (reduced by the decoder)
    encode  a fifth of them, whole, for a function that returns their mean colour, four at a time
    png     a tenth as many photos, as PNG, which cannot be decoded at a reduced size, at 64 x 64

The photos are made here, in a temporary folder: smooth shapes, edges and the noise of a sensor, so
that a JPEG file has 2 to 5 MB. Every measurement runs in a fresh process. The files are read once
before, so that all are in the cache of the system. Busy cores are the CPU time of the process and
its children divided by the time that has passed; on a shared machine, compare it with the load.
Peak memory is the largest sum of their proportional set sizes, sampled every 50 ms. Linux only;
writes one JSON line per measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import annotrace as at
from annotrace.data import ImageFolder, encode

WIDTH, HEIGHT = 4000, 3000
N_SCENES = 5
TASKS = ("train", "encode", "png")


def make_scene(rng: np.random.Generator) -> np.ndarray:
    """Return a picture with shapes, texture and noise, shape (height, width, 3), uint8."""
    coarse = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
    smooth = Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
    fine = rng.integers(0, 256, (HEIGHT // 8, WIDTH // 8, 3), dtype=np.uint8)
    texture = Image.fromarray(fine).resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
    scene = 0.8 * np.asarray(smooth, np.float32) + 0.2 * np.asarray(texture, np.float32)
    for _ in range(40):
        top, left = int(rng.integers(HEIGHT)), int(rng.integers(WIDTH))
        scene[top : top + 300, left : left + 400] += rng.normal(0, 40, 3)
    scene += rng.normal(0, 5, scene.shape)
    return np.clip(scene, 0, 255).astype(np.uint8)


def make_photos(folder: Path, n_photos: int) -> None:
    """Write photos: shifted copies of a few scenes, as JPEG, and some of them as PNG."""
    rng = np.random.default_rng(0)
    scenes = [make_scene(rng) for _ in range(N_SCENES)]
    for name in TASKS:
        (folder / name).mkdir()
    for k in range(n_photos):
        shift = tuple(int(s) for s in rng.integers(0, (HEIGHT, WIDTH)))
        photo = Image.fromarray(np.roll(scenes[k % N_SCENES], shift, axis=(0, 1)))
        photo.save(folder / "train" / f"{k:04}.jpg", quality=92)
        if k % 5 == 0:
            (folder / "encode" / f"{k:04}.jpg").hardlink_to(folder / "train" / f"{k:04}.jpg")
        if k % 10 == 0:
            photo.save(folder / "png" / f"{k:04}.png", compress_level=1)


def mean_colour(images: list[Any]) -> np.ndarray:
    return np.stack(
        [np.asarray(image.resize((1, 1), Image.Resampling.BOX))[0, 0] for image in images]
    )


def run_task(task: str, folder: Path, n_workers: int) -> None:
    """Decode or encode, and print the measurement as JSON."""
    images = ImageFolder(folder / task, n_workers=n_workers)
    memory, start = PeakMemory(), time.perf_counter()
    with memory:
        if task == "encode":
            encode(images, mean_colour, batch_size=4)
        else:
            images.decoded()
        seconds = time.perf_counter() - start
    print(json.dumps({"n_photos": len(images), "seconds": seconds, **memory.result(seconds)}))


class PeakMemory:
    """The largest memory of this process and its children, and their CPU time, while it runs."""

    def __enter__(self) -> PeakMemory:
        self.kilobytes, self.cpu, self.done = 0, {}, threading.Event()
        self.start = sum(_cpu_seconds(Path("/proc/self")))
        self.thread = threading.Thread(target=self._sample)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    def result(self, seconds: float) -> dict[str, float]:
        """Return the figures of what took so many seconds."""
        # Of children that have ended, /proc has the time too.
        busy = sum(_cpu_seconds(Path("/proc/self"))) - self.start
        figures = {"cpu_seconds": busy, "busy_cores": busy / seconds, "load": os.getloadavg()[0]}
        return figures | {"peak_megabytes": self.kilobytes / 1024}

    def _sample(self) -> None:
        while not self.done.wait(0.05):
            self.kilobytes = max(self.kilobytes, sum(map(_kilobytes, _family())))


def _family() -> list[Path]:
    listed = [path.read_text().split() for path in Path("/proc/self/task").glob("*/children")]
    return [Path("/proc/self"), *(Path("/proc") / number for part in listed for number in part)]


def _kilobytes(process: Path) -> int:
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
    except OSError:  # It has just ended.
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _cpu_seconds(process: Path) -> list[float]:
    """Return user and system time of a process, and of its children that have ended."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return [int(ticks) / 100 for ticks in fields[11:15]]


def measure(task: str, folder: Path, n_workers: int) -> dict[str, Any]:
    """Run a task in a fresh process."""
    command = [sys.executable, __file__, "--task", task, str(folder), str(n_workers)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {"experiment": task, "n_workers": n_workers, **json.loads(done.stdout)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=int, default=500)
    parser.add_argument("--workers", default="0,1,2")
    parser.add_argument("--out", type=Path, default=Path("results/large_photos.jsonl"))
    parser.add_argument("--task", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task is not None:
        run_task(args.task[0], Path(args.task[1]), int(args.task[2]))
        return
    versions = {"annotrace": at.__version__, "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as folder:
        make_photos(Path(folder), args.photos)
        sizes = [file.stat().st_size / 2**20 for file in Path(folder, "train").iterdir()]
        print(f"JPEG files of {min(sizes):.1f} to {max(sizes):.1f} MB", flush=True)
        for task in TASKS:
            for n_workers in map(int, args.workers.split(",")):
                for file in Path(folder).rglob("*.*"):
                    file.read_bytes()
                record = measure(task, Path(folder), n_workers) | {"versions": versions}
                print(json.dumps(record), flush=True)
                with args.out.open("a") as out:
                    out.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
