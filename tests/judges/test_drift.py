from math import erfc

import numpy as np
import pytest

import annotrace as at
from annotrace.judges.drift import drifts, scores_by_period


def draw(accuracies, n=600, seed=0):
    """Draw labels of judges whose accuracy is that of each of some periods."""
    rng = np.random.default_rng(seed)
    accuracies = np.array(accuracies)
    period = np.arange(n) * accuracies.shape[1] // n
    truth = rng.integers(2, size=n)
    wrong = rng.random((n, len(accuracies))) > accuracies[:, period].T
    table = at.LabelTable.from_wide(np.where(wrong, 1 - truth[:, None], truth[:, None]))
    votes = np.eye(2, dtype=int)[truth][table.item]
    return table, votes, period[table.item]


def test_a_judge_that_gets_worse_is_found_and_steady_ones_are_not():
    found = drifts(*draw([[0.9, 0.8, 0.7], [0.8, 0.8, 0.8], [0.7, 0.7, 0.7]]))
    assert [each.is_significant for each in found] == [True, False, False]
    assert found[0].change == pytest.approx(-0.2, abs=0.06)


def test_steady_judges_are_rarely_said_to_drift():
    p_values = [
        each.p_value
        for seed in range(60)
        for each in drifts(*draw([[0.8] * 4] * 3, n=150, seed=seed))
    ]
    assert 0.02 <= np.mean(np.array(p_values) < 0.05) <= 0.09


def test_one_judge_of_many_that_seems_to_drift_is_not_said_to():
    found = drifts(*draw([[0.8] * 4] * 12, n=150, seed=8))
    smallest = min(each.p_value for each in found)
    assert 0.005 < smallest < 0.05
    assert not any(each.is_significant for each in found)


def test_the_trend_of_a_small_table_by_hand():
    """Cochran and Armitage: 1 of 4, 2 of 4 and 4 of 4 correct in three periods."""
    label = np.array([1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1])
    table = at.LabelTable.from_codes(np.arange(12), np.zeros(12, int), label)
    votes = np.tile([0, 1], (12, 1))
    (found,) = drifts(table, votes, np.repeat([0, 1, 2], 4))
    # Sum of (x - 1) y is 3, of (x - 1)^2 is 8; y has the variance 7/12 * 5/12.
    z = 3 / np.sqrt(8 * 7 / 12 * 5 / 12 * 12 / 11)
    assert found.change == pytest.approx(2 * 3 / 8)
    assert found.p_value == pytest.approx(erfc(z / 2**0.5))


def test_periods_of_each_judge():
    table, votes, period = draw([[1.0, 0.5], [0.5, 1.0]], n=40)
    period = np.where(table.item < 2, -1, period)
    scores = scores_by_period(table, votes, period, ["old", "new"])
    assert [(each.judge, each.period, each.n_labels) for each in scores] == [
        *((0, "old", 18), (0, "new", 20), (1, "old", 18), (1, "new", 20))
    ]
    assert scores[0].agreement.value == scores[3].agreement.value == 1
    assert scores[0].agreement.low < 0.9


def test_labels_without_anything_to_compare_with_are_left_out():
    table, votes, period = draw([[0.8, 0.8]], n=30)
    votes[table.item >= 10] = 0
    scores = scores_by_period(table, votes, period, ["old", "new"])
    assert [each.n_labels for each in scores] == [10]
    (found,) = drifts(table, votes, period)
    assert (found.change, found.p_value) == (0, 1)
