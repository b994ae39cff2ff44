import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, precision_score, recall_score

from annotrace.diagnosis import (
    balanced_accuracy,
    confusion_error,
    dominance_margins,
    dominant_draws,
    is_diagonally_dominant,
    per_class,
)
from annotrace.simulate import cifar10_annotators


def test_confusion_error_is_the_papers_formula():
    truth = np.array([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    estimate = np.stack([np.eye(2), np.eye(2)])
    # First annotator .5^2 + .5^2, second 0; divided by 2 classes, mean over 2 annotators.
    assert confusion_error(estimate, truth) == pytest.approx(0.125)


def test_identity_against_the_cifar10_group_costs_59():
    identity = np.broadcast_to(np.eye(10), (4, 10, 10))
    assert 100 * confusion_error(identity, cifar10_annotators()) == pytest.approx(59, abs=0.5)


def test_dominance_compares_the_diagonal_with_its_column():
    # Row 0 is dominant in the row sense (.4 > .35, .25), but class 1 is called 0 more often (.45).
    mean = np.array([[0.40, 0.35, 0.25], [0.45, 0.55, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(dominance_margins(mean), [-0.05, 0.20, 0.75])
    assert not is_diagonally_dominant(mean[None])
    assert is_diagonally_dominant(np.eye(3)[None])


def test_the_first_qualifying_seeds_are_returned():
    swapped, right = np.eye(2)[::-1][None], np.eye(2)[None]
    draws = dominant_draws(lambda seed: right if seed % 3 == 0 else swapped, 3, first_seed=1)
    assert [seed for seed, _ in draws] == [3, 6, 9]


def test_no_more_seeds_are_tried_than_asked_for():
    swapped, right = np.eye(2)[::-1][None], np.eye(2)[None]
    draws = dominant_draws(lambda seed: right if seed == 4 else swapped, 3, tries=9)
    assert [seed for seed, _ in draws] == [4]


def test_metrics_of_classes_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, 4, (2, 200))
    figures = per_class(predicted, truth, 4)
    np.testing.assert_allclose(figures.recall, recall_score(truth, predicted, average=None))
    np.testing.assert_allclose(figures.precision, precision_score(truth, predicted, average=None))
    assert balanced_accuracy(predicted, truth, 4) == pytest.approx(
        balanced_accuracy_score(truth, predicted)
    )


def test_unknown_truths_and_absent_classes_do_not_count():
    truth, predicted = np.array([0, 0, 1, -1]), np.array([0, 1, 1, 2])
    assert balanced_accuracy(predicted, truth, 4) == 0.75
    assert per_class(predicted, truth, 4).n_items.tolist() == [2, 1, 0, 0]
