"""Correlation of errors, and how many votes labels count for."""

import time
from itertools import combinations

import numpy as np
import pytest
from fitted_crowds import from_labels
from panels import shared_error_panel

from annotrace.aggregation import DawidSkene
from annotrace.crowd.dependence import (
    ErrorDependence,
    effective_votes,
    estimated_dependence,
    known_dependence,
    predict_dependence,
)
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers


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


@pytest.mark.parametrize(("factor", "accuracy"), [(0.3, 0.75), (0.5, 0.8), (0.4, 0.7)])
def test_shared_errors_are_estimated_without_truth(factor, accuracy):
    table = shared_error_panel(factor, accuracy=accuracy)
    known = known_dependence(table, table.truth)
    found = estimated_dependence(DawidSkene().fit(table).result_)
    assert found.correlation == pytest.approx(known.correlation, abs=0.1)
    assert found.low < known.correlation < found.high
    assert found.effective_votes < 4


def test_independent_annotators_are_found_to_be_so():
    for seed in range(5):
        found = estimated_dependence(from_labels(hammer_spammers(12, 3, 0.7, seed), seed=seed))
        assert found.correlation < 0.1
        assert found.groups == ()
        assert found.expected < 0.15


def test_groups_are_found_without_truth():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 1500)
    wrong = rng.random((1500, 12)) < 0.25
    wrong[:, :3] = np.where(rng.random((1500, 3)) < 0.8, rng.random((1500, 1)) < 0.25, wrong[:, :3])
    table = panel(np.where(wrong, 1 - truth[:, None], truth[:, None]))
    found = estimated_dependence(DawidSkene().fit(table).result_)
    assert [group.annotators for group in found.groups] == [(0, 1, 2)]


def test_gold_items_make_the_estimate_more_certain():
    table = shared_error_panel(0.5)
    alone = estimated_dependence(DawidSkene().fit(table).result_)
    gold = np.where(np.arange(table.n_items) < 500, table.truth, -1)
    found = estimated_dependence(DawidSkene().fit(table, gold=gold).result_)
    known = known_dependence(table, gold)
    assert found.high - found.low < known.high - known.low < alone.high - alone.low
    assert min(known.correlation, alone.correlation) - 0.1 < found.correlation


def test_what_is_not_known_is_expected_to_be_usual():
    assert ErrorDependence(0.0, 0.0, 0.0, 3.0).expected == 0
    assert ErrorDependence(0.6, 0.6, 0.6, 3.0).expected == pytest.approx(0.6)
    unknown = estimated_dependence(from_labels(hammer_spammers(3, 2, 0.8, 0), labels_per_item=1))
    assert (unknown.correlation, unknown.low, unknown.high) == (0, 0, 1)
    assert 0.1 < unknown.expected < 0.2


def test_an_estimate_of_a_million_labels_takes_a_moment():
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(200_000), 5)
    table = LabelTable.from_codes(item, rng.integers(0, 500, 10**6), rng.integers(0, 4, 10**6))
    matrices, posterior = np.full((500, 4, 4), 0.25), np.full((200_000, 4), 0.25)
    started = time.process_time()
    predict_dependence(table, matrices, posterior, np.full(200_000, -1, np.int32))
    assert time.process_time() - started < 3
