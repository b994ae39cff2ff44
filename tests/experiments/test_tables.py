from made_up import made_up

from annotrace.experiments import cifar10_table
from annotrace.experiments.options import Options
from annotrace.experiments.plans import make_plan
from annotrace.experiments.tables import markdown, mean_and_deviation


def test_mean_and_deviation():
    assert mean_and_deviation([1.0, 2.0, 3.0]) == "2.00 ± 1.00"
    assert mean_and_deviation([2.5], places=1) == "2.5"
    assert mean_and_deviation([]) == ""


def test_numbers_stand_on_the_right():
    table = markdown(["method", "accuracy"], [["trace", "81"]])
    assert table == "| method | accuracy |\n| --- | ---: |\n| trace | 81 |"


def test_table_1_has_the_papers_numbers_beside_ours_in_both_units():
    options = Options(methods=("trace", "vanilla"))
    results = [made_up(run) for run in make_plan(cifar10_table.EXPERIMENT, options)]
    for seed, result in enumerate(results):
        result["accuracy"] = 0.88 + 0.01 * (seed // 2 % 3)
    page = cifar10_table.table(results)
    dense, single = (line for line in page.splitlines() if line.startswith("| trace |"))
    assert "| 81.23 ± 0.21 | 89.00 ± 1.00 | 0.72 ± 0.01 | 7.2 |" in dense
    assert "| 77.65 ± 0.31 | 89.00 ± 1.00 | 1.22 ± 0.01 | 12.2 |" in single
    assert "| MBEM | 73.33 ± 0.46 |  | 2.53 ± 0.24 | 25.3 |  |  |" in page
    assert "cannot have been made so" in page


def test_the_run_that_starts_the_device_does_not_weigh_on_the_seconds():
    plan = make_plan(cifar10_table.EXPERIMENT, Options(methods=("trace",), densities=(4,)))
    results = [
        made_up(run) | {"seconds": took} for run, took in zip(plan, (20, 13, 12.5), strict=True)
    ]
    (row,) = (r for r in cifar10_table.table(results).splitlines() if r.startswith("| trace | 81"))
    assert row.endswith("| 13.0 |")


def test_a_page_says_what_its_runs_were_made_by():
    plan = make_plan(cifar10_table.EXPERIMENT, Options(methods=("trace",)))
    results = [made_up(run) for run in plan]
    for result, version in zip(results, ["0.2.0", *["0.1.0"] * 5], strict=True):
        result["versions"] = {"annotrace": version, "torch": "2.6.0"}
    assert "annotrace 0.1.0 and 0.2.0, torch 2.6.0." in cifar10_table.table(results)


def test_a_page_names_the_methods_whose_epoch_was_chosen_by_something_else():
    options = Options(methods=("trace", "vanilla", "crossfit"), protocol="paper")
    results = [made_up(run) for run in make_plan(cifar10_table.EXPERIMENT, options)]
    for result in results:
        result["selection"] = "likelihood" if result["method"] == "crossfit" else "truth"
    assert (
        "epoch chosen by accuracy against the truth of held-out items, epoch chosen by the "
        "likelihood of held-out labels for cross-fitted EM (ours), 18 runs"
    ) in cifar10_table.table(results)
