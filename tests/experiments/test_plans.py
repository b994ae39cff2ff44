"""What was asked for is in the plan, or is refused before anything runs."""

import pytest

from annotrace.errors import InputError
from annotrace.experiments.options import Options
from annotrace.experiments.plans import make_plan
from annotrace.experiments.registry import find_experiment


def planned(name, **options):
    return make_plan(find_experiment(name), Options(**options))


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        (("random_state", 3), "give --seeds"),
        (("device", "cpu"), "give --device"),
        (("protocol", "paper"), "give --protocol"),
        (("confusion", [[1]]), "the oracle has the matrices of its crowd"),
        (("callbacks", []), "a sweep has its own"),
        (("verbose", True), "a sweep shows its runs"),
        (("checkpoint", "file"), "a sweep goes on where it was"),
        (("warm_start", True), "every run begins anew"),
    ],
)
def test_settings_that_runs_are_given_are_not_to_be_set(setting, remedy):
    with pytest.raises(InputError, match=f"^--set {setting[0]}: {remedy}"):
        planned("mnist-em", set=(setting,))


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("mnist-sensitivity", {"set": (("lam", 0.5),)}, "--set lam=0.5: .* has 0.1, 0.01, 0.001"),
        ("mnist-sensitivity", {"set": (("lam", 0.1),)}, "--set lam=0.1: .* has 0.1, 0.01, 0.001"),
        ("mnist-sensitivity", {"set": (("steps", 1),)}, "--set steps=1: .* has 2, 10, 20, 93"),
        ("mnist-sensitivity", {"seeds": 3}, "--seeds 3: mnist-sensitivity has 1"),
        ("mnist-sensitivity", {"skills": (0.9,)}, "--skills 0.9: mnist-sensitivity has 0.35"),
        ("mnist-sensitivity", {"densities": (1,)}, "--densities 1: mnist-sensitivity has 5"),
        ("mnist-sensitivity", {"select": "truth"}, "--select truth: .* has nothing to choose"),
        ("cardiac", {"densities": (1,)}, "--densities 1: cardiac has 2"),
        ("cardiac", {"skills": (0.5,)}, "--skills 0.5: cardiac has nothing to choose"),
        ("annotators", {"skills": (0.9,)}, "--skills 0.9: annotators has 0.3, 0.5"),
        ("annotators", {"skills": (0.3,)}, "--skills 0.3: annotators has 0.3, 0.5"),
        ("annotators", {"seeds": 4}, "--seeds 4: annotators has 1"),
        ("annotators", {"methods": ("foo",)}, "--methods foo: annotators has annotators"),
        ("annotators", {"limit_items": 9}, "--limit-items 9: annotators has nothing to choose"),
        ("cifar10-table", {"skills": (0.5,)}, "--skills 0.5: cifar10-table has nothing"),
        ("digits", {"skills": (0.5, 0.3)}, "--skills 0.5,0.3: digits has 0.4"),
        ("mnist-em", {"vanilla_decay": 0.1}, "--vanilla-decay 0.1: mnist-em has nothing"),
        ("digits", {"set": (("lr", 0.1), ("lr", 0.2))}, "--set lr=0.1: digits has 0.2"),
        ("digits", {"set": (("lr", 0.1), ("lr", 0.001))}, "--set lr=0.1: digits has 0.001"),
        ("annotators", {"protocol": "paper"}, "--protocol paper: annotators has fast"),
        (
            "digits",
            {"methods": ("auto", "crossfit"), "select": "truth"},
            "--select truth: digits has nothing to choose",
        ),
        (
            "digits",
            {"methods": ("crossfit",), "set": (("select", "labels"),)},
            "--set select=labels: digits has nothing to choose",
        ),
    ],
)
def test_what_an_experiment_cannot_honour_is_refused(name, options, said):
    with pytest.raises(InputError, match=f"^{said}"):
        planned(name, **options)


def test_what_it_has_may_be_asked_for():
    assert len(planned("mnist-sensitivity", seeds=1, skills=(0.35,), densities=(5,))) == 11
    assert len(planned("digits", set=(("patience", None),), methods=("trace",), seeds=2)) == 4
    lams = {run.method: run.settings["lam"] for run in planned("mnist-ablation", set=(("lam", 1),))}
    assert lams == {"trace": 1, "no-trace": 0.0}
    runs = planned("mnist-robust", vanilla_decay=0.1, set=(("weight_decay", 0.2),))
    decays = {run.method: run.settings["weight_decay"] for run in runs}
    assert decays["vanilla"] == 0.1
    assert decays["trace"] == 0.2


@pytest.mark.parametrize("name", ["mnist-em", "digits", "cardiac", "mnist-sensitivity"])
def test_em_has_no_more_steps_than_epochs(name):
    for run in planned(name, set=(("epochs", 1),)):
        if run.method in ("gem", "mbem"):
            assert run.settings["steps"] == 1


def test_steps_asked_for_and_too_many_are_refused():
    with pytest.raises(InputError, match=r"^--set steps=5: mbem has 2 epochs to share\."):
        planned("mnist-em", set=(("steps", 5), ("epochs", 2)))
    steps = {run.settings.get("steps") for run in planned("mnist-em", set=(("steps", 5),))}
    assert steps == {5, None}


@pytest.mark.parametrize("epochs", ["five", None])
def test_epochs_of_any_kind_are_planned_or_refused(epochs):
    options = {"set": (("epochs", epochs),), "protocol": "paper"}
    if epochs is None:
        assert len(planned("mnist-sensitivity", **options)) == 11
    else:
        with pytest.raises(InputError, match=r"^Expected `epochs` to be"):
            planned("mnist-sensitivity", **options)


@pytest.mark.parametrize("name", ["mnist-em", "digits", "cardiac", "cifar10-table"])
def test_em_of_the_paper_counts_without_smoothing(name):
    for run in planned(name, protocol="paper"):
        if run.method in ("gem", "mbem"):
            assert run.settings["smoothing"] == 0.0
            assert run.settings["steps"] == (2 if name == "cifar10-table" else 10)


@pytest.mark.parametrize("name", ["digits", "cifar10-table"])
def test_what_chooses_by_held_out_labels_does_not_say_that_the_truth_chose(name):
    chosen_by = {run.method: run.settings["select"] for run in planned(name, protocol="paper")}
    assert chosen_by.pop("crossfit") == chosen_by.pop("auto", "likelihood") == "likelihood"
    assert set(chosen_by.values()) == {"truth"}


@pytest.mark.parametrize("asked", [{"select": "truth"}, {"set": (("select", "truth"),)}])
def test_held_out_labels_choose_in_methods_that_know_nothing_else(asked):
    runs = planned("digits", **asked)
    chosen_by = {run.method: run.settings.get("select") for run in runs}
    assert chosen_by.pop("crossfit") is chosen_by.pop("auto") is None
    assert set(chosen_by.values()) == {"truth"}
    usual = {run.key for run in planned("digits")}
    same = {run.method for run in runs if run.key in usual}
    assert same == {"auto", "crossfit"}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("digits", {"set": (("epochs", 60),), "methods": ("trace", "vanilla", "mbem")}),
        ("digits", {"set": (("epochs", 200),), "methods": ("trace",), "protocol": "paper"}),
        ("digits", {"set": (("validation", 0.1), ("schedule", "constant"), ("batch_size", 64))}),
        ("digits", {"set": (("restarts", 2), ("mixup", "auto")), "methods": ("trace",)}),
        ("digits", {"set": (("diagonal", None),), "methods": ("trace",)}),
        ("digits", {"select": "likelihood"}),
        ("digits", {"vanilla_decay": 0.0}),
        ("mnist-em", {"set": (("epochs", 12),), "densities": (5,)}),
        ("mnist-em", {"set": (("precision", "bf16"),)}),
    ],
)
def test_to_ask_for_what_a_run_has_anyway_is_to_ask_for_the_same_run(name, options):
    asked = {key: options.pop(key) for key in ("set", "select", "vanilla_decay") if key in options}
    runs, usual = planned(name, **options, **asked), planned(name, **options)
    assert [run.key for run in runs] == [run.key for run in usual]


def test_what_a_method_finds_by_itself_is_not_the_number_that_others_take():
    for method in ("auto", "crossfit"):
        runs = planned("digits", methods=(method,), set=(("epochs", 60),))
        assert {run.settings["epochs"] for run in runs} == {60}
        runs = planned("digits", methods=(method,), set=(("batch_size", 50),), protocol="paper")
        assert {run.settings["batch_size"] for run in runs} == {50}
