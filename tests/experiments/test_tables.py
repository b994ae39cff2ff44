from made_up import made_up, planned

from annotrace.experiments.tables import by_method, markdown, mean_and_deviation, write_page


def test_mean_and_deviation():
    assert mean_and_deviation([1.0, 2.0, 3.0]) == "2.00 ± 1.00"
    assert mean_and_deviation([2.5]) == "2.50"
    assert mean_and_deviation([]) == ""


def test_numbers_stand_on_the_right():
    table = markdown(["method", "accuracy"], [["trace", "81"]])
    assert table == "| method | accuracy |\n| --- | ---: |\n| trace | 81 |"


def test_the_run_that_starts_the_device_does_not_weigh_on_the_seconds():
    plan = planned("cifar10-table", methods=("trace",), densities=(4,))
    results = [
        made_up(run) | {"seconds": took} for run, took in zip(plan, (20, 13, 12.5), strict=True)
    ]
    assert by_method(results, ("trace", "vanilla"), 4).endswith("| 13.0 |")


def page_of(results, folder):
    return write_page(folder / "page.md", "Title", results, ["part"]).read_text()


def test_a_page_says_what_its_runs_were_made_by(tmp_path):
    results = [made_up(run) for run in planned("cifar10-table", methods=("trace",))]
    for result, version in zip(results, ["0.2.0", *["0.1.0"] * 5], strict=True):
        result["versions"] = {"annotrace": version, "torch": "2.6.0"}
    assert "annotrace 0.1.0 and 0.2.0, torch 2.6.0." in page_of(results, tmp_path)


def test_a_page_names_the_methods_whose_epoch_was_chosen_by_something_else(tmp_path):
    options = {"methods": ("trace", "vanilla", "crossfit"), "protocol": "paper"}
    results = [made_up(run) for run in planned("cifar10-table", **options)]
    for result in results:
        result["selection"] = "likelihood" if result["method"] == "crossfit" else "truth"
    assert (
        "epoch chosen by accuracy against the truth of held-out items, epoch chosen by the "
        "likelihood of held-out labels for cross-fitted EM (ours), 18 runs"
    ) in page_of(results, tmp_path)
