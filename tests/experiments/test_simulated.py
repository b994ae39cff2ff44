"""A run is scored by the truth, and its result has all that a table needs."""

import json

import numpy as np
import pytest
import torch
from made_up import planned

from annotrace.diagnosis import is_diagonally_dominant
from annotrace.errors import InputError
from annotrace.experiments.digits import load
from annotrace.experiments.simulated import (
    FLIPPERS,
    SPAMMERS,
    label_nll,
    perform,
    qualifying_seeds,
    true_confusion,
)
from annotrace.simulate import hammer_spammers, pairwise_flippers, simulate_labels

NAMED = ("experiment", "method", "crowd", "skill", "density", "seed", "accuracy", "cm_error")
CPU = torch.device("cpu")


def one_run(method, keep=(), **settings):
    group = {"crowd": SPAMMERS, "skill": 0.6, "density": 2, "seed": 0}
    run = {"key": "a key", "experiment": "digits", "data": "digits", "method": method, **group}
    return {**run, "protocol": "fast", "settings": settings, "n_items": None, "keep": keep}


@pytest.fixture(scope="module")
def data():
    return load(None)


def test_a_result_has_what_the_design_names(data):
    result = perform(one_run("trace", epochs=20, n_init=1, structure="full"), data, CPU)
    assert {*NAMED, "label_nll", "seconds", "settings", "versions", "selection"} <= set(result)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["accuracy"] > 0.9
    assert result["cm_error"] < 0.05
    assert result["annotator_accuracy"] == pytest.approx(0.64, abs=0.03)
    assert result["settings"] == {"epochs": 20, "n_init": 1, "structure": "full"}
    assert result["selection"] == "likelihood"


def test_a_run_on_a_cpu_says_that_it_was_in_full_precision_and_keeps_its_key(data):
    run = one_run("vanilla", epochs=1, precision="bf16")
    result = perform(run, data, CPU)
    assert result["settings"] == {"epochs": 1, "precision": "float32"}
    assert result["key"] == run["key"]


def test_the_same_run_gives_the_same_result(data):
    runs = [perform(one_run("vanilla", epochs=2), data, CPU) for _ in range(2)]
    for result in runs:
        del result["seconds"]
    assert runs[0] == runs[1]


def test_a_curve_has_a_point_an_epoch_even_over_em_steps(data):
    run = one_run(
        "mbem", keep=("curve",), epochs=5, n_steps=2, validation_fraction=0.0, batch_size=60
    )
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
    short = {"epochs": 1, "n_steps": 1, "n_iter": 1, "n_init": 1, "structure": "full"}
    for run in planned("digits", seeds=1, densities=(1,), set=tuple(short.items())):
        result = perform(run, small, CPU)
        assert 0 <= result["accuracy"] <= 1
        assert result["key"] == run["key"]


def test_draws_are_the_first_that_are_dominant():
    dominant = [
        seed
        for seed in range(60)
        if is_diagonally_dominant(pairwise_flippers(5, 10, 0.3, random_state=seed))
    ]
    assert qualifying_seeds(FLIPPERS, 0.3, 3) == tuple(dominant[:3])
    assert qualifying_seeds(FLIPPERS, 0.3, 3) != (0, 1, 2)


def test_where_none_is_the_first_of_all_are_taken():
    assert qualifying_seeds(FLIPPERS, 0.2, 3) == (0, 1, 2)
    assert qualifying_seeds(SPAMMERS, 0.2, 2) == (0, 1)


def test_more_draws_go_on_with_those_that_qualify_or_are_rejected():
    ten = qualifying_seeds(FLIPPERS, 0.28, 10)
    assert qualifying_seeds(FLIPPERS, 0.28, 3) == ten[:3]
    message = r"^pairwise-flippers at 0\.28: (\d+) of the first 1,000 groups .* give --seeds \1 or"
    with pytest.raises(InputError, match=message) as refused:
        qualifying_seeds(FLIPPERS, 0.28, 30)
    there = int(str(refused.value).split()[3])
    every = qualifying_seeds(FLIPPERS, 0.28, there)
    assert every[:10] == ten
    assert all(is_diagonally_dominant(pairwise_flippers(5, 10, 0.28, seed)) for seed in every)


def test_the_matrices_of_a_run_are_those_of_its_seed():
    run = planned("mnist-em", skills=(0.35,), methods=("trace",), densities=(1,))[0]
    confusion = true_confusion(run["crowd"], run["skill"], run["seed"])
    expected = pairwise_flippers(5, 10, 0.35, random_state=run["seed"])
    np.testing.assert_array_equal(confusion, expected)
    assert is_diagonally_dominant(confusion)
