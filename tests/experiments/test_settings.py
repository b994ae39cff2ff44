"""Settings of runs: recipes, what the user sets, and what the library uses otherwise."""

import json

import pytest
from made_up import planned

from annotrace.errors import InputError
from annotrace.experiments import EXPERIMENTS
from annotrace.experiments.settings import effective, make_estimator, selection
from annotrace.methods import Recipe

PAPER_TRACE = {"methods": ("trace",), "protocol": "paper"}
TRAINED = [name for name in EXPERIMENTS if name != "annotators"]


@pytest.mark.parametrize("protocol", ["fast", "paper"])
@pytest.mark.parametrize("name", TRAINED)
def test_every_setting_of_a_plan_is_one_that_its_method_takes(name, protocol):
    for run in planned(name, protocol=protocol):
        make_estimator(run["method"], run["settings"])
        assert json.loads(json.dumps(run["settings"])) == run["settings"]


def test_where_the_paper_is_silent_a_flag_decides():
    runs = planned("mnist-robust", protocol="paper", select="labels", vanilla_decay=5e-4)
    assert {run["settings"]["select"] for run in runs} == {"labels"}
    decays = {run["method"]: run["settings"].get("weight_decay") for run in runs}
    assert decays["vanilla"] == 5e-4
    assert decays["trace"] is None


@pytest.mark.parametrize("name", ["mnist-em", "digits", "cardiac", "mnist-sensitivity"])
def test_em_has_no_more_steps_than_epochs(name):
    for run in planned(name, set=(("epochs", 1),)):
        if run["method"] in ("gem", "mbem"):
            assert run["settings"]["n_steps"] == 1


def test_steps_asked_for_and_too_many_are_rejected():
    with pytest.raises(InputError, match=r"^--set n_steps=5: mbem has 2 epochs to share\."):
        planned("mnist-em", set=(("n_steps", 5), ("epochs", 2)))
    steps = {run["settings"].get("n_steps") for run in planned("mnist-em", set=(("n_steps", 5),))}
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
        if run["method"] in ("gem", "mbem"):
            assert run["settings"]["smoothing"] == 0.0
            assert run["settings"]["n_steps"] == (2 if name == "cifar10-table" else 10)


@pytest.mark.parametrize("name", ["digits", "cifar10-table"])
def test_what_chooses_by_held_out_labels_does_not_say_that_the_truth_chose(name):
    chosen_by = {
        run["method"]: selection(make_estimator(run["method"], run["settings"]))
        for run in planned(name, protocol="paper")
    }
    assert chosen_by.pop("crossfit") == chosen_by.pop("auto", "likelihood") == "likelihood"
    assert set(chosen_by.values()) == {"truth"}


@pytest.mark.parametrize("asked", [{"select": "truth"}, {"set": (("select", "truth"),)}])
def test_held_out_labels_choose_in_methods_that_know_nothing_else(asked):
    runs = planned("digits", **asked)
    chosen_by = {run["method"]: run["settings"].get("select") for run in runs}
    assert chosen_by.pop("crossfit") is chosen_by.pop("auto") is None
    assert set(chosen_by.values()) == {"truth"}
    usual = {run["key"] for run in planned("digits")}
    same = {run["method"] for run in runs if run["key"] in usual}
    assert same == {"auto", "crossfit"}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("digits", {"set": (("epochs", 60),), "methods": ("trace", "vanilla", "mbem")}),
        ("digits", {"set": (("epochs", 200),), "methods": ("trace",), "protocol": "paper"}),
        (
            "digits",
            {"set": (("validation_fraction", 0.1), ("schedule", "constant"), ("batch_size", 64))},
        ),
        ("digits", {"set": (("n_init", 2), ("mixup", "auto")), "methods": ("trace",)}),
        ("digits", {"set": (("n_init", 1), ("mixup", 0), ("repair", False)), **PAPER_TRACE}),
        ("digits", {"set": (("structure", "auto"), ("diagonal", None)), "methods": ("trace",)}),
        ("digits", {"select": "likelihood"}),
        ("digits", {"vanilla_decay": 0.0}),
        ("mnist-em", {"set": (("epochs", 12),), "densities": (5,)}),
        ("mnist-em", {"set": (("precision", "bf16"),)}),
    ],
)
def test_to_ask_for_what_a_run_has_anyway_is_to_ask_for_the_same_run(name, options):
    asked = {key: options.pop(key) for key in ("set", "select", "vanilla_decay") if key in options}
    runs, usual = planned(name, **options, **asked), planned(name, **options)
    assert [run["key"] for run in runs] == [run["key"] for run in usual]


def test_what_a_method_finds_by_itself_is_not_the_number_that_others_take():
    for method in ("auto", "crossfit"):
        runs = planned("digits", methods=(method,), set=(("epochs", 60),))
        assert {run["settings"]["epochs"] for run in runs} == {60}
        runs = planned("digits", methods=(method,), set=(("batch_size", 50),), protocol="paper")
        assert {run["settings"]["batch_size"] for run in runs} == {50}


def test_settings_of_the_recipe_are_flat():
    asked = (("mixup", 0), ("n_init", 1))
    settings = {
        run["method"]: run["settings"] for run in planned("digits", set=asked, densities=(1,))
    }
    assert settings["trace"] == {"mixup": 0, "n_init": 1}
    assert settings["crossfit"] == {"mixup": 0}
    assert settings["gem"] == settings["two-stage"] == {}
    model = make_estimator("trace", settings["trace"])
    assert model.recipe == Recipe(n_init=1, mixup=0)
    assert make_estimator("crossfit", settings["crossfit"]).mixup == 0


def test_a_recipe_on_top_of_the_papers_protocol_has_only_what_was_asked_for():
    (run, *_) = planned("digits", set=(("mixup", 1.0),), **PAPER_TRACE)
    model = make_estimator(run["method"], run["settings"])
    assert model.recipe == Recipe(n_init=1, mixup=1.0, repair=False, calibrate=False)
    assert effective(model, "n_init") == 1
