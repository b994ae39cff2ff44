"""What knowing the confusion matrices would gain."""

import numpy as np
import pytest
from fitted_crowds import crowd_result, from_labels

from annotrace.aggregation import DawidSkene
from annotrace.crowd.skills import diagonals
from annotrace.diagnosis import estimation_loss as module
from annotrace.diagnosis.estimation_loss import draw_matrices, estimation_loss
from annotrace.simulate import hammer_spammers, simulate_labels


def test_draws_have_the_mean_and_the_variance_of_the_posterior():
    annotators = from_labels(hammer_spammers(3, 3, 0.7, 0)).annotators
    rng = np.random.default_rng(0)
    draws = np.stack([draw_matrices(annotators, np.array([2, 0]), rng) for _ in range(3000)])
    np.testing.assert_allclose(draws.sum(axis=3), 1)
    np.testing.assert_allclose(draws.mean(axis=0), annotators.mean[[2, 0]], atol=0.01)
    variance = diagonals(annotators.cell_variance(np.array([2, 0])))
    np.testing.assert_allclose(diagonals(draws.var(axis=0)), variance, rtol=0.15)


def loss_of(n_annotators, n_items, estimate=None):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, n_items)
    confusion = hammer_spammers(n_annotators, 4, 0.55, rng)
    table = simulate_labels(truth, confusion, labels_per_item=4, random_state=rng)
    return estimation_loss(DawidSkene().fit(table).result_)


def test_annotators_with_few_labels_lose_more():
    assert loss_of(10, 2000) < 0.01 < 0.02 < loss_of(60, 120)


def test_wrong_estimates_lose_what_the_posterior_says():
    result = from_labels(hammer_spammers(6, 2, 0.9, 0), labels_per_item=5, n_items=2000)
    wrong = crowd_result(
        result.table, result.prior, result.matrices(), estimate=1 - result.estimate
    )
    assert estimation_loss(result) < 0.005
    assert estimation_loss(wrong) > 0.9


def test_single_labels_and_gold_items_lose_nothing():
    assert estimation_loss(from_labels(hammer_spammers(4, 2, 0.8, 0), labels_per_item=1)) == 0
    gold = np.zeros(900, int)
    assert estimation_loss(from_labels(hammer_spammers(4, 2, 0.8, 0), gold=gold)) == 0


@pytest.mark.parametrize("most", [40, 10**9])
def test_items_are_sampled(monkeypatch, most):
    result = from_labels(hammer_spammers(6, 2, 0.8, 0))
    whole = estimation_loss(result)
    monkeypatch.setattr(module, "MAX_ITEMS", min(most, 300))
    assert estimation_loss(result) == pytest.approx(whole, abs=0.05)
