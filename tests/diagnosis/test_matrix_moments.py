import numpy as np
import pytest
from scipy.stats import beta

from annotrace.diagnosis.crowd_prior import TILTS, CrowdPrior
from annotrace.diagnosis.matrix_moments import (
    draw_matrices,
    informedness,
    moments_given_truths,
)

COUNTS = np.array([[[8, 2, 0], [1, 4, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]])


def prior(tilt_weights):
    right = 1 / (1 + np.exp(-(np.array([1.0, 0.5, 0.0]) + TILTS[:, None])))
    errors = np.array([[0, 0.7, 0.3], [0.5, 0, 0.5], [0.2, 0.8, 0]])
    return CrowdPrior(right, tilt_weights, 6.0, errors, 3.0)


def test_at_one_tilt_the_diagonal_is_a_beta_distribution():
    one = prior(np.eye(len(TILTS))[30])
    moments = moments_given_truths(COUNTS, one, COUNTS)
    start = one.right[30, 0]
    reference = beta(6 * start + 8, 6 * (1 - start) + 2)
    assert moments.cell_mean[0, 0, 0] == pytest.approx(reference.mean())
    assert moments.cell_variance[0, 0, 0] == pytest.approx(reference.var())


@pytest.mark.parametrize("who", [0, 1])
def test_moments_are_those_of_draws(who):
    mixed = prior(np.exp(-0.5 * TILTS**2) / np.exp(-0.5 * TILTS**2).sum())
    many = np.repeat(COUNTS[who : who + 1], 40_000, axis=0)
    drawn = draw_matrices(many, mixed, np.random.default_rng(0))
    moments = moments_given_truths(COUNTS, mixed, COUNTS)
    np.testing.assert_allclose(drawn.sum(axis=2), 1)
    np.testing.assert_allclose(drawn.mean(axis=0), moments.cell_mean[who], atol=0.005)
    np.testing.assert_allclose(drawn.var(axis=0), moments.cell_variance[who], atol=0.002)
    skill = np.diagonal(drawn, axis1=1, axis2=2).mean(axis=1)
    assert skill.mean() == pytest.approx(moments.skill_mean[who], abs=0.004)
    assert skill.std() == pytest.approx(np.sqrt(moments.skill_variance[who]), rel=0.03)


def test_informedness_of_a_hammer_spammer_is_how_often_he_knows():
    habit = np.array([0.7, 0.2, 0.1])
    matrices = np.stack([q * np.eye(3) + (1 - q) * habit for q in (0.0, 0.4, 1.0)])
    np.testing.assert_allclose(informedness(matrices), [0.0, 0.4, 1.0], atol=1e-12)
