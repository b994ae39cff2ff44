import json
import signal
import subprocess
import sys
from pathlib import Path

import bench
import bench_plan
import contenders
import numpy as np
import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
SMALL = (40, 6, 3, 4)


def case(library="annotrace", method="dawid-skene", **given):
    return bench_plan.Case(**{"part": "S", "sizes": SMALL} | given, library=library, method=method)


def runner(tmp_path, pythons=None, gigabytes=2.0):
    return bench.Runner(tmp_path, pythons or {}, bench.Limits(gigabytes, 60))


def test_crowds_have_every_library_and_references_only_if_given():
    libraries = [each.library for each in bench_plan.plan("L")]
    assert set(libraries) == {"annotrace", *bench_plan.PEERS}
    with_references = bench_plan.plan("L", references=True)
    assert {each.library for each in with_references} - set(libraries) == {"scipy.sparse", "numpy"}
    assert set(contenders.CONTENDERS) == {each.library for each in with_references}


@pytest.mark.parametrize(("part", "place"), [("labels", 0), ("annotators", 1), ("classes", 2)])
def test_curves_grow_in_one_size_only(part, place):
    sizes = {each.sizes for each in bench_plan.plan(part)}
    grown, *fixed = (set(column) for column in zip(*(_moved(s, place) for s in sizes), strict=True))
    assert len(grown) > 2
    assert all(len(each) == 1 for each in fixed)


def _moved(sizes, place):
    return sizes[place], *sizes[:place], *sizes[place + 1 :]


def test_the_curve_of_labels_has_the_given_points():
    cases = bench_plan.plan("labels", labels=[1_000, 20_000_000])
    assert {each.sizes[0] * each.sizes[3] for each in cases} == {1_000, 20_000_000}


def test_the_fastest_run_counts_and_slow_or_stopped_contenders_run_once():
    times = {"quick": [3.0, 1.0, 2.0], "slow": [bench.SLOW + 1], "stopped": [None]}
    ran = []

    def run(each):
        ran.append(each.library)
        seconds = times[each.library].pop(0)
        return {"stopped": "time"} if seconds is None else {"cpu_seconds": seconds}

    rows = bench.compete([case(name) for name in times], run, repeats=3)
    assert rows == [{"cpu_seconds": 1.0}, {"cpu_seconds": bench.SLOW + 1}, {"stopped": "time"}]
    assert ran == ["quick", "slow", "stopped", "quick", "quick"]


def test_a_run_that_fails_later_does_not_replace_an_earlier_one():
    rows = [{"cpu_seconds": 1.0}, {"stopped": "error"}]
    assert bench.compete([case()], lambda _: rows.pop(0), repeats=2) == [{"cpu_seconds": 1.0}]


ALLOCATION = "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array"


@pytest.mark.parametrize(
    ("returncode", "stderr", "stopped", "message"),
    [
        (1, f"Traceback\n{ALLOCATION}\n  0%|  | 0/20", "memory", ALLOCATION),
        (1, "MemoryError\n", "memory", "MemoryError"),
        (1, "RuntimeError: can't allocate memory", "memory", "RuntimeError: can't allocate memory"),
        (-signal.SIGXCPU, "", "time", "the limit of processor time"),
        (1, "ValueError: no", "error", "ValueError: no"),
        (-6, "", "error", "ended with status -6"),
    ],
)
def test_why_a_contender_stopped(returncode, stderr, stopped, message):
    assert bench.why_stopped(returncode, stderr) == {"stopped": stopped, "message": message}


def test_labels_are_distinct_and_belong_to_their_items():
    made = bench_plan.distinct_labels((500, 7, 3, 5))
    pairs = set(zip(made["item"], made["annotator"], strict=True))
    assert len(pairs) == len(made["label"]) < 2_500
    assert set(made["item"]) == set(range(500))
    correct = made["label"] == made["truth"][made["item"]]
    assert correct.mean() > 0.6


def test_rows_replace_those_of_the_same_part(tmp_path):
    path = tmp_path / "new" / "bench.jsonl"
    bench.replace_parts(path, [{"part": "S", "x": 1}, {"part": "L", "x": 2}])
    bench.replace_parts(path, [{"part": "S", "x": 3}, {"part": "S", "x": 4}])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows == [{"part": "L", "x": 2}, {"part": "S", "x": 3}, {"part": "S", "x": 4}]


def test_a_library_that_cannot_be_installed_is_a_row(tmp_path, monkeypatch):
    def fail(folder, *_):
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(bench, "make_environment", fail)
    pythons = bench.install(["crowd-kit", "cleanlab"], tmp_path)
    row = runner(tmp_path, pythons)(case("cleanlab", "majority"))
    assert row["stopped"] == "install"
    assert "returned non-zero exit status 1" in row["message"]
    assert row["load"] >= 0


def test_missing_labels_are_nan_in_a_wide_table_and_absent_from_answers():
    labels = contenders.Labels(*np.array([[0, 0, 1], [0, 2, 1], [1, 0, 1]]), sizes=(2, 3, 2))
    np.testing.assert_array_equal(labels.wide(), [[1, np.nan, 0], [np.nan, 1, np.nan]])
    assert labels.answers() == {0: {0: 1, 2: 0}, 1: {1: 1}}


@linux
def test_our_majority_vote_in_a_process_of_its_own(tmp_path):
    row = runner(tmp_path)(case(method="majority"))
    data = np.load(next(tmp_path.glob("*.npz")))
    votes = np.zeros((40, 3))
    np.add.at(votes, (data["item"], data["label"]), 1)
    # A tie may go either way.
    certain = votes.max(1) > np.sort(votes, 1)[:, 1]
    right = (votes.argmax(1) == data["truth"])[certain].sum()
    assert right <= round(40 * row["accuracy"]) <= right + (~certain).sum()
    assert row["cpu_seconds"] > 0
    assert row["megabytes"] >= 0


@linux
def test_a_reference_that_allocates_too_much_is_a_row(tmp_path):
    file = tmp_path / "reference.py"
    lines = ["import numpy as np", "def ds_numpy(*args, iters):", "    n = args[3]"]
    lines += ["    return np.zeros((n, 3 if n == 40 and args[4] == 5 else 10**9)), None"]
    file.write_text("\n".join(lines))
    run = bench.Runner(tmp_path, {}, bench.Limits(1.0, 60), file)
    row = run(case("numpy"))
    assert row["stopped"] == "memory"
    assert "Unable to allocate 298. GiB" in row["message"]


@linux
def test_a_reference_that_does_not_end_is_a_row(tmp_path):
    file = tmp_path / "reference.py"
    lines = ["import numpy as np", "def ds_numpy(*args, iters):"]
    lines += ["    while args[4] == 6: pass", "    return np.zeros((40, 3)), None"]
    file.write_text("\n".join(lines))
    run = bench.Runner(tmp_path, {}, bench.Limits(1.0, 0.5), file)
    assert run(case("numpy"))["stopped"] == "time"


def test_a_missing_file_of_references_leaves_them_out(tmp_path, monkeypatch, capsys):
    planned = []

    def plan(part, *, labels, references):
        planned.append((part, references))
        return []

    monkeypatch.setattr(bench, "plan", plan)
    missing = Path("no") / "reference.py"
    monkeypatch.setattr(sys, "argv", ["bench.py", "labels", "--reference", str(missing)])
    bench.main()
    assert planned == [("labels", False)]
    assert f"{missing} does not exist: the references are left out." in capsys.readouterr().out
