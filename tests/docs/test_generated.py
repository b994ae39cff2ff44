"""The generated parts of the docs are what the results and the commands give today."""

import json

import generated

REMEDY = "run `python docs/generated.py`"


def test_the_page_of_commands_is_what_help_says():
    page = (generated.DOCS / "command-line.md").read_text(encoding="utf-8")
    assert page == generated.command_line(), REMEDY


def test_the_tables_are_what_the_results_give():
    page = (generated.DOCS / "choosing.md").read_text(encoding="utf-8")
    assert page == generated.with_tables(page), REMEDY
    assert page.count("<!-- table:") == len(generated.TABLES)


def test_a_cell_is_the_mean_of_the_runs_with_the_best_in_bold():
    accuracy = {"auto": [], "trace": []}
    with (generated.RESULTS / "small_data.jsonl").open(encoding="utf-8") as file:
        for run in map(json.loads, file):
            if run["experiment"] == "labelme" and run["method"] in accuracy:
                accuracy[run["method"]].append(run["accuracy"])
    means = {name: sum(own) / len(own) for name, own in accuracy.items()}
    auto, trace = (f"{means[name]:.3f}".removeprefix("0") for name in ("auto", "trace"))
    table = generated.TABLES["classifier"]()
    assert f"| `auto` | **{auto}** |" in table
    assert f"| `trace` | {trace} |" in table
