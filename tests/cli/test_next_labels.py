import gzip
import json

import numpy as np
import polars as pl
import pytest

from annotrace.labels.delimited import read_delimited

COLUMNS = ("--item", "photo", "--annotator", "who", "--label", "said")
HOSTILE = ["=cmd()|' /C'!A0", "<b>x</b>", "a,b", 'say "hi"', "שלום", "-1", "@sum", "x" * 500]


@pytest.fixture
def run(annotrace, crowd):
    assert annotrace("aggregate", "labels.csv", *COLUMNS, "--out", "run").exit_code == 0
    return crowd / "run"


@pytest.fixture
def sparse(annotrace, tmp_path):
    """A run of 40 items, two of whose labels differ: 8 annotators, each with 10 labels."""
    rng = np.random.default_rng(0)
    rows = [
        f"i{k},{who},{'cat' if rng.random() < (0.9 if k % 2 else 0.1) else 'dog'}"
        for k in range(40)
        for who in (f"p{k % 8}", f"p{(k + 1 + k // 8) % 8}")
    ]
    (tmp_path / "sparse.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    assert (
        annotrace("aggregate", "sparse.csv", "--method", "dawid-skene", "--out", "run").exit_code
        == 0
    )
    return tmp_path


def given(path):
    return set(pl.read_csv(path).select("item", "annotator").rows())


def test_the_next_labels_of_an_aggregation(annotrace, sparse):
    result = annotrace("next", "run", "--budget", 12)
    assert result.exit_code == 0, result.output
    asked = pl.read_csv(sparse / "run" / "next.csv")
    assert asked.columns == ["item", "annotator", "priority", "expected_gain", "reason"]
    assert len(asked) == 12
    assert not given(sparse / "run" / "next.csv") & given(sparse / "sparse.csv")
    assert "12 labels of 12 items to collect" in result.output
    assert asked["reason"][0] in result.output


def test_the_next_labels_of_a_classifier(annotrace, crowd):
    fit = ("fit", "labels.csv", *COLUMNS, "--features", "features.npz", "--method", "vanilla")
    assert annotrace(*fit, "--epochs", 1, "--out", "run").exit_code == 0
    (crowd / "people.csv").write_text("annotator,capacity\nann,\ndora,4\n")
    args = ("--budget", 20, "--annotators", "people.csv", "--out", "ask.csv")
    result = annotrace("next", "run", *args)
    assert result.exit_code == 0, result.output
    # Ann has labelled everything.
    assert pl.read_csv(crowd / "ask.csv")["annotator"].to_list() == ["dora"] * 4


def test_a_saved_run_gives_what_its_model_gives(annotrace, sparse):
    import annotrace as at

    assert annotrace("next", "run", "--budget", 9, "--quiet").output == ""
    table = at.LabelTable.read(sparse / "sparse.csv")
    expected = at.allocate(at.aggregation.make("dawid-skene", random_state=0).fit(table), 9)
    asked = pl.read_csv(sparse / "run" / "next.csv")
    assert asked.drop("expected_gain").rows() == expected.drop("expected_gain").rows()


PEOPLE = "p0,2,\np1,,0.5\np2,1,9\nnew,,\n"


def test_capacity_and_cost_come_from_a_file(annotrace, sparse):
    people = f"annotator,capacity,cost\n{PEOPLE}"
    (sparse / "people.csv").write_text(people)
    (sparse / "odd.csv").write_text(f"Annotator, Capacity,COST \n{PEOPLE}")
    (sparse / "people.csv.gz").write_bytes(gzip.compress(people.encode()))
    written = []
    for name in ("people.csv", "odd.csv", "people.csv.gz"):
        args = ("--budget", 8, "--annotators", name, "--capacity", 3, "--at-least", 0)
        assert annotrace("next", "run", *args, "--out", f"{name}.out").exit_code == 0
        written.append((sparse / f"{name}.out").read_bytes())
    assert len(set(written)) == 1
    counts = dict(pl.read_csv(written[0])["annotator"].value_counts().rows())
    assert counts["p1"] == 3
    assert counts.get("p0", 0) <= 2
    assert "p2" not in counts
    assert counts.get("new", 0) <= 3


def test_hostile_names_come_out_as_themselves(annotrace, tmp_path):
    table = pl.DataFrame({"item": HOSTILE, "annotator": HOSTILE, "label": ["=1", "b"] * 4})
    table.write_csv(tmp_path / "labels.csv")
    assert annotrace("aggregate", "labels.csv", "--out", "run").exit_code == 0
    result = annotrace("next", "run", "--budget", 8)
    assert result.exit_code == 0, result.output
    guarded, _ = read_delimited((tmp_path / "run" / "next.csv").read_bytes(), "next.csv")
    assert annotrace("next", "run", "--budget", 8, "--raw", "--overwrite").exit_code == 0
    raw = pl.read_csv(tmp_path / "run" / "next.csv", infer_schema=False)
    for asked in (guarded, raw):
        assert set(asked["item"]) == set(HOSTILE)
        assert set(asked["annotator"]) <= set(HOSTILE)


def test_nothing_to_ask_is_said(annotrace, run):
    message = "without rows: everybody who can be asked has labelled every item; add others"
    result = annotrace("next", "run", "--budget", 5)
    assert result.exit_code == 0
    assert message in result.output
    (run.parent / "people.csv").write_text("annotator\nann\n")
    result = annotrace("next", "run", "--budget", 5, "--annotators", "people.csv", "--overwrite")
    assert message in result.output


def test_why_nobody_is_asked_is_said(annotrace, sparse):
    def output(*args):
        result = annotrace("next", "run", "--overwrite", *args)
        assert result.exit_code == 0, result.output
        return result.output

    nobody = output("--budget", 5, "--capacity", 0)
    assert "without rows: nobody can be asked, since every capacity is 0." in nobody
    (sparse / "people.csv").write_text("annotator,capacity,cost\np0,,9\np1,,2.5\np2,0,1\n")
    poor = output("--budget", 2, "--annotators", "people.csv")
    assert "without rows: the cheapest label costs 2.5, and the budget is 2." in poor


def test_nothing_to_gain_is_said(annotrace, tmp_path):
    # Ten annotators agree on every item but the last, which one of them has not labelled.
    rows = [f"i{k},p{who},{'ab'[k % 2]}" for k in range(40) for who in range(10)][:-1]
    (tmp_path / "labels.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    assert annotrace("aggregate", "labels.csv", "--out", "run").exit_code == 0
    result = annotrace("next", "run", "--budget", 5)
    assert "without rows: no possible label would gain anything." in result.output


def test_newcomers_are_reported_and_those_who_may_be_known(annotrace, sparse):
    names = ["p0", "P1 ", "p2.", "p33", "kim"]
    (sparse / "people.csv").write_text("\n".join(["annotator", *names]) + "\n")
    output = annotrace("next", "run", "--budget", 5, "--annotators", "people.csv").output
    assert "Note: 'P1 ' is not in the labels, but 'p1' is: write them alike if they are" in output
    assert "Note: 'p2.' is not in the labels, but 'p2' is" in output
    assert output.count("Note: ") == 2
    assert "4 new annotators without labels ('P1 ', 'p2.', 'p33', 'kim')" in output
    assert "new annotators" not in annotrace("next", "run", "--budget", 5, "--overwrite").output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("none", "--budget", 5), "none: no run here"),
        (("run", "--budget", "inf"), "to be a number larger than 0, but got inf"),
        (("run", "--budget", 5, "--out", "labels.csv"), "already exists"),
        (("run", "--budget", 5, "--annotators", "absent.csv"), "absent.csv: no such file"),
        (("run", "--budget", 5, "--annotators", "labels.csv"), "expected a column 'annotator'"),
        (("run", "--budget", 5, "--annotators", "bad.csv"), "row 3, column 'capacity'"),
        (("run", "--budget", 5, "--annotators", "twice.csv"), "'ann' occurs more than once"),
        (("run", "--budget", 5, "--annotators", "empty.csv"), "empty.csv is empty"),
        (
            ("run", "--budget", 5, "--annotators", "typo.csv"),
            "unknown column 'capcity'. The",
        ),
        (("run", "--budget", 5, "--annotators", "same.csv"), "2 and 3 are both named 'cost'"),
        (
            ("run", "--budget", 5, "--annotators", "nameless.csv"),
            "row 3, column 'annotator' is empty",
        ),
        (("run", "--budget", 5, "--annotators", "dear.csv"), "cost of a label by ann to be above"),
    ],
)
def test_bad_input_is_one_line(annotrace, run, args, message):
    (run.parent / "bad.csv").write_text("annotator,capacity\nann,3\nbob,many\n")
    (run.parent / "twice.csv").write_text("annotator,capacity\nann,3\nann,4\n")
    (run.parent / "empty.csv").touch()
    (run.parent / "typo.csv").write_text("annotator,capcity\nann,3\n")
    (run.parent / "same.csv").write_text("annotator,cost,Cost\nann,3,4\n")
    (run.parent / "nameless.csv").write_text("annotator,capacity\nann,3\n,3\n")
    (run.parent / "dear.csv").write_text("annotator,cost\nann,0\n")
    result = annotrace("next", *args)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line
    assert not (run / "next.csv").exists()


def test_a_run_without_its_model_or_with_a_damaged_one_is_rejected(annotrace, run):
    (run / "model.safetensors").write_bytes(b"nothing")
    result = annotrace("next", "run", "--budget", 5)
    assert result.exit_code == 2
    assert "model.safetensors: damaged, its content is not what run.json says" in result.stderr
    (run / "model.safetensors").unlink()
    result = annotrace("next", "run", "--budget", 5)
    assert result.exit_code == 2
    assert "no model.safetensors in it" in result.stderr


def test_a_damaged_description_is_rejected(annotrace, run):
    (run / "run.json").write_text(json.dumps([1]))
    assert annotrace("next", "run", "--budget", 5).exit_code == 2
