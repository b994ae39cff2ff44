import numpy as np
import pytest
from scipy.optimize import approx_fprime

from annotrace.aggregation.gold_candidates import (
    Evidence,
    _Design,
    best_annotators,
    calibrated_model,
    regression,
)
from annotrace.labels import LabelTable


@pytest.fixture
def truth():
    return np.random.default_rng(0).integers(0, 3, 400)


@pytest.fixture
def gold(truth):
    return np.where(np.arange(400) < 100, truth, -1).astype(np.int32)


def labels(truth, accuracies, seed=1):
    """One answer per item by each annotator."""
    rng = np.random.default_rng(seed)
    right = rng.random((len(truth), len(accuracies))) < accuracies
    wrong = (truth[:, None] + rng.integers(1, 3, right.shape)) % 3
    return LabelTable.from_wide(np.where(right, truth[:, None], wrong))


def accuracy(posterior, truth):
    return np.mean(posterior.argmax(axis=1)[100:] == truth[100:])


def test_the_calibrated_model_is_as_certain_as_it_is_right(truth, gold):
    rng = np.random.default_rng(2)
    likely = np.where(rng.random(400) < 0.8, truth, (truth + 1) % 3)
    overconfident = np.where(np.eye(3)[likely] > 0, 0.998, 0.001)
    table = labels(truth, [0.8])
    posterior = calibrated_model(Evidence(table, overconfident), gold)
    assert posterior.max(axis=1).mean() == pytest.approx(0.8, abs=0.06)
    assert np.array_equal(posterior.argmax(axis=1), likely)


def test_the_best_annotator_outvotes_many_others(truth, gold):
    crowd = labels(truth, [0.9, 0.6, 0.6])
    # The two others give the same answers.
    copied = np.stack([crowd.label.reshape(400, 3)[:, k] for k in (0, 1, 1, 1, 1)], 1)
    table = LabelTable.from_wide(copied)
    misled = np.where(np.eye(3)[copied[:, 1]] > 0, 0.98, 0.01)
    posterior = best_annotators(Evidence(table, misled), gold)
    assert accuracy(posterior, truth) == pytest.approx(0.9, abs=0.04)
    assert accuracy(misled, truth) < 0.7


def test_the_best_annotator_of_each_item_counts(truth, gold):
    """Where the best did not answer, the second best decides."""
    answers = labels(truth, [0.95, 0.8, 0.4]).label.reshape(400, 3).copy()
    answers[::2, 0] = -1
    table = LabelTable.from_wide(answers)
    predicted = np.full((400, 3), 1 / 3)
    chosen = best_annotators(Evidence(table, predicted), gold).argmax(axis=1)
    assert np.mean(chosen[1::2] == answers[1::2, 0]) == 1
    assert np.mean(chosen[::2] == answers[::2, 1]) > 0.95


def test_the_regression_starts_from_the_annotator_model(truth, gold):
    table = labels(truth, [0.7, 0.7, 0.7])
    model = np.where(np.eye(3)[truth] > 0, 0.9, 0.05)
    posterior = regression(Evidence(table, model), gold)
    assert accuracy(posterior, truth) > 0.98


def test_the_regression_uses_a_classifier(truth, gold):
    table = labels(truth, [0.5])
    weak, strong = np.full((400, 3), 1 / 3), np.where(np.eye(3)[truth] > 0, 0.8, 0.1)
    without = regression(Evidence(table, weak), gold)
    assert accuracy(regression(Evidence(table, weak, strong), gold), truth) > 0.98
    assert accuracy(without, truth) < 0.6


def test_the_gradient_of_the_regression(truth, gold):
    table = labels(truth, [0.8, 0.6])
    scores = (np.random.default_rng(3).normal(size=(400, 3)),)
    design = _Design(table, gold, scores)
    at, start = np.random.default_rng(4).normal(size=1 + len(design.used)), np.array([0.7])
    _, gradient = design.loss(at, start)
    numeric = approx_fprime(at, lambda p: design.loss(p, start)[0], 1e-6)
    assert gradient == pytest.approx(numeric, abs=1e-3)


def test_classes_that_gold_items_lack_keep_their_items(truth, gold):
    known = np.where(truth == 2, -1, gold).astype(np.int32)
    table = labels(truth, [0.9, 0.9, 0.9])
    model = np.where(np.eye(3)[truth] > 0, 0.9, 0.05)
    for candidate in (calibrated_model, best_annotators, regression):
        posterior = candidate(Evidence(table, model), known)
        assert np.mean(posterior.argmax(axis=1)[truth == 2] == 2) > 0.85
