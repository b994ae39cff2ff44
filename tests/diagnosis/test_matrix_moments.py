import numpy as np
import pytest
from scipy.stats import beta

from annotrace.diagnosis.crowd_prior import TILTS, CrowdPrior
from annotrace.diagnosis.matrix_moments import (
    MatricesGivenTruths,
    MomentSums,
    SharedErrors,
    advantage,
    informedness,
)

COUNTS = np.array([[[8, 2, 0], [1, 4, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]])


def prior(tilt_weights):
    right = 1 / (1 + np.exp(-(np.array([1.0, 0.5, 0.0]) + TILTS[:, None])))
    errors = np.array([[0, 0.7, 0.3], [0.5, 0, 0.5], [0.2, 0.8, 0]])
    return CrowdPrior(right, tilt_weights, 6.0, errors, 3.0)


def moments_of(counts, prior):
    sums = MomentSums(*counts.shape[:2])
    common = np.full(counts.shape[1], 1 / counts.shape[1])
    sums.add(slice(0, len(counts)), MatricesGivenTruths(counts, prior).raw_moments(counts, common))
    return sums.moments(1)


def test_at_one_tilt_the_diagonal_is_a_beta_distribution():
    one = prior(np.eye(len(TILTS))[30])
    moments = moments_of(COUNTS, one)
    start = one.right[30, 0]
    reference = beta(6 * start + 8, 6 * (1 - start) + 2)
    assert moments.cell_mean[0, 0, 0] == pytest.approx(reference.mean())
    assert moments.cell_variance[0, 0, 0] == pytest.approx(reference.var())


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("who", [0, 1])
def test_moments_are_those_of_draws(who, shares):
    mixed = prior(np.exp(-0.5 * TILTS**2) / np.exp(-0.5 * TILTS**2).sum())
    many = np.repeat(COUNTS[who : who + 1], 40_000, axis=0)
    rng = np.random.default_rng(0)
    shared = SharedErrors(20_000, mixed, rng).take(slice(0, 40_000)) if shares else None
    drawn = MatricesGivenTruths(many, mixed).draw(rng, shared)
    moments = moments_of(COUNTS, mixed)
    np.testing.assert_allclose(drawn.sum(axis=2), 1)
    np.testing.assert_allclose(drawn.mean(axis=0), moments.cell_mean[who], atol=0.005)
    np.testing.assert_allclose(drawn.var(axis=0), moments.cell_variance[who], atol=0.002)
    skill = np.diagonal(drawn, axis1=1, axis2=2).mean(axis=1)
    assert skill.mean() == pytest.approx(moments.skill_mean[who], abs=0.004)
    assert skill.std() == pytest.approx(np.sqrt(moments.skill_variance[who]), rel=0.03)


@pytest.mark.parametrize("measure", [informedness, advantage])
@pytest.mark.parametrize("common", [[1 / 3, 1 / 3, 1 / 3], [0.9, 0.08, 0.02]])
def test_what_a_hammer_spammer_knows_is_how_often_he_knows(measure, common):
    habit = np.array([0.7, 0.2, 0.1])
    matrices = np.stack([q * np.eye(3) + (1 - q) * habit for q in (0.0, 0.4, 1.0)])
    np.testing.assert_allclose(measure(matrices, np.array(common)), [0.0, 0.4, 1.0], atol=1e-12)


def test_a_swap_is_informed_and_at_a_disadvantage():
    swap, even = np.eye(2)[None, ::-1], np.array([0.5, 0.5])
    assert informedness(swap, even) == pytest.approx(1)
    assert advantage(swap, even) == pytest.approx(-1)


def test_what_is_thought_of_a_rare_class_makes_nobody_informed():
    always = np.array([[[1.0, 0, 0], [1.0, 0, 0], [0.2, 0, 0.8]]])
    even, rare = np.full(3, 1 / 3), np.array([0.6, 0.399, 0.001])
    assert informedness(always, even) > 0.6
    assert informedness(always, rare) < 0.1
    assert advantage(always, rare) < 0.01


def test_moments_of_several_draws_count_what_lies_between_them():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(5, 2000))
    sums = MomentSums(2000, 1)
    nothing = np.zeros((2000, 1, 1))
    for mean in means:
        sums.add(slice(0, 2000), (nothing, nothing, mean, mean**2 + 0.5, *(mean, mean**2) * 2))
    moments = sums.moments(5)
    np.testing.assert_allclose(moments.skill_mean, means.mean(axis=0))
    rubin = means.var(axis=0, ddof=1) * (1 + 1 / 5)
    np.testing.assert_allclose(moments.skill_variance, 0.5 + rubin)
    np.testing.assert_allclose(moments.informed_variance, rubin)
    np.testing.assert_allclose(moments.advantage_variance, rubin)
