"""Run an experiment with torch, numpy, scipy and scikit-learn alone; write results.jsonl.

`annotrace reproduce` also draws; with ``--only-draw`` it draws what was run here.
"""

from __future__ import annotations

import argparse
import errno
import sys
from functools import partial
from pathlib import Path
from typing import Any

from annotrace.errors import AnnotraceError, describe_os_error
from annotrace.experiments import EXPERIMENTS, LISTED, find_experiment
from annotrace.experiments.options import FLAGS, options_from

BAD_INPUT, INTERRUPTED = 2, 130


def main(argv: list[str] | None = None) -> int:
    """Run the experiment of a command line, and return the exit code."""
    given = vars(_parser().parse_args(argv))
    from annotrace.experiments.results import FILE
    from annotrace.experiments.runner import sweep

    out = given["out"] or Path("runs") / given["name"]
    try:
        results = sweep(
            find_experiment(given["name"]),
            options_from(given),
            out=out,
            data_dir=given["data_dir"],
            device=given["device"],
            show=partial(print, file=sys.stderr, flush=True),
        )
    except AnnotraceError as error:
        return _fail(str(error))
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        return _fail(describe_os_error(error))
    except KeyboardInterrupt as stop:
        print(str(stop) or "Stopped.", file=sys.stderr)
        return INTERRUPTED
    print(f"Runs in {out / FILE}: {len(results)}")
    return 0


def _fail(message: str) -> int:
    print("Error:", " ".join(message.split()), file=sys.stderr)
    return BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m annotrace.experiments",
        description="Run an experiment of the paper; finished runs are not repeated.",
        epilog=f"experiments:\n{LISTED}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=list(EXPERIMENTS), metavar="NAME")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="Folder of the images.")
    parser.add_argument("--out", type=Path, metavar="DIR", help="Default: runs/NAME.")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps.")
    for flag in FLAGS:
        more: dict[str, Any] = {"choices": flag.choices} if flag.choices else {}
        if flag.repeated:
            more["action"] = "append"
        parser.add_argument(
            flag.flag,
            dest=flag.name,
            type=flag.read,
            metavar=flag.metavar,
            help=flag.help.replace("%", "%%"),
            **more,
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
