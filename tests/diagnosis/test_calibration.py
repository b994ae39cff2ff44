import numpy as np
import pytest
from scipy.stats import binomtest

from annotrace.diagnosis import calibration_error, reliability_curve
from annotrace.diagnosis.calibration import share_interval
from annotrace.errors import InputError


def test_bins_hold_equally_many_items_in_the_order_of_confidence():
    confidence = np.array([0.9, 0.6, 0.8, 0.7])
    posterior = np.stack([confidence, 1 - confidence], axis=1)
    curve = reliability_curve(posterior, np.array([0, 1, 0, 0]), n_bins=2)
    np.testing.assert_allclose(curve.confidence, [0.65, 0.85])
    np.testing.assert_allclose(curve.accuracy, [0.5, 1.0])
    assert curve.n_items.tolist() == [2, 2]
    expected = (0.15 + 0.15) / 2
    assert calibration_error(posterior, np.array([0, 1, 0, 0]), 2) == pytest.approx(expected)


def test_honest_confidence_has_no_error_and_boasting_has():
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.ones(3), 20_000)
    truth = (rng.random(20_000)[:, None] >= posterior.cumsum(axis=1)).sum(axis=1)
    assert calibration_error(posterior, truth) < 0.015
    boasting = posterior**3 / (posterior**3).sum(axis=1, keepdims=True)
    assert calibration_error(boasting, truth) > 0.15


def test_items_of_unknown_truth_are_left_out():
    posterior = np.array([[0.8, 0.2], [0.1, 0.9]])
    assert calibration_error(posterior, np.array([0, -1])) == pytest.approx(0.2)
    with pytest.raises(InputError, match="items of known truth"):
        calibration_error(posterior, np.array([-1, -1]))


def test_shares_have_wilsons_interval():
    right, counted = np.array([0, 3, 16, 20]), np.array([4, 9, 19, 20])
    low, high = share_interval(right / counted, counted)
    expected = [
        binomtest(k, n).proportion_ci(0.9, method="wilson")
        for k, n in zip(right.tolist(), counted.tolist(), strict=True)
    ]
    np.testing.assert_allclose(np.stack([low, high], axis=1), expected, atol=1e-4)
