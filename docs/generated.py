"""Write the generated parts of the docs: tables, figures, the command line.

usage: python docs/generated.py

A table stands in a page between `<!-- table: NAME -->` and `<!-- end of table -->`, and
is made from `results/*.jsonl`. So are the figures in `images/`; `sources.json` has a
digest of the runs of each. `command-line.md` is the output of `--help`. All are kept in
the repository, to be read without a build; a test compares them.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from pathlib import Path

import click
from growth_figure import draw_growth
from result_rows import Run, read_runs
from result_tables import TABLES

from annotrace.cli.main import main
from annotrace.experiments import find_experiment
from annotrace.experiments.options import Options
from annotrace.experiments.plans import make_plan

DOCS = Path(__file__).parent
PAGES = (
    DOCS.parent / "README.md",
    DOCS / "aggregation.md",
    DOCS / "choosing.md",
    DOCS / "items.md",
    DOCS / "connect.md",
    DOCS / "methods.md",
    DOCS / "reproducing.md",
    DOCS / "scaling.md",
    DOCS / "trust.md",
)
IMAGES = DOCS / "images"

PICTURES = {
    "figure-2.png": ("cifar10-table", "cifar10_table"),
    "figure-3.png": ("mnist-em", "mnist"),
    "figure-4.png": ("mnist-dominance", "mnist"),
    "figure-5.png": ("mnist-sensitivity", "mnist_sensitivity"),
    "figure-6.png": ("mnist-robust", "mnist"),
    "figure-7a.png": ("cardiac", "cardiac"),
    "figure-7b.png": ("cardiac", "cardiac"),
    "figure-7c.png": ("cardiac", "cardiac"),
    "figure-8.png": ("annotators", "annotators"),
    "figure-9.png": ("mnist-em", "mnist"),
    "figure-10.png": ("mnist-robust", "mnist"),
    "figure-11.png": ("mnist-ablation", "mnist"),
    "digits.png": ("digits", "reproduce_digits"),
}
"""By figure: the experiment that draws it, and the file of `results/` with its runs."""

BENCHMARKS = {"growth.png": (draw_growth, "bench")}
"""By figure: the function that draws it, and the file of `results/` with its rows."""


def with_tables(page: str) -> str:
    """Return a page with its tables filled in."""

    def fill(found: re.Match[str]) -> str:
        return f"{found[1]}\n\n{TABLES[found[2]]()}\n\n{found[3]}"

    places = r"(<!-- table: ([\w-]+) -->).*?(<!-- end of table -->)"
    return re.sub(places, fill, page, flags=re.S)


def command_line() -> str:
    """Return the page of the command line: the `--help` of every command."""
    parts = [
        "# The command line",
        "`annotrace COMMAND --help` says the same. This page is written by "
        "`python docs/generated.py`.",
        _help("annotrace", main),
    ]
    for name, command in main.commands.items():
        parts += [f"## annotrace {name}", _help(f"annotrace {name}", command)]
        below = command.commands if isinstance(command, click.Group) else {}
        for tool, inner in below.items():
            full = f"annotrace {name} {tool}"
            parts += [f"### {full}", _help(full, inner)]
    return "\n\n".join(parts) + "\n"


def _help(name: str, command: click.Command) -> str:
    context = click.Context(
        command, info_name=name, terminal_width=88, max_content_width=88
    )
    context.help_option_names = main.context_settings["help_option_names"]
    return f"```text\n{command.get_help(context)}\n```"


def runs_of(experiment: str, name: str) -> list[Run]:
    """Return the runs of an experiment's plan that a file of `results/` has."""
    there = {run["key"]: run for run in read_runs(name)}
    plan = make_plan(find_experiment(experiment), Options())
    return [there[run["key"]] for run in plan if run["key"] in there]


def digest(runs: list[Run]) -> str:
    """Return a digest that changes with the runs."""
    return hashlib.sha256(json.dumps(runs).encode()).hexdigest()


def digests() -> dict[str, str]:
    """Return the digest of the runs of every figure."""
    found = {picture: runs_of(*source) for picture, source in PICTURES.items()}
    found |= {picture: read_runs(name) for picture, (_, name) in BENCHMARKS.items()}
    return {picture: digest(runs) for picture, runs in found.items()}


def draw_pictures() -> None:
    """Draw the figures whose runs have changed."""
    sources = IMAGES / "sources.json"
    known = json.loads(sources.read_text(encoding="utf-8")) if sources.exists() else {}
    now = digests()
    changed = [
        picture
        for picture in now
        if known.get(picture) != now[picture] or not (IMAGES / picture).exists()
    ]
    with tempfile.TemporaryDirectory() as folder:
        for source in {PICTURES[picture] for picture in changed if picture in PICTURES}:
            find_experiment(source[0]).draw(runs_of(*source), Path(folder))
        for picture in set(changed) & set(BENCHMARKS):
            draw, name = BENCHMARKS[picture]
            draw(read_runs(name), Path(folder) / Path(picture).stem)
        for picture in changed:
            (IMAGES / picture).write_bytes((Path(folder) / picture).read_bytes())
    sources.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")


def write() -> None:
    """Write all generated parts."""
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
    (DOCS / "command-line.md").write_text(command_line(), encoding="utf-8")
    draw_pictures()


if __name__ == "__main__":
    write()
