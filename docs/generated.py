"""Write the parts of the docs that nobody types: tables of results, the command line.

usage: python docs/generated.py

In `choosing.md` a table stands between `<!-- table: NAME -->` and
`<!-- end of table -->`, drawn from `results/*.jsonl`; `command-line.md` is what
`--help` says. Both are kept in the repository, to be read without building anything; a
test compares them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from annotrace.cli.main import main

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
Run = dict[str, Any]

CROWDS = {
    "labelme": "LabelMe",
    "sentiment": "sentiment",
    "cifar10n": "CIFAR-10N",
    "flippers": "flippers",
    "hammers": "hammers",
}
JOINT = ("auto", "trace", "trace@paper", "two-stage", "vanilla", "oracle")
# Never in bold: nobody has the true matrices.
TOLD_THE_TRUTH = "oracle"
LABELS_ALONE = ("dawid-skene", "majority")


def read_runs(name: str) -> list[Run]:
    """Read a file of `results/`, a run a line."""
    with (RESULTS / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def mean(runs: Iterable[Run], name: str) -> float | None:
    """Give the mean of one figure over runs, None where no run has it."""
    values = [run[name] for run in runs if run.get(name) is not None]
    return float(np.mean(values)) if values else None


def crowds_table(figure: str, methods: Sequence[str]) -> str:
    """Draw a figure of `benchmarks/small_data.py`: a row a method, a column a crowd."""
    runs = read_runs("small_data")
    rows = [
        [mean(_only(runs, method=method, experiment=crowd), figure) for crowd in CROWDS]
        for method in methods
    ]
    return markdown(["method", *CROWDS.values()], methods, rows)


def digits_table(figure: str) -> str:
    """Draw a figure of `benchmarks/digits.py`: one label an item, and five."""
    runs = read_runs("digits")
    methods = list(dict.fromkeys(run["method"] for run in runs))
    rows = [
        [
            mean(_only(runs, method=method, density=density), figure)
            for density in (1, 5)
        ]
        for method in methods
    ]
    return markdown(
        ["method", "one label, skill .35", "five labels, skill .5"], methods, rows
    )


def aggregation_table() -> str:
    """Draw the mean accuracy of aggregations over eleven crowds."""
    runs = _only(read_runs("aggregation_accuracy"), library="annotrace")
    methods = list(dict.fromkeys(run["method"] for run in runs))
    rows = [[mean(_only(runs, method=method), "accuracy")] for method in methods]
    return markdown(["method", "mean of eleven crowds"], methods, rows)


def markdown(
    headers: Sequence[str], names: Sequence[str], rows: Sequence[Sequence[float | None]]
) -> str:
    """Write a table in Markdown, the best of each column in bold."""
    shown = [
        [None if value is None else round(value, 3) for value in row] for row in rows
    ]
    compared = [
        row for name, row in zip(names, shown, strict=True) if name != TOLD_THE_TRUTH
    ]
    best = [
        max((value for value in column if value is not None), default=None)
        for column in zip(*compared, strict=True)
    ]
    lines = [f"| {' | '.join(headers)} |", "|---" + "|---:" * (len(headers) - 1) + "|"]
    for name, row in zip(names, shown, strict=True):
        cells = [
            _cell(value, value == top) for value, top in zip(row, best, strict=True)
        ]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: float | None, bold: bool) -> str:
    if value is None:
        return ""
    said = f"{value:.3f}".removeprefix("0")
    return f"**{said}**" if bold else said


def _only(runs: Iterable[Run], **wanted: Any) -> list[Run]:
    return [
        run for run in runs if all(run[name] == value for name, value in wanted.items())
    ]


TABLES: dict[str, Callable[[], str]] = {
    "classifier": lambda: crowds_table("accuracy", JOINT),
    "truth": lambda: crowds_table("posterior_accuracy", (*JOINT, *LABELS_ALONE)),
    "digits": lambda: digits_table("accuracy"),
    "aggregation": aggregation_table,
}


def with_tables(page: str) -> str:
    """Put the tables into a page that has places for them."""

    def fill(found: re.Match[str]) -> str:
        return f"{found[1]}\n\n{TABLES[found[2]]()}\n\n{found[3]}"

    places = r"(<!-- table: ([\w-]+) -->).*?(<!-- end of table -->)"
    return re.sub(places, fill, page, flags=re.S)


def command_line() -> str:
    """Write the page of the command line: every command as its `--help` has it."""
    parts = [
        "# The command line",
        "`annotrace COMMAND --help` says the same. This page is written by "
        "`python docs/generated.py`.",
        _help("annotrace", main),
    ]
    for name, command in main.commands.items():
        parts += [f"## annotrace {name}", _help(f"annotrace {name}", command)]
    return "\n\n".join(parts) + "\n"


def _help(name: str, command: click.Command) -> str:
    context = click.Context(
        command, info_name=name, terminal_width=88, max_content_width=88
    )
    context.help_option_names = main.context_settings["help_option_names"]
    return f"```text\n{command.get_help(context)}\n```"


def write() -> None:
    """Write all generated parts."""
    choosing = DOCS / "choosing.md"
    choosing.write_text(
        with_tables(choosing.read_text(encoding="utf-8")), encoding="utf-8"
    )
    (DOCS / "command-line.md").write_text(command_line(), encoding="utf-8")


if __name__ == "__main__":
    write()
