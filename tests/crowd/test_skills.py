import time
from dataclasses import replace

import numpy as np
import pytest
from fitted_crowds import crowd_result
from scipy.stats import beta, dirichlet

from annotrace.crowd.ability import SLIPS, AbilityModel, LabelCounts
from annotrace.crowd.dependence import ErrorDependence
from annotrace.crowd.em import expected_counts
from annotrace.crowd.skills import (
    N_ROUNDS,
    AnnotatorPosterior,
    annotator_posterior,
    beta_interval,
    skills,
)
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels


def crowd(n_annotators=300, n_labels=15, certainty=1 - 1e-9, skill=(0.3, 0.95), seed=0, **parts):
    """600 items of four classes, known with some certainty, by annotators of uneven skill."""
    rng = np.random.default_rng(seed)
    right = rng.uniform(*skill, (n_annotators, 1, 1))
    confusion = (1 - right) / 3 * (1 - np.eye(4)) + right * np.eye(4)
    truth = rng.integers(0, 4, 600)
    shares = np.broadcast_to(n_labels, n_annotators)
    table = simulate_labels(truth, confusion, labels_per_annotator=shares, random_state=rng)
    prior = np.where(np.eye(4)[truth] > 0, certainty, (1 - certainty) / 3)
    return crowd_result(table, prior, confusion, **parts), right[:, 0, 0]


def covered(result, skill, level=0.9):
    low, high = result.annotators.skill_interval(level)
    return np.mean((low <= skill) & (skill <= high))


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_cover_the_true_skill_at_their_level(level):
    assert covered(*crowd(), level) == pytest.approx(level, abs=0.06)


def test_intervals_cover_the_true_skill_if_truths_are_uncertain():
    assert covered(*crowd(1500, 20, certainty=0.7)) == pytest.approx(0.9, abs=0.04)


def test_cells_are_covered():
    rng = np.random.default_rng(0)
    confusion = rng.dirichlet(np.ones(3), (200, 3)) / 2 + np.eye(3) / 2
    truth = rng.integers(0, 3, 600)
    table = simulate_labels(
        truth, confusion, labels_per_annotator=np.full(200, 40), random_state=rng
    )
    result = crowd_result(table, np.eye(3)[truth], confusion)
    low, high = result.annotators.cell_interval()
    assert np.mean((low <= confusion) & (confusion <= high)) == pytest.approx(0.9, abs=0.05)
    some = result.annotators.cell_interval(annotators=np.array([3, 7]))
    np.testing.assert_allclose(some[0], low[[3, 7]])
    np.testing.assert_allclose(result.annotators.diagonal_interval()[1], np.einsum("rkk->rk", high))


def test_more_labels_give_narrower_intervals():
    widths = []
    for n_labels in (10, 400):
        low, high = crowd(40, n_labels)[0].annotators.skill_interval()
        widths.append(np.mean(high - low))
    assert widths[1] < widths[0] / 2


def test_uncertain_truths_give_wider_intervals():
    certain, uncertain = (
        crowd(20, 150, certainty, skill=(0.4, 0.7))[0].annotators for certainty in (1 - 1e-9, 0.4)
    )
    assert uncertain.skill_variance.mean() > 1.3 * certain.skill_variance.mean()


def test_an_annotator_without_labels_has_the_pools_matrix_and_spread():
    result, skill = crowd(101, np.r_[np.full(100, 100), 0])
    annotators = result.annotators
    assert annotators.skill[-1] == pytest.approx(np.mean(skill[:100]), abs=0.05)
    low, high = (end[-1] for end in annotators.skill_interval())
    assert np.mean((low <= skill[:100]) & (skill[:100] <= high)) > 0.8
    assert 0.2 < low < high < 0.98


def test_matrices_and_variances_are_those_of_beta_and_dirichlet_distributions():
    rng = np.random.default_rng(3)
    truth, confusion = rng.integers(0, 3, 90), rng.dirichlet([2.0, 1.0, 1.0], (5, 3))
    table = simulate_labels(truth, confusion, labels_per_item=2, random_state=rng)
    found = crowd_result(table, np.full(3, 1 / 3), confusion, gold=truth).annotators
    labels = LabelCounts(found.counts, found.counts)
    model = AbilityModel.initial(5, 3).fit(labels)
    for _ in range(N_ROUNDS):
        model = model.fit_abilities(labels)
    step = 1e-5

    def prior(r, k, shift=0.0):
        accuracy = labels.expected_accuracy(model.ability + shift)[r, k]
        return np.array([accuracy, 1 - accuracy]) * model.strength + SLIPS

    for r, k in np.ndindex(5, 3):
        seen = [labels.right[r, k], labels.wrong[r, k]]
        diagonal, moved = beta(*prior(r, k) + seen), beta(*prior(r, k, step) + seen)
        others = np.arange(3) != k
        errors = model.error_strength * model.errors[k, others] + found.counts[r, k, others]
        assert found.mean[r, k, k] == pytest.approx(diagonal.mean())
        expected = (1 - diagonal.mean()) * dirichlet(errors).mean()
        np.testing.assert_allclose(found.mean[r, k, others], expected)
        assert found.diagonal_variance[r, k] == pytest.approx(diagonal.var())
        slope = (moved.mean() - diagonal.mean()) / step
        assert found.diagonal_slope[r, k] == pytest.approx(slope, rel=1e-3)
        assert found.error_counts[r, k] == pytest.approx(errors.sum())
    np.testing.assert_allclose(found.ability_variance, model.variance)


def test_few_labels_are_shrunk_towards_the_pool():
    result, skill = crowd(200, np.r_[np.full(100, 8), np.full(100, 300)])
    raw = np.einsum("rkk->rk", result.annotators.counts).sum(1) / 8
    error = np.square(result.annotators.skill - skill)[:100].mean()
    assert error < 0.7 * np.square(raw - skill)[:100].mean()


def test_skill_is_the_mean_diagonal_and_rows_sum_to_one():
    annotators = crowd(20, 50, 0.8)[0].annotators
    np.testing.assert_allclose(annotators.mean.sum(axis=2), 1)
    diagonal = np.diagonal(annotators.mean, axis1=1, axis2=2)
    np.testing.assert_allclose(annotators.skill, diagonal.mean(axis=1))


def test_gold_and_earlier_counts_are_counted_and_single_labels_are_not():
    table = LabelTable.from_codes([0, 0, 1, 2], [0, 1, 0, 1], [0, 0, 1, 1])
    gold = np.array([-1, 1, -1])
    confusion = np.repeat((0.8 * np.eye(2) + 0.1)[None], 2, axis=0)
    earlier = np.zeros((2, 2, 2))
    earlier[1, 1, 0] = 7
    result = crowd_result(table, [0.5, 0.5], confusion, gold=gold, prior_counts=earlier)
    counts = result.annotators.counts
    assert counts[0].sum() == pytest.approx(2)
    assert counts[0, 1, 1] >= 1
    assert counts[1].sum() == pytest.approx(8)
    assert counts[1, 1, 0] >= 7


def test_with_a_classifier_single_labels_are_counted():
    table = LabelTable.from_codes([0, 1], [0, 0], [0, 1])
    result = crowd_result(table, np.full((2, 2), 0.5), 0.8 * np.eye(2)[None] + 0.1)
    assert result.annotators.counts.sum() == pytest.approx(2)


def test_counts_of_known_items_are_those_of_the_table():
    result, _ = crowd(30, 40)
    expected = expected_counts(result.posterior, result.table)
    np.testing.assert_allclose(result.annotators.counts, expected, atol=1e-4)


def test_votes_are_not_taken_for_probabilities():
    """The shares of five votes would make perfect annotators look mediocre."""
    rng = np.random.default_rng(0)
    truth, confusion = rng.integers(0, 3, 400), hammer_spammers(6, 3, 0.8, rng)
    table = simulate_labels(truth, confusion, labels_per_item=5, random_state=rng)
    shares = table.votes() / table.votes().sum(axis=1, keepdims=True)
    result = crowd_result(table, np.full(3, 1 / 3), confusion, posterior=shares, is_vote=True)
    skill = np.diagonal(confusion, axis1=1, axis2=2).mean(axis=1)
    np.testing.assert_allclose(result.annotators.skill, skill, atol=0.06)
    certain, uncertain = (
        replace(result, is_vote=False, posterior=posterior).annotators
        for posterior in (np.eye(3)[result.estimate], shares)
    )
    np.testing.assert_array_equal(result.annotators.mean, certain.mean)
    assert np.abs(result.annotators.mean - uncertain.mean).max() > 1e-6


def test_chance_corrected_accuracy_is_zero_for_spammers_and_one_for_perfect_annotators():
    always, perfect, swapped = np.tile([0.0, 1.0], (2, 1)), np.eye(2), np.eye(2)[::-1]
    truth = np.arange(600) % 2
    confusion = np.stack([perfect, perfect, always, swapped])
    table = simulate_labels(truth, confusion, random_state=0)
    annotators = crowd_result(table, np.eye(2)[truth], confusion).annotators
    low, high = annotators.chance_corrected_interval(np.array([0.5, 0.5]))
    expected = [1, 1, 0, -1]
    assert np.all((low - 0.02 <= expected) & (expected <= high + 0.02))
    assert np.all(high - low < 0.1)


def test_the_first_access_is_cheap_and_kept():
    result, _ = crowd(300, 100, 0.8)
    started = time.process_time()
    annotator_posterior(result)
    assert time.process_time() - started < 2
    assert result.annotators is result.annotators


def test_nothing_compared_leaves_everybody_at_one_half():
    table = LabelTable.from_codes(np.arange(30), np.arange(30) % 3, np.arange(30) % 2)
    result = crowd_result(table, [0.5, 0.5], np.repeat(np.eye(2)[None], 3, axis=0))
    np.testing.assert_allclose(result.annotators.skill, 0.5)
    assert not result.annotators.counts.any()


def test_intervals_are_those_of_beta_distributions():
    low, high = beta_interval(np.array([0.75]), np.array([beta(6, 2).var()]), 0.9)
    np.testing.assert_allclose([low[0], high[0]], beta(6, 2).interval(0.9))


def test_the_skill_of_known_matrices_is_the_mean_diagonal():
    np.testing.assert_allclose(skills(np.array([[[0.9, 0.1], [0.3, 0.7]]])), [0.8])


def test_equal_cells_have_equal_intervals_in_any_shape():
    rng = np.random.default_rng(0)
    mean, variance = rng.uniform(0.1, 0.9, (2, 3, 4)), rng.uniform(1e-4, 1e-2, (2, 3, 4))
    mean[1], variance[1] = mean[0], variance[0]
    low, high = beta_interval(mean, variance, 0.9)
    size = mean * (1 - mean) / variance - 1
    np.testing.assert_allclose(low, beta.ppf(0.05, mean * size, (1 - mean) * size), rtol=1e-9)
    np.testing.assert_allclose(high, beta.ppf(0.95, mean * size, (1 - mean) * size), rtol=1e-9)


def posterior_and_draws(n_draws=200_000):
    """A posterior of one annotator, and confusion matrices drawn from it."""
    rng = np.random.default_rng(0)
    mean = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.15, 0.6]])
    diagonal, n_labels = np.diagonal(mean), np.array([30.0, 60.0, 20.0])
    slope, ability_variance = np.array([0.2, 0.1, 0.15]), 0.04
    error_counts = np.array([6.0, 12.0, 9.0])
    posterior = AnnotatorPosterior(
        counts=np.zeros((1, 3, 3)),
        mean=mean[None],
        item_posterior=np.zeros((0, 3)),
        diagonal_variance=(diagonal * (1 - diagonal) / (n_labels + 1))[None],
        diagonal_slope=slope[None],
        ability_variance=np.array([ability_variance]),
        error_counts=error_counts[None],
        dependence=ErrorDependence(0.0, 0.0, 0.0, n_votes=3.0),
        known_share=np.zeros(1),
    )
    ability = rng.normal(0, ability_variance**0.5, n_draws)
    draws = np.zeros((n_draws, 3, 3))
    for k in range(3):
        others = np.flatnonzero(np.arange(3) != k)
        right = rng.beta(n_labels[k] * diagonal[k], n_labels[k] * (1 - diagonal[k]), n_draws)
        draws[:, k, k] = right + slope[k] * ability
        errors = error_counts[k] * mean[k, others] / (1 - diagonal[k])
        draws[:, k, others] = rng.dirichlet(errors, n_draws) * (1 - draws[:, k, k])[:, None]
    return posterior, draws


def test_variances_are_those_of_matrices_drawn_from_the_posterior():
    posterior, draws = posterior_and_draws()
    np.testing.assert_allclose(posterior.cell_variance(slice(None))[0], draws.var(0), rtol=0.02)
    np.testing.assert_allclose(posterior.skill_variance[0], skills(draws).var(), rtol=0.02)


def test_chance_corrected_accuracy_of_uneven_classes_has_the_interval_of_draws():
    posterior, draws = posterior_and_draws()
    shares = np.array([0.6, 0.3, 0.1])
    agreement = np.einsum("k,nkk->n", shares, draws)
    by_chance = np.einsum("k,nkj,j->n", shares, draws, shares)
    corrected = (agreement - by_chance) / (1 - np.square(shares).sum())
    ends = posterior.chance_corrected_interval(shares)
    np.testing.assert_allclose(np.ravel(ends), np.quantile(corrected, [0.05, 0.95]), atol=0.005)


def test_certain_skills_have_intervals_without_width():
    low, high = beta_interval(np.array([0.0, 0.5, 1.0]), np.zeros(3), 0.9)
    np.testing.assert_allclose(low, [0, 0.5, 1], atol=1e-4)
    np.testing.assert_allclose(high, low, atol=1e-4)


def test_a_variance_beyond_that_of_any_skill_gives_the_whole_range():
    low, high = beta_interval(np.array([0.5]), np.array([1.0]), 0.9)
    np.testing.assert_allclose([low[0], high[0]], [0, 1], atol=1e-6)
