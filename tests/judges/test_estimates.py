import math

import numpy as np
import polars as pl
import pytest

from annotrace.judges.estimates import (
    UNKNOWN,
    Estimate,
    difference_estimate,
    frame_of,
    interval_variance,
    normal_interval,
    ratio_variance,
    share_estimate,
)
from annotrace.judges.models import ModelRuns

Z = 1.6448536269514722


def wilson_ends(share, n):
    """The two shares p whose standard score is 1.645: roots of a quadratic equation."""
    a, b, c = 1 + Z**2 / n, -(2 * share + Z**2 / n), share**2
    return sorted(np.roots([a, b, c]).real)


@pytest.mark.parametrize(("share", "n"), [(0.5, 10), (0.9, 30), (0.0, 12), (1.0, 12)])
def test_a_share_has_wilsons_interval(share, n):
    estimate = share_estimate(share, n)
    assert (estimate.low, estimate.high) == pytest.approx(tuple(wilson_ends(share, n)), abs=2e-4)


def test_a_variance_counts_as_so_many_observations():
    assert share_estimate(0.8, 10, 0.8 * 0.2 / 40) == share_estimate(0.8, 40)
    # A share of 1 has no variance to measure, and n observations.
    assert share_estimate(1.0, 10, 0.0) == share_estimate(1.0, 10)
    assert share_estimate(0.5, 0) is UNKNOWN


def test_observations_of_one_cluster_count_once():
    rng = np.random.default_rng(0)
    part = rng.integers(2, size=50).astype(float)
    alone = ratio_variance(part, np.ones(50), np.arange(50))
    assert alone == pytest.approx(part.var(ddof=1) / 50)
    repeated = ratio_variance(np.repeat(part, 3), np.ones(150), np.repeat(np.arange(50), 3))
    assert repeated == pytest.approx(alone)


def test_differences_without_any_still_have_an_interval():
    same = difference_estimate(np.zeros(30))
    assert same.value == 0
    assert same.high == pytest.approx(Z * math.sqrt(1 / 32 / 32))
    # 6 pairs in favour of one side and 2 of the other, of 20: the table of Agresti and Min.
    mixed = difference_estimate([1] * 6 + [-1] * 2 + [0] * 12)
    error = math.sqrt((6.5 + 2.5) - (6.5 - 2.5) ** 2 / 22) / 22
    assert mixed.value == 0.2
    assert (mixed.low, mixed.high) == pytest.approx((4 / 22 - Z * error, 4 / 22 + Z * error))
    assert difference_estimate([]) is UNKNOWN


def test_an_interval_gives_its_variance_back():
    made = normal_interval(2.0, 0.3)
    assert interval_variance(made.low, made.high) == pytest.approx(0.09)


def test_rows_become_columns():
    runs = ModelRuns("gpt", ("a", "b"), Estimate(0.5, 0.25, 0.75), UNKNOWN, math.nan)
    frame = frame_of([runs])
    assert frame.columns[:5] == [
        *("model", "runs", "consistency", "consistency_low", "consistency_high")
    ]
    assert frame.row(0)[:5] == ("gpt", "a, b", 0.5, 0.25, 0.75)
    assert frame["others"].to_list() == frame["effective_votes"].to_list() == [None]
    assert frame["others"].dtype == pl.Float64
