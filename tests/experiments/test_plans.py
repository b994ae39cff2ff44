"""What the user requests is in the plan, or is rejected before anything runs."""

import pytest
from made_up import planned

from annotrace.errors import InputError
from annotrace.experiments.plans import key_of


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        (("random_state", 3), "give --seeds"),
        (("device", "cpu"), "give --device"),
        (("protocol", "paper"), "give --protocol"),
        (("recipe", "none"), "give n_init, mixup"),
        (("confusion", [[1]]), "the oracle gets the true matrices"),
        (("callbacks", []), "the runner has its own"),
        (("verbose", True), "the runner shows progress"),
        (("checkpoint", "file"), "the runner resumes"),
        (("warm_start", True), "every run starts from new weights"),
    ],
)
def test_settings_that_runs_are_given_are_not_to_be_set(setting, remedy):
    with pytest.raises(InputError, match=f"^--set {setting[0]}: {remedy}"):
        planned("mnist-em", set=(setting,))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("mnist-sensitivity", {"set": (("lam", 0.5),)}, "--set lam: no method of"),
        ("mnist-sensitivity", {"set": (("n_steps", 1),)}, "--set n_steps: no method of"),
        ("mnist-sensitivity", {"seeds": 3}, "--seeds 3: mnist-sensitivity has 1"),
        ("mnist-sensitivity", {"skills": (0.9,)}, "--skills 0.9: mnist-sensitivity has 0.35"),
        ("mnist-sensitivity", {"densities": (1,)}, "--densities 1: mnist-sensitivity has 5"),
        ("cardiac", {"densities": (1,)}, "--densities 1: cardiac has 2"),
        ("cardiac", {"skills": (0.5,)}, "--skills 0.5: cardiac has none to choose"),
        ("annotators", {"skills": (0.9,)}, "--skills 0.9: annotators has 0.3, 0.5"),
        ("annotators", {"seeds": 4}, "--seeds 4: annotators has 1"),
        ("annotators", {"methods": ("foo",)}, "--methods foo: annotators has annotators"),
        ("annotators", {"set": (("epochs", 1),)}, "--set epochs: no method of annotators"),
        ("cifar10-table", {"skills": (0.5,)}, "--skills 0.5: cifar10-table has none"),
        ("digits", {"skills": (0.5, 0.3)}, "--skills 0.5,0.3: digits has 0.4"),
        ("digits", {"set": (("restarts", 1),)}, "--set restarts: no method of digits has such"),
        ("mnist-em", {"vanilla_decay": 0.1}, "--vanilla-decay: mnist-em has no vanilla"),
        (
            "digits",
            {"methods": ("auto", "crossfit"), "select": "truth"},
            "--select: no method of digits has such a setting",
        ),
        (
            "digits",
            {"methods": ("crossfit",), "set": (("select", "labels"),)},
            "--set select: no method of digits has such a setting",
        ),
    ],
)
def test_what_an_experiment_does_not_have_is_rejected(name, options, message):
    with pytest.raises(InputError, match=f"^{message}"):
        planned(name, **options)


def test_what_it_has_may_be_asked_for():
    assert len(planned("digits", set=(("patience", None),), methods=("trace",), seeds=2)) == 4
    assert len(planned("annotators", skills=(0.3,))) == 1
    lams = {
        run["method"]: run["settings"]["lam"]
        for run in planned("mnist-ablation", set=(("lam", 1),))
    }
    assert lams == {"trace": 1, "no-trace": 0.0}
    runs = planned("mnist-robust", vanilla_decay=0.1, set=(("weight_decay", 0.2),))
    decays = {run["method"]: run["settings"]["weight_decay"] for run in runs}
    assert decays["vanilla"] == 0.1
    assert decays["trace"] == 0.2


def test_a_key_differs_wherever_a_run_differs_and_is_shared_between_experiments():
    run = planned("digits")[0]
    assert key_of({**run, "experiment": "other"}) == run["key"]
    for change in ({"seed": 9}, {"settings": {"epochs": 1}}, {"n_items": 5}, {"keep": ("curve",)}):
        assert key_of({**run, **change}) != run["key"]
