"""A run is judged by the truth, and the line that tells of it has all that a table needs."""

import json

import numpy as np
import pytest
import torch

from annotrace.experiments.digits import load
from annotrace.experiments.options import Options
from annotrace.experiments.performing import label_nll, perform
from annotrace.experiments.plans import make_plan
from annotrace.experiments.registry import find_experiment
from annotrace.experiments.runs import Run
from annotrace.simulate import hammer_spammers, simulate_labels

NAMED = ("experiment", "method", "crowd", "skill", "density", "seed", "accuracy", "cm_error")
CPU = torch.device("cpu")


def one_run(method, keep=(), **settings):
    return Run(
        "digits", "digits", method, "hammer-spammers", 0.6, 2, 0, "fast", settings, keep=keep
    )


@pytest.fixture(scope="module")
def data():
    return load(None)


def test_a_result_has_what_the_design_names(data):
    result = perform(one_run("trace", epochs=20, restarts=1, pool=False), data, CPU)
    assert {*NAMED, "label_nll", "seconds", "settings", "versions", "selection"} <= set(result)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["accuracy"] > 0.9
    assert result["cm_error"] < 0.05
    assert result["annotator_accuracy"] == pytest.approx(0.64, abs=0.03)
    assert result["settings"] == {"epochs": 20, "restarts": 1, "pool": False}
    assert result["selection"] == "likelihood"


def test_a_run_on_a_cpu_says_that_it_was_in_full_precision_and_keeps_its_key(data):
    run = one_run("vanilla", epochs=1, precision="bf16")
    result = perform(run, data, CPU)
    assert result["settings"] == {"epochs": 1, "precision": "float32"}
    assert result["key"] == run.key


def test_the_same_run_gives_the_same_result(data):
    runs = [perform(one_run("vanilla", epochs=2), data, CPU) for _ in range(2)]
    for result in runs:
        del result["seconds"]
    assert runs[0] == runs[1]


def test_a_curve_has_a_point_an_epoch_even_over_em_steps(data):
    run = one_run("mbem", keep=("curve",), epochs=5, steps=2, validation=0.0, batch_size=60)
    result = perform(run, data, CPU)
    # Nine tenths of 1,400 items are learned from: 21 steps of 60.
    assert [step for step, _ in result["curve"]] == [21, 42, 63, 84, 105]
    assert result["selection"] == "last epoch"
    assert result["n_items"] == 1260


def test_matrices_are_kept_where_they_are_asked_for(data):
    result = perform(one_run("trace", keep=("confusion",), epochs=1), data, CPU)
    assert np.shape(result["confusion"]) == (5, 10, 10)
    assert "confusion" not in perform(one_run("vanilla", keep=("confusion",), epochs=1), data, CPU)


def test_the_likelihood_of_new_labels_goes_through_the_matrices_where_there_are_any():
    crowd = hammer_spammers(3, 4, 0.5, random_state=0)
    truth = np.arange(40) % 4
    table = simulate_labels(truth, crowd, random_state=0)
    predicted = np.eye(4)[truth]

    class Knows:
        confusion_ = crowd

    expected = [
        -np.log(crowd[a, truth[i], y])
        for i, a, y in zip(table.item, table.annotator, table.label, strict=True)
    ]
    assert label_nll(Knows(), predicted, table) == pytest.approx(np.mean(expected))
    uniform = np.full((40, 4), 0.25)
    assert label_nll(object(), uniform, table) == pytest.approx(np.log(4))


def test_every_method_runs_on_digits(data):
    small = tuple(part.take(np.arange(150)) for part in data)
    short = {"epochs": 1, "steps": 1, "rounds": 1, "restarts": 1, "pool": False}
    options = Options(seeds=1, densities=(1,), set=tuple(short.items()))
    for run in make_plan(find_experiment("digits"), options):
        result = perform(run, small, CPU)
        assert 0 <= result["accuracy"] <= 1
        assert result["key"] == run.key
