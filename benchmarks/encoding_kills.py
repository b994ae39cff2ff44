"""Encoding that is killed with SIGKILL and resumed: the same file, and nothing encoded twice.

usage: python benchmarks/encoding_kills.py [--items 400] [--kills 5] [--seed 0] [--out FILE]

`annotrace encode` runs in a process of its own with a tiny model, which is slowed down and logs
every batch before and after it encodes it. The process is killed at random moments of the encoding,
five times, and the same command is repeated until it ends. The run passes if the file is
byte-identical to that of a command that was not killed, and if no item was encoded twice, except
those of the batch that was in flight when a process was killed. Exit status 1 if not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

BATCH_SIZE, BATCH_SECONDS = 8, 0.05
START, END = "start", "end"


def encode_slowly(log: Path, arguments: list[str]) -> None:
    """Run a command in this process; log the texts of every batch when it starts and ends."""
    from annotrace.cli.main import main
    from annotrace.data.pretrained import TextModel

    plain = TextModel.__call__

    def logged(self: TextModel, items: Any) -> Any:
        texts = list(items)
        _append(log, START, texts)
        encoded = plain(self, texts)
        time.sleep(BATCH_SECONDS)
        _append(log, END, texts)
        return encoded

    TextModel.__call__ = logged  # type: ignore[method-assign]
    main(arguments)


def _append(log: Path, event: str, texts: list[str]) -> None:
    with log.open("a") as file:
        file.write(json.dumps([event, texts]) + "\n")


def read_log(log: Path) -> list[tuple[str, list[str]]]:
    """Return the events so far; a killed process may have left half a line."""
    if not log.exists():
        return []
    lines = log.read_text().split("\n")
    return [(event, texts) for event, texts in map(json.loads, lines[:-1])]


def write_texts(path: Path, n_items: int, rng: random.Random) -> None:
    """Write distinct texts of different lengths."""
    from tiny_models import LENGTH, WORDS

    texts: dict[str, None] = {}
    while len(texts) < n_items:
        texts[" ".join(rng.choices(WORDS, k=rng.randrange(3, LENGTH - 2)))] = None
    rows = [f"{number},{text}" for number, text in enumerate(texts)]
    path.write_text("\n".join(["item,text", *rows]) + "\n")


def start(folder: Path, name: str, log: Path) -> subprocess.Popen[bytes]:
    """Start the command in a process of its own, with a cache of its own for each name."""
    options = ["--encoder", "model", "--out", f"{name}.npz", "--cache", f"{name}-cache"]
    arguments = ["encode", "texts.csv", *options, "--batch-size", str(BATCH_SIZE), "--quiet"]
    command = [sys.executable, __file__, "--log", str(log), "--", *arguments]
    return subprocess.Popen(command, cwd=folder)


def kill_later(process: subprocess.Popen[bytes], log: Path, rng: random.Random) -> bool:
    """Kill a process some batches from now; return whether it was still there."""
    n_events = len(read_log(log)) + 2 * rng.randrange(1, 6)
    while len(read_log(log)) < n_events and process.poll() is None:
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 2 * BATCH_SECONDS))
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def run_with_kills(folder: Path, n_items: int, n_kills: int, seed: int) -> dict[str, Any]:
    """Encode in a folder, killed and not killed; return what was counted."""
    from tiny_models import write_text_model

    rng = random.Random(seed)
    write_text_model(folder / "model")
    write_texts(folder / "texts.csv", n_items, rng)
    log, in_flight = folder / "killed.jsonl", list[str]()
    for _ in range(n_kills):
        assert kill_later(start(folder, "killed", log), log, rng), "it ended before it was killed"
        in_flight += read_log(log)[-1][1]
    assert start(folder, "killed", log).wait() == 0
    assert start(folder, "whole", folder / "whole.jsonl").wait() == 0
    same_file = _content(folder, "killed") == _content(folder, "whole")
    return {"items": n_items, "kills": n_kills, **count_repeats(log, in_flight), "same": same_file}


def count_repeats(log: Path, in_flight: list[str]) -> dict[str, int]:
    """Count the items that were encoded more than once, of which some were in flight at a kill."""
    times = Counter(text for event, texts in read_log(log) if event == START for text in texts)
    repeats = Counter({text: n - 1 for text, n in times.items() if n > 1})
    return {
        "distinct": len(times),
        "in_flight": len(in_flight),
        "repeats": repeats.total(),
        "other_repeats": (repeats - Counter(in_flight)).total(),
    }


def _content(folder: Path, name: str) -> bytes:
    return (folder / f"{name}.npz").read_bytes()


def holds(found: dict[str, Any]) -> bool:
    """Whether the file is the same, and only batches in flight were repeated."""
    is_complete = found["distinct"] == found["items"]
    return bool(found["same"] and is_complete and found["other_repeats"] == 0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill and resume `annotrace encode`.")
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.log is not None:
        encode_slowly(options.log, options.arguments)
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        found = run_with_kills(Path(folder), options.items, options.kills, options.seed)
    line = json.dumps({"experiment": "encoding_kills", "seed": options.seed, **found})
    print(line)
    if options.out is not None:
        with options.out.open("a") as file:
            file.write(line + "\n")
    sys.exit(0 if holds(found) else 1)


if __name__ == "__main__":
    main()
