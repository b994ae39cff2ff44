import numpy as np
import pytest
from scipy.stats import beta

from annotrace.diagnosis import beta_quantiles
from annotrace.diagnosis.beta_quantiles import beta_interval


def test_intervals_have_the_quantiles_of_their_moments():
    reference = beta(3, 7)
    low, high = beta_interval(np.array([reference.mean()]), np.array([reference.var()]), 0.8)
    np.testing.assert_allclose([low[0], high[0]], reference.ppf([0.1, 0.9]))


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_many_intervals_are_those_of_few(monkeypatch, level):
    rng = np.random.default_rng(0)
    mean = rng.beta(0.5, 2, 10_000)
    size = np.exp(rng.uniform(-4, 18, 10_000))
    one_by_one = beta_interval(mean, mean * (1 - mean) / (size + 1), level)
    monkeypatch.setattr(beta_quantiles, "_MANY", 0)
    by_table = beta_interval(mean, mean * (1 - mean) / (size + 1), level)
    np.testing.assert_allclose(by_table, one_by_one, rtol=0, atol=1e-5)
