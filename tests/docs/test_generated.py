"""The generated parts of the docs are what the results and the commands give today."""

import json
import re

import generated
import pytest
import result_rows
import result_tables

import annotrace as at

REMEDY = "run `python docs/generated.py`"


def test_the_page_of_commands_is_what_help_says():
    page = (generated.DOCS / "command-line.md").read_text(encoding="utf-8")
    assert page == generated.command_line(), REMEDY


@pytest.mark.parametrize("path", generated.PAGES, ids=lambda path: path.name)
def test_the_tables_are_what_the_results_give(path):
    page = path.read_text(encoding="utf-8")
    assert "<!-- table:" in page
    assert page == generated.with_tables(page), REMEDY


def test_every_table_has_its_place():
    placed = {
        name
        for path in generated.PAGES
        for name in re.findall(r"<!-- table: ([\w-]+) -->", path.read_text(encoding="utf-8"))
    }
    assert placed == set(result_tables.TABLES)


def test_the_pictures_were_drawn_from_the_results():
    sources = json.loads((generated.IMAGES / "sources.json").read_text(encoding="utf-8"))
    assert sources == generated.digests(), REMEDY
    assert all((generated.IMAGES / name).is_file() for name in sources)


def test_pictures_leave_out_no_run_of_their_file():
    for file in {name for _, name in generated.PICTURES.values()}:
        own = [source for source in set(generated.PICTURES.values()) if source[1] == file]
        drawn = {run["key"] for source in own for run in generated.runs_of(*source)}
        assert drawn == {run["key"] for run in result_rows.read_runs(file)}, file


def test_a_cell_is_the_mean_of_the_runs_with_the_best_in_bold():
    accuracy = {"auto": [], "trace": []}
    with (result_rows.RESULTS / "small_data.jsonl").open(encoding="utf-8") as file:
        for run in map(json.loads, file):
            if run["experiment"] == "labelme" and run["method"] in accuracy:
                accuracy[run["method"]].append(run["accuracy"])
    means = {name: sum(own) / len(own) for name, own in accuracy.items()}
    auto, trace = (f"{means[name]:.3f}".removeprefix("0") for name in ("auto", "trace"))
    table = result_tables.TABLES["classifier"]()
    assert f"| `auto` | **{auto}** |" in table
    assert f"| `trace` | {trace} |" in table


@pytest.mark.parametrize(
    "home", [at, at.aggregation, at.data, at.diagnosis, at.nn, at.plots, at.simulate]
)
def test_every_public_name_is_in_the_api(home):
    pages = (generated.DOCS / "api").glob("*.md")
    listed = {word for page in pages for word in page.read_text(encoding="utf-8").split()}
    names = {name for name in home.__all__ if callable(getattr(home, name))}
    listed |= {word.rpartition(".")[2] for word in listed}
    assert names - listed == set()
