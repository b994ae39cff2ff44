import numpy as np
import pytest

from annotrace.aggregation import make
from annotrace.diagnosis.confidence import (
    DEPENDENCE,
    SHARED,
    SMOOTHING,
    bounded,
    calibrated_confidence,
    class_behind,
    counted_matrices,
    counted_posterior,
    half_right,
    mistakes_alike,
    tempered,
)
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels


def test_what_looks_like_a_class_is_by_bayes_another_where_all_confuse_them():
    mistakes = np.array([[0.0, 0.2, 0.0], [0.4, 0.0, 0.0], [0.0, 0.0, 0.0]])
    common = np.array([0.5, 0.25, 0.25])
    behind = class_behind(mistakes, common)
    looks_0 = common * [0.8, 0.4, 0]
    np.testing.assert_allclose(behind[:, 0], looks_0 / looks_0.sum())
    np.testing.assert_allclose(behind[:, 2], [0, 0, 1])


def test_mistakes_that_two_make_alike_are_told_from_those_of_one():
    alike = np.array([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    other = np.array([[0.7, 0.0, 0.3], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    n_labels = np.array([10, 10])
    both = mistakes_alike(np.stack([alike, alike]), n_labels)
    np.testing.assert_allclose(both, [[0, 0.3, 0], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(mistakes_alike(np.stack([alike, other]), n_labels), 0, atol=1e-12)
    np.testing.assert_allclose(mistakes_alike(alike[None], n_labels[:1]), 0)


def test_guesses_spread_over_all_classes_are_not_mistakes_made_alike():
    spammers = np.repeat((0.4 * np.eye(5) + 0.12)[None], 3, axis=0)
    np.testing.assert_allclose(mistakes_alike(spammers, np.full(3, 7)), 0, atol=1e-12)


def test_a_power_of_one_leaves_probabilities_alone_and_of_zero_makes_them_even():
    given = np.array([[0.7, 0.2, 0.1], [0.5, 0.5, 0.0]])
    powers = np.array([[1.0], [0.0]])
    np.testing.assert_allclose(tempered(given, powers)[0], given[0])
    np.testing.assert_allclose(tempered(given, powers)[1], 1 / 3)


def test_perfect_annotators_leave_only_the_doubt_of_few_labels():
    table = LabelTable.from_codes([0, 1, 1], [0, 0, 1], [0, 1, 1])
    posterior = np.array([[0.9, 0.1], [0.1, 0.9]])
    found = calibrated_confidence(table, posterior, np.broadcast_to(np.eye(2), (2, 2, 2)))
    for n_labels, confidence in zip((1, 2), found, strict=True):
        odds = 9 ** (1 / (1 + DEPENDENCE * n_labels))
        assert confidence == pytest.approx(odds / (1 + odds))


def test_a_crowd_that_confuses_classes_is_never_sure():
    table = LabelTable.from_codes([0, 1], [0, 1], [0, 1])
    posterior = np.eye(2)
    confusion = np.repeat(np.array([[[0.6, 0.4], [0.4, 0.6]]]), 2, axis=0)
    found = calibrated_confidence(table, posterior, confusion)
    np.testing.assert_allclose(found, 1 - SHARED * 0.4)


def test_where_nothing_is_known_a_label_is_right_half_the_time():
    np.testing.assert_allclose(half_right(np.eye(3)[[1]]), [[0.25, 0.5, 0.25]])
    np.testing.assert_allclose(half_right(np.array([[0.9, 0.1]])), [[0.5, 0.5]])


def test_what_votes_say_is_bayes_rule_by_counted_matrices():
    labels = {(0, 0): 0, (0, 1): 0, (0, 2): 1, (1, 0): 1, (1, 1): 1, (2, 0): 0, (2, 2): 0}
    item, annotator = np.array(list(labels)).T
    table = LabelTable.from_codes(item, annotator, list(labels.values()))
    estimate = np.array([0, 1, 0])
    counts = np.full((3, 2, 2), SMOOTHING)
    for (i, r), said in labels.items():
        counts[r, estimate[i], said] += 1
    matrices = counts / counts.sum(axis=2, keepdims=True)
    joint = np.tile([2 / 3, 1 / 3], (3, 1))
    for (i, r), said in labels.items():
        joint[i] *= matrices[r, :, said]
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(counted_matrices(table, estimate), matrices)
    np.testing.assert_allclose(counted_posterior(table, estimate), expected)


@pytest.mark.parametrize("method", ["majority", "wawa", "weighted-vote"])
def test_votes_are_as_sure_as_they_are_right(method):
    truth = np.random.default_rng(0).integers(0, 2, 600)
    crowd = hammer_spammers(12, 2, 0.73, 0)
    table = simulate_labels(truth, crowd, labels_per_item=10, random_state=0)
    fitted = make(method).fit(table)
    right = np.mean(fitted.predict() == truth)
    assert fitted.confidence_.mean() == pytest.approx(right, abs=0.07)


def test_confidence_is_between_a_guess_and_the_posterior():
    true = np.array([[0.7, 0.3, 0.0], [0.3, 0.5, 0.2], [0.1, 0.9, 0.0], [1.0, 0.0, 0.0]])
    posterior = np.array([[0.6, 0.3, 0.1], [0.8, 0.1, 0.1], [0.4, 0.3, 0.3], [1.0, 0.0, 0.0]])
    found = bounded(true, posterior, np.zeros(4, int))
    # Surer than the posterior; outdone, and levelled; levelled as far as the posterior allows.
    level = 0.5 / (0.7 + 0.5)
    expected = [[0.6, 0.3, 0.1], [level, level, 1 - 2 * level], [0.4, 0.6, 0.0], [1, 0, 0]]
    np.testing.assert_allclose(found, expected)


def test_the_class_given_stays_the_likeliest_of_two():
    posterior = np.random.default_rng(0).dirichlet([1, 1], 500)
    table = LabelTable.from_codes(np.arange(1000) // 2, np.tile([0, 1], 500), np.tile([0, 1], 500))
    confusion = np.repeat(np.array([[[0.95, 0.05], [0.6, 0.4]]]), 2, axis=0)
    found = calibrated_confidence(table, posterior, confusion)
    assert np.all(found <= posterior.max(axis=1) + 1e-12)
    assert found.min() == pytest.approx(0.5)
