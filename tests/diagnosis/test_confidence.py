from dataclasses import replace

import numpy as np
import pytest
import torch
from fitted_crowds import crowd_result, from_labels
from panels import shared_error_panel

from annotrace.aggregation import make
from annotrace.crowd.dependent_annotators import DependentAnnotators
from annotrace.diagnosis.confidence import (
    CLASSIFIER_LABELS,
    calibrated_posterior,
    confidence,
    independent_posterior,
    temper,
)
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels


def test_a_power_of_one_keeps_probabilities_and_of_zero_makes_them_equal():
    given = np.array([[0.7, 0.2, 0.1], [0.5, 0.5, 0.0]])
    powers = np.array([[1.0], [0.0]])
    np.testing.assert_allclose(temper(given, powers)[0], given[0])
    np.testing.assert_allclose(temper(given, powers)[1], 1 / 3)


@pytest.mark.parametrize("has_classifier", [False, True])
def test_evidence_is_divided_by_the_design_effect(has_classifier):
    table = LabelTable.from_codes([0, 1, 1, 1], [0, 0, 1, 2], [0, 1, 1, 1])
    prior = np.full((2, 2), 0.5) if has_classifier else [0.5, 0.5]
    posterior = np.array([[0.9, 0.1], [0.1, 0.9]])
    result = crowd_result(table, prior, np.repeat(np.eye(2)[None], 3, 0), posterior=posterior)
    correlation = result.annotators.dependence.expected
    assert correlation > 0.1
    for n_labels, found in zip((1, 3), confidence(result), strict=True):
        odds = 9 ** (1 / (1 + correlation * (n_labels - 1 + CLASSIFIER_LABELS * has_classifier)))
        assert found == pytest.approx(odds / (1 + odds))


@pytest.mark.parametrize("has_classifier", [False, True])
def test_what_the_annotator_model_allows_for_is_not_discounted_again(has_classifier):
    table = LabelTable.from_codes([0, 1, 1, 1], [0, 0, 1, 2], [0, 1, 1, 1])
    prior = np.full((2, 2), 0.5) if has_classifier else [0.5, 0.5]
    posterior = np.array([[0.9, 0.1], [0.1, 0.9]])
    result = crowd_result(table, prior, np.repeat(np.eye(2)[None], 3, 0), posterior=posterior)
    matrices, rate = torch.eye(2).repeat(3, 1, 1), torch.tensor(0.5)
    model = DependentAnnotators(matrices, matrices[:, :1], rate, rate, correlation=0.25)
    found = confidence(replace(result, annotator_model=model))
    if not has_classifier:
        np.testing.assert_allclose(found, 0.9)
        return
    effects = (1 + 0.25 * CLASSIFIER_LABELS, (1.5 + 0.25 * CLASSIFIER_LABELS) / 1.5)
    odds = 9 ** (1 / np.array(effects))
    np.testing.assert_allclose(found, odds / (1 + odds))


def test_confidence_is_between_a_guess_and_the_posterior():
    result = from_labels(hammer_spammers(8, 4, 0.6, 0))
    found, posterior = confidence(result), result.posterior.max(axis=1)
    assert np.all(found <= posterior + 1e-12)
    assert np.all(found >= 0.25)


def test_gold_items_are_certain():
    gold = np.where(np.arange(900) < 100, 2, -1)
    result = from_labels(hammer_spammers(8, 4, 0.6, 0), gold=gold)
    np.testing.assert_array_equal(calibrated_posterior(result)[:100], np.eye(4)[gold[:100]])
    np.testing.assert_array_equal(confidence(result)[:100], 1)


def test_labels_that_nothing_compares_are_right_half_the_time():
    table = LabelTable.from_codes([0, 1, 2], [0, 1, 0], [1, 0, 2])
    confusion = np.repeat(np.eye(3)[None], 2, axis=0)
    result = crowd_result(table, np.full(3, 1 / 3), confusion, posterior=np.eye(3)[[1, 0, 2]])
    np.testing.assert_allclose(calibrated_posterior(result)[0], [0.25, 0.5, 0.25])
    np.testing.assert_allclose(confidence(result), 0.5)


def test_votes_are_as_confident_as_they_are_right():
    truth = np.random.default_rng(0).integers(0, 2, 600)
    crowd = hammer_spammers(12, 2, 0.73, 0)
    table = simulate_labels(truth, crowd, labels_per_item=10, random_state=0)
    shares = table.votes() / 10
    result = crowd_result(table, [0.5, 0.5], crowd, posterior=shares, is_vote=True)
    accuracy = np.mean(result.estimate == truth)
    assert confidence(result).mean() == pytest.approx(accuracy, abs=0.1)
    assert independent_posterior(result).max(axis=1).mean() == pytest.approx(accuracy, abs=0.04)


def test_methods_without_annotators_return_their_posterior():
    result = from_labels(hammer_spammers(5, 3, 0.8, 0))
    plain = type(result)(**{**vars_of(result), "annotator_model": None})
    np.testing.assert_array_equal(calibrated_posterior(plain), result.posterior)


def vars_of(result):
    names = ("table", "posterior", "estimate", "annotator_model", "prior", "gold")
    return {name: getattr(result, name) for name in names}


@pytest.mark.parametrize("factor", [0.0, 0.3, 0.6])
def test_a_panel_is_as_confident_as_it_is_right_whether_or_not_it_shares_errors(factor):
    table = shared_error_panel(factor, n_annotators=11)
    fitted = make().fit(table)
    accuracy = np.mean(fitted.predict() == table.truth)
    assert fitted.confidence_.mean() == pytest.approx(accuracy, abs=0.08)
    if factor:
        assert fitted.posterior_.max(axis=1).mean() > accuracy + 0.05
