import numpy as np
import pytest
from made_up_judges import draw_panel, known_codes

import annotrace as at
from annotrace.crowd.prediction_powered import prediction_powered_mean
from annotrace.judges.accuracy import (
    agreement_of_others,
    class_rates,
    confusion_counts,
    judge_accuracies,
    powered_share,
)
from annotrace.judges.estimates import share_estimate


def test_by_hand():
    table = at.LabelTable.from_wide(np.array([[0, 0, 1], [1, 1, 1], [0, 1, -1], [0, 0, 0]]))
    known = np.array([0, 1, 0, -1], np.int32)
    found = judge_accuracies(table, known)
    assert [each.n_gold for each in found] == [3, 3, 2]
    assert [each.accuracy.value for each in found][::2] == pytest.approx([1, 0.5])
    np.testing.assert_array_equal(confusion_counts(table, known)[1], [[1, 1], [0, 1]])
    rates = {(rate.judge, rate.label): rate for rate in class_rates(table, known)}
    assert rates[1, 0].recall == share_estimate(0.5, 2)
    assert rates[1, 1].precision == share_estimate(0.5, 2)
    assert (rates[1, 0].n_gold, rates[1, 1].n_given) == (2, 2)
    assert not rates[2, 0].precision.is_known


def test_the_share_of_others_who_agree():
    table = at.LabelTable.from_wide(np.array([[0, 0, 1], [1, -1, -1]]))
    assert agreement_of_others(table).tolist() == [0.5, 0.5, 0, 0.5]


@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_intervals_cover_though_judges_err_together_and_are_narrower_than_gold_alone(shared):
    accuracies = [0.85, 0.8, 0.75, 0.7, 0.65]
    covered, width, alone = [], [], []
    for seed in range(120):
        table, truth = draw_panel(accuracies, 1500, shared, seed=seed)
        found = judge_accuracies(table, known_codes(truth, 100))
        for own, right in zip(found, accuracies, strict=True):
            covered.append(own.accuracy.low <= right <= own.accuracy.high)
            width.append(own.accuracy.high - own.accuracy.low)
            gold_alone = share_estimate(right, 100)
            alone.append(gold_alone.high - gold_alone.low)
    assert 0.85 <= np.mean(covered) <= 0.95
    assert np.median(width) < 0.95 * np.median(alone)


def test_few_correct_labels_are_not_taken_for_certain():
    estimate, is_powered = powered_share(np.ones(8), np.ones(8), np.full(90, 0.5))
    assert estimate == share_estimate(1.0, 8)
    assert not is_powered
    assert not powered_share([], [], [0.5])[0].is_known


def one_judge():
    """A judge of 240 items, of which 60 are gold: whether each is of class 1, and called so."""
    k = np.arange(240)
    truth = k * k % 7 < 3
    label = np.where((k % 5 == 0) | (k % 11 == 3), ~truth, truth)
    return truth[:60].astype(float), label[:60].astype(float), label[60:].astype(float)


@pytest.mark.parametrize(
    ("level", "low", "high"), [(0.9, 0.62368849, 0.80369103), (0.95, 0.60644663, 0.82093289)]
)
def test_prediction_powered_intervals_are_those_of_ppi_python(level, low, high):
    """The numbers are from ppi-python 0.2.3: ppi_mean_ci(*one_judge(), alpha=1 - level)."""
    found = prediction_powered_mean(*one_judge(), level)
    assert found.value == pytest.approx(0.71368976, abs=1e-7)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-7)


def test_prediction_powered_intervals_agree_with_ppi_python_where_it_is_installed():
    ppi = pytest.importorskip("ppi_py")
    rng = np.random.default_rng(0)
    for _ in range(5):
        known, predicted, rest = rng.random(80), rng.random(80), rng.random(500)
        known = (known + predicted) / 2
        low, high = ppi.ppi_mean_ci(known, predicted, rest, alpha=0.1)
        found = prediction_powered_mean(known, predicted, rest)
        assert (found.low, found.high) == pytest.approx((float(low[0]), float(high[0])), abs=1e-9)
