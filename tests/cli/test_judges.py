import json

import numpy as np
import polars as pl
import pytest

NAMES = ("gpt/a", "gpt/b", "qwen", "ann", "bob", "cem")


@pytest.fixture
def files(tmp_path):
    """Write labels of three judges and three people, gold of 60 of 200 items, and prices."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=200)
    words = np.array(["no", "yes"])
    rows = []
    for name, accuracy in zip(NAMES, (0.95, 0.75, 0.7, 0.85, 0.85, 0.85), strict=True):
        wrong = rng.random(200) > accuracy
        kind = "person" if name in ("ann", "bob", "cem") else "llm"
        for k in range(200):
            rows.append(f"doc-{k},{name},{words[truth[k] ^ wrong[k]]},{kind},{k // 50}")
    (tmp_path / "labels.csv").write_text("\n".join(["doc,judge,label,kind,week", *rows]) + "\n")
    gold = [f"doc-{k},{words[truth[k]]}" for k in range(60)]
    (tmp_path / "gold.csv").write_text("\n".join(["item,truth", *gold]) + "\n")
    (tmp_path / "prices.csv").write_text("judge,cost\ngpt/a,10\nqwen,0.5\n")
    return tmp_path


RUN = ("judges", "labels.csv", "--item", "doc", "--gold", "gold.csv")


@pytest.fixture
def run(annotrace, files):
    """Return a function that runs the command and returns what it prints."""

    def checked(*options):
        result = annotrace(*RUN, *options)
        assert result.exit_code == 0, result.output
        return result.stdout

    return checked


def test_against_gold(run, files):
    output = run()
    lines = [line.split() for line in output.splitlines()]
    first = next(line for line in lines if line[:1] == ["gpt/a"])
    judges = pl.read_csv(files / "judges" / "judges.csv")
    best = judges.row(by_predicate=pl.col("judge") == "gpt/a", named=True)
    assert first[1:4] == ["200", "60", f"{best['accuracy']:.3f}"]
    assert "6 judges, 200 items, 60 gold items." in output
    assert "its best member (gpt/a)" in output
    assert {path.name for path in (files / "judges").iterdir()} == {
        *("judges.csv", "rates.csv", "panels.csv", "prevalence.csv", "confusion.npz"),
        *("judges.json", "judges.html"),
    }
    with np.load(files / "judges" / "confusion.npz") as saved:
        assert saved["confusion"].sum() == 6 * 60


def test_everything_at_once(run, files):
    output = run(
        *("--kind", "kind", "--time", "week", "--cost", "prices.csv", "--model-of", "/"),
        *("--epsilon", "0.1", "--out", "all", "--no-report", "--seed", 1),
    )
    assert "adds / cost" in output
    assert "3 judges, 200 items" in output
    assert "epsilon 0.1" in output
    assert "Model gpt: two of its 2 runs agree" in output
    found = json.loads((files / "all" / "judges.json").read_text())
    assert {row["period"] for row in found["periods_rows"]} == {"0", "1"}
    costs = {row["judge"]: row["cost"] for row in found["judges_rows"]}
    assert costs == {"gpt/a": 10, "gpt/b": 1, "qwen": 0.5}
    assert len(pl.read_csv(files / "all" / "replacement.csv")) == 9
    assert not (files / "all" / "judges.html").exists()


def test_kinds_and_models_from_files(run, files):
    kinds = "".join(f"{name},{'llm' if '/' in name else 'person'}\n" for name in NAMES)
    (files / "kinds.csv").write_text("annotator,kind\n" + kinds)
    (files / "models.csv").write_text("annotator,model\ngpt/a,GPT\ngpt/b,GPT\n")
    output = run("--kind", "kinds.csv", "--model-of", "models.csv")
    assert "2 judges, 200 items" in output
    assert "Model GPT" in output


def test_the_truth_column_is_gold_too(annotrace, files):
    text = (files / "labels.csv").read_text().replace("week\n", "gold\n", 1)
    head, *rows = text.splitlines()
    rows = [row.rpartition(",")[0] + ("," if k % 2 else ",yes") for k, row in enumerate(rows)]
    (files / "labels.csv").write_text("\n".join([head, *rows]) + "\n")
    result = annotrace("judges", "labels.csv", "--item", "doc", "--truth", "gold")
    assert result.exit_code == 0, result.output
    assert "100 gold items" in result.stdout


def test_nothing_is_overwritten_unless_asked(run, annotrace):
    run("--quiet")
    result = annotrace(*RUN)
    assert result.exit_code == 2
    assert "judges already has judges.csv" in result.stderr
    assert run("--overwrite", "--quiet") == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--gold", "nothing.csv"), "nothing.csv"),
        (("--gold", "labels.csv"), ". Keep one."),
        (("--kind", "colour"), "has no column 'colour'"),
        (("--kind", "label"), ". Keep one."),
        (("--kind", "week"), ". Keep one."),
        (("--time", "year"), "has no column 'year'"),
        (("--cost", "gold.csv"), "has no column 'cost'"),
        (("--model-of", "nothing.csv"), "nothing.csv"),
        (("--epsilon", "1"), "--epsilon"),
        (("--kind", "kind", "--graded"), "names of graded classes to be numbers"),
    ],
)
def test_wrong_input_is_one_line(annotrace, files, options, message):
    result = annotrace("judges", "labels.csv", "--item", "doc", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not (files / "judges").exists()


def test_gold_that_is_not_among_the_labels(annotrace, files):
    (files / "gold.csv").write_text("item,truth\nelsewhere,yes\n")
    result = annotrace(*RUN)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: `gold` has items 'elsewhere'")


def test_further_columns_cannot_come_from_a_pipe(annotrace, files):
    from click.testing import CliRunner

    from annotrace.cli.main import main

    text = (files / "labels.csv").read_text()
    arguments = ["judges", "-", "--item", "doc", "--kind", "kind"]
    result = CliRunner().invoke(main, arguments, input=text)
    assert result.exit_code == 2
    assert "can be read only once" in result.stderr
