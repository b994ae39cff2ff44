import numpy as np
import pytest
from scipy.special import gammaln

from annotrace.diagnosis import crowd_prior, skills
from annotrace.diagnosis.matrix_moments import SharedErrors
from annotrace.diagnosis.uncertainty import crowd_posterior
from annotrace.simulate import simulate_labels


def crowd(n_annotators=300, n_labels=15, seed=0, skill=(0.3, 0.95)):
    rng = np.random.default_rng(seed)
    right = rng.uniform(*skill, (n_annotators, 1, 1))
    confusion = (1 - right) / 3 * (1 - np.eye(4)) + right * np.eye(4)
    truth = rng.integers(0, 4, 600)
    shares = np.full(n_annotators, n_labels)
    table = simulate_labels(truth, confusion, labels_per_annotator=shares, random_state=rng)
    return table, confusion


def known(table, confidence):
    """Log probabilities of a classifier that is right at a confidence."""
    wrong = (1 - confidence) / (table.n_classes - 1)
    return np.log(np.where(np.eye(table.n_classes)[table.truth] > 0, confidence, wrong))


def test_intervals_cover_the_truth_as_often_as_they_say():
    table, confusion = crowd()
    posterior = crowd_posterior(table, known(table, 1 - 1e-9), confusion)
    for level in (0.5, 0.9):
        low, high = posterior.skills(level)
        covered = np.mean((low <= skills(confusion)) & (skills(confusion) <= high))
        assert covered == pytest.approx(level, abs=0.06)


def test_more_labels_give_narrower_intervals():
    widths = []
    for n_labels in (10, 400):
        table, confusion = crowd(40, n_labels)
        low, high = crowd_posterior(table, known(table, 1 - 1e-9), confusion).skills()
        widths.append(np.mean(high - low))
    assert widths[1] < widths[0] / 2


def test_uncertain_truths_give_wider_intervals():
    table, confusion = crowd(20, 150, skill=(0.4, 0.7))
    sure, unsure = (crowd_posterior(table, known(table, c), confusion) for c in (1 - 1e-9, 0.4))
    assert np.all(unsure.moments.skill_variance.mean() > 1.3 * sure.moments.skill_variance.mean())


def test_someone_without_labels_is_anybody():
    rng = np.random.default_rng(3)
    table, confusion = crowd(100, 100)
    shares = np.r_[np.full(100, 100), 0]
    confusion = np.concatenate([confusion, confusion[:1]])
    table = simulate_labels(table.truth, confusion, labels_per_annotator=shares, random_state=rng)
    low, high = crowd_posterior(table, known(table, 1 - 1e-9), confusion).skills()
    others = skills(confusion[:100])
    assert 0.8 < np.mean((low[-1] <= others) & (others <= high[-1])) < 1


def test_the_same_seed_gives_the_same_intervals():
    table, confusion = crowd(10, 30)
    runs = [crowd_posterior(table, known(table, 0.7), confusion, seed=s) for s in (4, 4, 5)]
    first, same, other = (run.moments.skill_mean for run in runs)
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_skills_hang_little_on_the_seed():
    """With 40 draws, or a prior by a single one of them, they would twice as much."""
    table, confusion = crowd(8, 20)
    runs = [crowd_posterior(table, known(table, 0.5), confusion, seed=s) for s in range(6)]
    low, high = runs[0].skills()
    spread = np.std([run.moments.skill_mean for run in runs], axis=0)
    assert np.mean(spread / (high - low)) < 0.06


def test_work_does_not_grow_with_every_annotator(monkeypatch):
    """Minutes at 100,000 annotators otherwise: one log of gamma for each count that occurs."""
    taken = []

    def counting_gammaln(x):
        taken.append(np.size(x))
        return gammaln(x)

    monkeypatch.setattr(crowd_prior, "gammaln", counting_gammaln)
    needed = []
    for n_annotators in (5000, 10_000):
        table, confusion = crowd(n_annotators, 5)
        taken.clear()
        crowd_posterior(table, known(table, 0.9), confusion, n_draws=2)
        needed.append(sum(taken))
    assert needed[1] < 1.3 * needed[0]


def test_many_annotators_have_the_intervals_of_few(monkeypatch):
    """Draws of errors that are shared give the same moments, within the noise of draws."""
    table, confusion = crowd(2500, 30)
    own = crowd_posterior(table, known(table, 0.8), confusion, n_draws=20)
    monkeypatch.setattr(SharedErrors, "enough", staticmethod(lambda n_classes: 500))
    shared = crowd_posterior(table, known(table, 0.8), confusion, n_draws=20)
    widths = np.sqrt(own.moments.skill_variance)
    apart = (shared.moments.skill_mean - own.moments.skill_mean) / widths
    assert np.sqrt(np.mean(apart**2)) < 0.3
    assert np.mean(np.sqrt(shared.moments.skill_variance) / widths) == pytest.approx(1, abs=0.02)
    np.testing.assert_allclose(shared.mean_draws.mean(0), own.mean_draws.mean(0), atol=0.01)


def test_few_draws_cover_as_often_as_many():
    table, confusion = crowd(1500, 20)
    for n_draws in (5, 40):
        low, high = crowd_posterior(table, known(table, 0.7), confusion, n_draws=n_draws).skills()
        covered = np.mean((low <= skills(confusion)) & (skills(confusion) <= high))
        assert covered == pytest.approx(0.9, abs=0.03)
