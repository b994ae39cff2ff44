import json
import re

import numpy as np
import polars as pl
import pytest

import annotrace as at
from annotrace.aggregation import list_aggregations
from annotrace.diagnosis.confidence import independent_posterior
from annotrace.report.overview import overview_of
from annotrace.report.view import view_of

COLUMNS = ("--item", "photo", "--annotator", "who", "--label", "said", "--truth", "gold")


@pytest.mark.parametrize("method", [entry.name for entry in list_aggregations()])
def test_every_method_writes_truth_and_annotators(annotrace, crowd, method):
    result = annotrace("aggregate", "labels.csv", *COLUMNS, "--method", method, "--out", "run")
    assert result.exit_code == 0, result.output
    truth = pl.read_csv(crowd / "run" / "truth.csv")
    assert truth.columns == ["item", "label", "confidence", "cat", "dog", "hen"]
    assert truth["label"].to_list() == ["cat", "dog", "hen"] * 30
    annotators = pl.read_csv(crowd / "run" / "annotators.csv")
    assert annotators.columns == [
        *("annotator", "n_labels", "skill", "low", "high"),
        *("accuracy", "accuracy_low", "accuracy_high", "flags"),
    ]
    assert annotators.sort("skill")["annotator"][0] == "cy"
    with np.load(crowd / "run" / "confusion.npz") as saved:
        assert saved["confusion"].shape == (3, 3, 3)
    assert json.loads((crowd / "run" / "run.json").read_text())["method"] == method


def test_the_structure_of_matrices_can_be_chosen(annotrace, crowd):
    (crowd / "tree.csv").write_text("class,parent\ncat,mammal\ndog,mammal\nhen,bird\n")
    args = ("aggregate", "labels.csv", *COLUMNS, "--out", "run", "--overwrite")
    chosen = ("--structure", "taxonomy", "--taxonomy", "tree.csv")
    result = annotrace(*args, "--method", "dawid-skene", *chosen)
    assert result.exit_code == 0, result.output
    assert at.load(crowd / "run").groups_.tolist() == [0, 0, 1]
    auto = annotrace(*args, "--method", "dawid-skene", "--structure", "auto", *chosen[2:])
    assert auto.exit_code == 0, auto.output
    refused = annotrace(*args, "--structure", "low-rank")
    assert (refused.exit_code, refused.stderr) == (
        2,
        "Error: --structure applies to --method dawid-skene, not to ensemble.\n",
    )


def test_a_vote_that_was_read_back_is_as_confident_as_before(annotrace, crowd):
    annotrace("aggregate", "labels.csv", *COLUMNS, "--method", "majority", "--out", "run")
    written = pl.read_csv(crowd / "run" / "truth.csv")["confidence"]
    np.testing.assert_allclose(at.load(crowd / "run").confidence_, written, atol=1e-6)


def test_known_classes_are_learned_from_and_no_score(annotrace, crowd):
    rows = (crowd / "labels.csv").read_text().splitlines()
    gold = {f"photo-{k}": ("dog", "hen", "cat")[k % 3] for k in range(0, 90, 2)}
    rows[1:] = [
        ",".join([*row.split(",")[:3], gold.get(row.split(",")[0], "")]) for row in rows[1:]
    ]
    (crowd / "labels.csv").write_text("\n".join(rows) + "\n")
    result = annotrace("aggregate", "labels.csv", *COLUMNS, "--learn-truth", "--out", "run")
    assert result.exit_code == 0, result.output
    assert "truth 'gold' (for training, not for evaluation)" in result.stdout
    assert "No accuracy" in result.stdout
    truth = dict(pl.read_csv(crowd / "run" / "truth.csv").select("item", "label").rows())
    # All known classes are swapped, so the others are too.
    assert truth == {f"photo-{k}": ("dog", "hen", "cat")[k % 3] for k in range(90)}
    run = at.load(crowd / "run")
    np.testing.assert_array_equal(run.confidence_[::2], 1)
    assert overview_of(view_of(run)).truth.n_measured is None


def test_labels_given_back_are_not_called_correct(annotrace, tmp_path):
    rows = [f"photo-{k},{'abc'[k % 3]},{('cat', 'dog', 'hen')[k // 3 % 3]}" for k in range(90)]
    (tmp_path / "labels.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    assert annotrace("aggregate", "labels.csv", "--out", "run").exit_code == 0
    truth = pl.read_csv(tmp_path / "run" / "truth.csv")
    assert truth["label"].to_list() == [row.split(",")[2] for row in rows]
    np.testing.assert_allclose(truth["confidence"], 0.5)
    found = overview_of(view_of(at.load(tmp_path / "run")))
    assert (found.labels, found.truth, found.n_uncertain, found.n_wrong) == (None, None, 90, 0)
    report = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert report.count("unknown: no item has two labels to compare") == 2


def test_agreement_and_accuracy_are_reported(annotrace, crowd):
    output = annotrace("aggregate", "labels.csv", *COLUMNS, "--out", "run").stdout
    assert "90 items, 3 annotators, 270 labels" in output
    # Each of 30 items has the labels cat, cat, dog: 4 of its 6 ordered pairs differ, and a pair
    # weighs 1 / (3 - 1). Expected by chance from 60 cats, 120 dogs and 90 hens.
    alpha = 1 - (270 - 1) * (30 * 4 / 2) / (270**2 - 60**2 - 120**2 - 90**2)
    assert f"0 chance): {alpha:.3f}" in output
    assert ["majority", "vote", "1.000", "1.000"] in [line.split() for line in output.splitlines()]


def test_help_names_every_method(annotrace):
    output = "".join(annotrace("aggregate", "--help").output.split())
    assert all(entry.name in output for entry in list_aggregations())


def test_one_label_per_item_has_no_agreement(annotrace, crowd):
    (crowd / "one.csv").write_text("item,worker,label\na,x,1\nb,y,0\nc,x,0\n")
    result = annotrace("aggregate", "one.csv", "--method", "majority", "--out", "run")
    assert result.exit_code == 0, result.output
    assert "unknown, no item has two labels" in result.stdout


def test_ties_are_broken_by_the_seed_in_truth_csv_too(annotrace, crowd):
    rows = [f"{k},{who},{label}" for k in range(40) for who, label in (("a", "no"), ("b", "yes"))]
    (crowd / "ties.csv").write_text("\n".join(["item,worker,label", *rows]))
    result = annotrace("aggregate", "ties.csv", "--method", "majority", "--out", "run")
    assert "40 items are ties" in result.stdout
    labels = pl.read_csv(crowd / "run" / "truth.csv")["label"]
    assert set(labels) == {"no", "yes"}
    run = at.load(crowd / "run")
    assert run.predict().tolist() == labels.to_list()


@pytest.mark.parametrize("method", ["hierarchical", "majority"])
def test_confidence_in_truth_csv_is_that_of_the_run_and_of_the_report(annotrace, crowd, method):
    (crowd / "labels2.csv").write_text(
        "item,worker,label\n"
        + "".join(
            f"{k},{who},{(k + (k % mistake == 0)) % 3}\n"
            for k in range(60)
            for who, mistake in (("a", 5), ("b", 7), ("c", 2))
        )
    )
    annotrace("aggregate", "labels2.csv", "--method", method, "--out", "run")
    truth = pl.read_csv(crowd / "run" / "truth.csv")
    run = at.load(crowd / "run")
    np.testing.assert_allclose(truth["confidence"], run.confidence_, atol=1e-5)
    np.testing.assert_allclose(truth["confidence"], view_of(run).confidence, atol=1e-5)
    assert truth["confidence"].mean() < independent_posterior(run.result_).max(axis=1).mean()


def test_numbers_have_six_digits(annotrace, crowd):
    annotrace("aggregate", "labels.csv", *COLUMNS, "--out", "run")
    for name in ("truth.csv", "annotators.csv"):
        text = (crowd / "run" / name).read_text()
        numbers = re.findall(r"(?<![\w.])\d+\.\d+", text)
        assert numbers
        assert [n for n in numbers if len(n.replace(".", "").lstrip("0")) > 6] == []


def test_too_few_iterations_are_reported_with_the_option_name(annotrace, crowd):
    args = ("--method", "dawid-skene", "--max-iter", 1, "--quiet", "--out", "run")
    result = annotrace("aggregate", "labels.csv", *COLUMNS, *args)
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: DawidSkene had not converged after 1 iterations")
    assert "increase --max-iter, or accept" in result.stderr


def test_a_classifier_of_an_earlier_run_is_replaced(annotrace, crowd):
    (crowd / "run").mkdir()
    (crowd / "run" / "model.safetensors").write_bytes(b"")
    args = ("aggregate", "labels.csv", *COLUMNS, "--out", "run")
    assert annotrace(*args).exit_code == 2
    assert annotrace(*args, "--overwrite").exit_code == 0
    assert isinstance(at.load(crowd / "run"), at.aggregation.Hierarchical)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--method", "magic"), "There is no aggregation 'magic'; there are ensemble,"),
        (("--truth", "none"), "labels.csv has no column 'none'"),
        (("--class", "cat", "--class", "hen"), "'dog'"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(annotrace, crowd, args, message):
    result = annotrace("aggregate", "labels.csv", *COLUMNS, *args, "--out", "out")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line
    assert not (crowd / "out").exists()
