import json
import sys
from pathlib import Path

import numpy as np
import pytest
import zoo
from zoo_families import draw_crowd
from zoo_real import FILES, read_crowd

from annotrace.labels import LabelTable


@pytest.fixture(scope="module")
def row():
    return zoo.run(Path(), zoo.Job("sparse", 7))


def test_a_row_describes_the_crowd_and_every_method(row):
    crowd = draw_crowd("sparse", 7)
    assert row["crowd"] == "sparse/7"
    assert (row["items"], row["known"]) == (crowd.table.n_items, crowd.table.n_items)
    assert (row["labels"], row["classes"]) == (crowd.table.n_labels, crowd.table.n_classes)
    assert set(row["accuracy"]) == {*zoo.METHODS, "oracle"} == set(row["balanced_accuracy"])
    right = (crowd.oracle.argmax(axis=1) == crowd.table.truth).mean()
    assert row["accuracy"]["oracle"] == pytest.approx(right, abs=1e-6)
    best = max(zoo.SIMPLE, key=row["accuracy"].get)
    assert row["best_simple"] == best
    apart = row["accuracy"]["default"] - row["accuracy"][best]
    assert row["difference"] == pytest.approx(apart, abs=1e-5)
    assert json.loads(json.dumps(row)) == row


def test_ties_count_evenly_and_unknown_truth_does_not():
    table = LabelTable.from_codes(
        [0, 0, 1, 1, 2, 2], [0, 1] * 3, [0, 1, 1, 1, 0, 0], truth=[0, 1, -1]
    )
    row = zoo.measure(table)
    assert row["known"] == 2
    assert row["accuracy"]["majority"] == 0.75
    assert row["balanced_accuracy"]["majority"] == 0.75


def test_balanced_accuracy_is_the_mean_over_classes():
    table = LabelTable.from_codes(
        np.arange(5).repeat(2), [0, 1] * 5, [0] * 6 + [1, 1, 0, 0], truth=[0, 0, 0, 1, 1]
    )
    row = zoo.measure(table)
    assert row["accuracy"]["majority"] == 0.8
    assert row["balanced_accuracy"]["majority"] == 0.75


def test_the_standard_error_is_paired():
    same, other = np.array([1.0, 0, 1, 1]), np.array([0.0, 0, 1, 1])
    correct = dict.fromkeys(zoo.METHODS, other) | {"mace": same, "default": other}
    found = zoo.compare(correct)
    assert found["best_simple"] == "mace"
    assert found["difference"] == -0.25
    # One of four differences is -1: their deviation is .5, and that of the mean .25.
    assert found["difference_se"] == 0.25
    assert zoo.compare(correct | {"default": same})["difference_se"] == 0


def test_a_run_resumes_after_the_crowds_it_has(row, tmp_path):
    out = tmp_path / "zoo.jsonl"
    out.write_text(json.dumps(row | {"seconds": -1}) + "\n")
    jobs = [zoo.Job("sparse", 7), zoo.Job("sparse", 8)]
    added = list(zoo.run_missing(jobs, out, tmp_path, workers=1))
    assert [each["crowd"] for each in added] == ["sparse/8"]
    assert [each["seconds"] == -1 for each in zoo.read_rows(out)] == [True, False]


def test_the_plan_is_real_crowds_and_draws_of_families():
    jobs = zoo.plan(["camps", "real", "independent"], range(5, 7))
    drawn = ["independent/5", "independent/6", "camps/5", "camps/6"]
    assert [job.key for job in jobs] == [*FILES, *drawn]


def test_arrays_and_tables_are_read_alike(tmp_path):
    (tmp_path / "crowd" / "label_only").mkdir(parents=True)
    labels, truth = np.array([[0, 1, -1], [2, -1, 2]]), np.array([1, 2])
    np.savez(tmp_path / "crowd" / "labelme.npz", A=labels, y_train=truth)
    lines = ["item,annotator,label,truth", "a,x,0,1", "a,y,1,1", "b,x,2,2", "b,z,2,2"]
    (tmp_path / "crowd" / "label_only" / "dog.csv.gz").write_text("\n".join(lines))
    array, table = (read_crowd(name, tmp_path) for name in ("labelme", "dog"))
    for part in ("item", "annotator", "label", "truth"):
        assert np.array_equal(getattr(array, part), getattr(table, part))


@pytest.fixture
def call(monkeypatch, capsys):
    def call_main(*arguments):
        monkeypatch.setattr(sys, "argv", ["zoo.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            zoo.main()
        return left.value.code, "".join(capsys.readouterr())

    return call_main


def test_unknown_families_are_refused(call, tmp_path):
    code, said = call("--only", "camps,camp", "--out", tmp_path / "zoo.jsonl")
    assert code == 2
    assert "but got ['camp']" in said


@pytest.mark.parametrize(("missed", "code"), [([], 0), (["web: too low"], 1)])
def test_check_exits_with_one_if_a_bar_is_missed(call, monkeypatch, row, tmp_path, missed, code):
    (tmp_path / "zoo.jsonl").write_text(json.dumps(row) + "\n")
    monkeypatch.setattr(zoo, "missed_bars", lambda rows: missed)
    found, said = call("--check", "--summary", "--out", tmp_path / "zoo.jsonl")
    assert found == code
    assert "| sparse | " in said
    assert (missed or ["All bars are met."])[0] in said
