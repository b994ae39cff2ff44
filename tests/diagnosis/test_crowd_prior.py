import numpy as np

from annotrace.diagnosis.counting import drawn_counts
from annotrace.diagnosis.crowd_prior import TILTS, estimate_crowd_prior
from annotrace.simulate import simulate_labels


def counts_of(skill, n_labels=200, spread=0.0, seed=0):
    rng = np.random.default_rng(seed)
    right = (skill[:, None] + spread * rng.normal(size=(len(skill), 3))).clip(0.02, 0.98)
    confusion = (1 - right)[:, :, None] / 2 * (1 - np.eye(3)) + right[:, :, None] * np.eye(3)
    truth = rng.integers(0, 3, 500)
    shares = np.full(len(skill), n_labels)
    table = simulate_labels(truth, confusion, labels_per_annotator=shares, random_state=rng)
    return drawn_counts(table, truth)[None]


def spread_of(prior):
    mean = prior.tilt_weights @ TILTS
    return float(np.sqrt(prior.tilt_weights @ np.square(TILTS - mean)))


def test_the_spread_of_skills_is_that_of_the_crowd():
    alike = estimate_crowd_prior(counts_of(np.full(100, 0.7)))
    odds = np.log(0.7 / 0.3) + np.random.default_rng(1).normal(size=100)
    mixed = estimate_crowd_prior(counts_of(1 / (1 + np.exp(-odds))))
    assert spread_of(alike) < 0.75
    assert abs(spread_of(mixed) - odds.std()) < 0.3


def test_a_crowd_that_knows_some_classes_better_is_held_together_less():
    even = estimate_crowd_prior(counts_of(np.full(100, 0.7)))
    uneven = estimate_crowd_prior(counts_of(np.full(100, 0.7), spread=0.15))
    assert uneven.strength < 30 < even.strength


def test_nobody_who_has_made_no_mistake_is_sure_to_make_none():
    counts = np.broadcast_to(10 * np.eye(3, dtype=int), (1, 5, 3, 3))
    assert estimate_crowd_prior(counts).right.max() < 1 - 1e-4


def test_no_labels_at_all_leave_everything_open():
    prior = estimate_crowd_prior(np.zeros((1, 3, 4, 4), dtype=int))
    assert np.all(np.isfinite(prior.right))
    assert spread_of(prior) > 1.2
    np.testing.assert_allclose(prior.errors.sum(axis=1), 1)


def test_the_same_draw_again_says_nothing_new_and_different_ones_do_not_cancel_out():
    one, other = (counts_of(np.full(60, 0.7), 20, 0.15, seed) for seed in (0, 1))
    once, again = estimate_crowd_prior(one), estimate_crowd_prior(np.concatenate([one, one]))
    assert once.strength == again.strength
    np.testing.assert_allclose(once.tilt_weights, again.tilt_weights, atol=1e-9)
    both = estimate_crowd_prior(np.concatenate([one, other]))
    assert both.strength < estimate_crowd_prior((one + other) / 2).strength
