"""Correlation of errors, and how many votes labels count for."""

from itertools import combinations

import numpy as np
import pytest

from annotrace.crowd.dependence import effective_votes, known_dependence
from annotrace.errors import InputError
from annotrace.labels import LabelTable


def panel(wrong, n_classes=2):
    """Labels of items of class 0, all by all annotators; wrong is (items, annotators)."""
    n_items, n_annotators = wrong.shape
    item, annotator = np.divmod(np.arange(wrong.size), n_annotators)
    return LabelTable.from_codes(
        item, annotator, wrong.ravel().astype(int), n_items=n_items, n_classes=n_classes
    )


def shared_errors(n_items, n_annotators, share, seed=0):
    """Draw errors that are one and the same for all annotators in a share of the items."""
    rng = np.random.default_rng(seed)
    own = rng.random((n_items, n_annotators)) < 0.3
    common = rng.random((n_items, 1)) < 0.3
    return np.where(rng.random((n_items, 1)) < share, common, own)


@pytest.mark.parametrize(
    ("correlation", "votes"), [(0.0, 10.0), (1.0, 1.0), (0.25, 10 / 3.25), (-0.2, 10.0)]
)
def test_effective_votes(correlation, votes):
    assert effective_votes(correlation, 10) == pytest.approx(votes)


def test_correlation_is_that_of_numpy_for_two_annotators():
    wrong = shared_errors(50, 2, 0.5)
    found = known_dependence(panel(wrong), np.zeros(50, int))
    assert found.correlation == pytest.approx(np.corrcoef(wrong.T)[0, 1])


def test_correlation_is_a_weighted_mean_over_pairs():
    wrong = shared_errors(80, 5, 0.5)
    found = known_dependence(panel(wrong), np.zeros(80, int))
    each, scale = np.corrcoef(wrong.T), wrong.std(axis=0)
    pairs = list(combinations(range(5), 2))
    expected = np.average(
        [each[pair] for pair in pairs], weights=[scale[a] * scale[b] for a, b in pairs]
    )
    assert found.correlation == pytest.approx(expected)
    assert found.n_votes == 5
    assert found.effective_votes == pytest.approx(5 / (1 + 4 * expected))


def test_intervals_cover_the_correlation():
    found = [
        known_dependence(panel(shared_errors(200, 6, 0.4, seed)), np.zeros(200, int))
        for seed in range(60)
    ]
    covered = np.mean([each.low <= 0.4 <= each.high for each in found])
    assert 0.8 <= covered <= 0.98


def test_errors_that_depend_on_the_class_alone_are_not_shared():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 4000)
    wrong = rng.random((4000, 6)) < np.where(truth == 1, 0.45, 0.05)[:, None]
    table = panel(np.where(wrong, 1 - truth[:, None], truth[:, None]))
    assert abs(known_dependence(table, truth).correlation) < 0.01


def test_items_of_unknown_truth_do_not_matter():
    wrong = shared_errors(60, 4, 0.5)
    truth = np.where(np.arange(60) < 40, 0, -1)
    alone = known_dependence(panel(wrong[:40]), np.zeros(40, int))
    assert known_dependence(panel(wrong), truth) == alone


def test_a_second_label_of_the_same_annotator_is_no_second_vote():
    wrong = shared_errors(60, 3, 0.0)
    once = panel(wrong)
    item, annotator, label = (np.tile(part, 2) for part in (once.item, once.annotator, once.label))
    twice = LabelTable.from_codes(item, annotator, label, n_classes=2)
    truth = np.zeros(60, int)
    assert known_dependence(twice, truth).correlation == pytest.approx(
        known_dependence(once, truth).correlation
    )


def test_without_errors_nothing_is_known():
    found = known_dependence(panel(np.zeros((20, 3))), np.zeros(20, int))
    assert (found.correlation, found.low, found.high, found.groups) == (0, 0, 1, ())
    assert known_dependence(panel(np.zeros((20, 3))), np.full(20, -1)).high == 1


def test_truth_is_checked():
    with pytest.raises(InputError, match="one entry for each of 20 items"):
        known_dependence(panel(np.zeros((20, 3))), [0, 1])
