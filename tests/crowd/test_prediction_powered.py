from __future__ import annotations

import numpy as np
import pytest

from annotrace.crowd.prediction_powered import prediction_powered_mean


def draw(rng, n, noise):
    truth = rng.random(n) < 0.4
    predicted = np.where(rng.random(n) < noise, ~truth, truth)
    return truth.astype(float), predicted.astype(float)


def test_without_further_predictions_it_is_the_mean_of_the_known_values():
    estimate = prediction_powered_mean([1, 0, 1, 1], [0, 0, 1, 1], [])
    assert (estimate.value, estimate.weight) == (0.75, 0.0)


def test_by_hand():
    y, f, rest = [1, 0, 1, 1], [1, 0, 1, 1], [1, 1, 0, 0, 1, 0, 0, 0]
    # The covariance is 3/16; six of the twelve predictions are 1.
    weight = 3 / 16 / (1.5 * (6 / 12) * (6 / 12) * 12 / 11)
    value = weight * 3 / 8 + (1 - weight) * 3 / 4
    variance = (1 - weight) ** 2 * 3 / 16 / 4 + weight**2 * 15 / 64 / 8
    estimate = prediction_powered_mean(y, f, rest)
    assert estimate.weight == pytest.approx(weight)
    assert estimate.value == pytest.approx(value)
    assert estimate.high - value == pytest.approx(1.6448536 * variance**0.5)


@pytest.mark.parametrize("noise", [0.1, 0.3, 0.5, 0.9])
def test_intervals_cover_however_wrong_the_predictions_are(noise):
    rng = np.random.default_rng(0)
    covered, narrower = [], []
    for _ in range(400):
        y, f = draw(rng, 1100, noise)
        estimate = prediction_powered_mean(y[:100], f[:100], f[100:])
        alone = prediction_powered_mean(y[:100], f[:100], [])
        covered.append(estimate.low <= 0.4 <= estimate.high)
        narrower.append((estimate.high - estimate.low) / (alone.high - alone.low))
    assert 0.86 <= np.mean(covered) <= 0.94
    assert np.median(narrower) <= 1.001
    assert (np.median(narrower) < 0.75) == (noise == 0.1)
