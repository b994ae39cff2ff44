from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import betabinom, norm

from annotrace.crowd.ability import SLIPS, STRENGTHS, AbilityModel, LabelCounts


def counted(n_annotators=400, n_labels=200, ability_spread=1.0, strength=None, seed=0):
    """Counts of known items, of annotators whose abilities vary by so much."""
    rng = np.random.default_rng(seed)
    ability = ability_spread * rng.standard_normal(n_annotators)
    accuracy = 1 / (1 + np.exp(-(ability[:, None] + [0.5, 1.0, 1.5])))
    if strength is not None:
        accuracy = rng.beta(strength * accuracy, strength * (1 - accuracy))
    right = rng.binomial(n_labels, accuracy)
    counts = np.zeros((n_annotators, 3, 3))
    counts[:, np.arange(3), np.arange(3)] = right
    one = rng.binomial(n_labels - right, 0.7)
    counts[:, np.arange(3), [1, 2, 0]] = one
    counts[:, np.arange(3), [2, 0, 1]] = n_labels - right - one
    return LabelCounts(counts, counts), ability


def fit(labels, n_rounds=5):
    model = AbilityModel.initial(*labels.total.shape)
    for _ in range(n_rounds):
        model = model.fit(labels)
    return model


@pytest.mark.parametrize("spread", [0.3, 1.2])
def test_the_spread_of_abilities_is_found(spread):
    labels, ability = counted(ability_spread=spread)
    model = fit(labels)
    assert model.spread == pytest.approx(spread, rel=0.15)
    assert np.corrcoef(model.ability, ability)[0, 1] > 0.95


def test_rows_that_deviate_from_the_ability_make_a_weak_prior():
    together, apart = (fit(counted(strength=strength)[0]) for strength in (None, 5.0))
    assert together.strength > 30
    assert 2 < apart.strength < 12
    assert fit(counted(strength=0.3)[0]).strength == 1


def test_errors_that_all_make_alike_have_a_strong_prior():
    model = fit(counted()[0])
    assert model.error_strength == 100
    assert np.all(np.diagonal(model.errors) == 0)
    np.testing.assert_allclose(model.errors.sum(axis=1), 1)
    assert model.errors[0, 1] == pytest.approx(0.7, abs=0.02)


def test_labels_as_likely_correct_as_any_other_carry_no_information():
    counts = np.full((1, 2, 2), 25.0)
    labels = LabelCounts(counts, counts / 2)
    even = np.full((1, 2), 0.5)
    np.testing.assert_allclose(labels.information(even, np.ones((1, 2))), 0, atol=1e-9)
    known = LabelCounts(counts, counts)
    np.testing.assert_allclose(known.information(even, np.ones((1, 2))), 100 / 4)


def test_information_is_the_sum_of_squared_scores_of_labels():
    rng = np.random.default_rng(0)
    responsibility = rng.dirichlet([1.0, 1.0], 60)  # of the true classes of one annotator's labels
    reported = rng.integers(0, 2, 60)
    one_hot = np.eye(2)[reported]
    counts, squares = responsibility.T @ one_hot, np.square(responsibility).T @ one_hot
    labels = LabelCounts(counts[None], squares[None])
    accuracy = np.array([[0.7, 0.4]])
    correct = responsibility[np.arange(60), reported]
    mean = (responsibility @ accuracy[0]).mean()
    expected = np.square(correct - mean).sum()
    found = labels.information(accuracy, np.ones((1, 2)))
    assert found[0] == pytest.approx(expected)
    assert labels.information(accuracy, np.full((1, 2), 0.25))[0] == pytest.approx(expected / 4)
    # Nor is it ever more than that of known items.
    known = LabelCounts(counts[None], counts[None])
    complete = counts.sum(1) @ (accuracy * (1 - accuracy))[0]
    assert known.information(accuracy, np.ones((1, 2)))[0] == pytest.approx(complete)


def test_certain_labels_count_fully():
    labels, _ = counted(20)
    np.testing.assert_allclose(labels.effective_share(), 1)
    nothing = np.zeros((1, 2, 2))
    np.testing.assert_allclose(LabelCounts(nothing, nothing).effective_share(), 1)


def test_uncertain_labels_of_one_kind_count_by_the_share_of_the_other():
    counts = 1e6 * np.array([[[0.8, 0.2], [0.4, 0.6]]])
    half_right, half_wrong = counts.copy(), counts.copy()
    half_right[:, [0, 1], [0, 1]] /= 2
    half_wrong[:, [0, 1], [1, 0]] /= 2
    for squares, expected in ((half_right, [0.9, 0.8]), (half_wrong, [0.6, 0.7])):
        share = LabelCounts(counts, squares).effective_share()
        np.testing.assert_allclose(share, [expected], atol=1e-4)
    few = LabelCounts(np.array([[[3.0, 1.0], [0.0, 0.0]]]), np.array([[[1.0, 1.0], [0.0, 0.0]]]))
    accuracy = 3.5 / 5
    p = (3 + 2 * accuracy) / 6
    expected = (1 - p) * (1 + accuracy) / (3 + accuracy) + p
    np.testing.assert_allclose(few.effective_share(), [[expected, 1]])


def test_the_pool_starts_with_half_a_label_of_each_kind():
    counts = np.zeros((2, 3, 3))
    counts[0] = [[3, 1, 0], [0, 8, 0], [2, 2, 0]]
    counts[1, 0, 0] = 4
    labels = LabelCounts(counts, counts)
    np.testing.assert_allclose(labels.accuracy, [7.5 / 9, 8.5 / 9, 0.5 / 5])
    errors = AbilityModel.initial(2, 3).fit(labels).errors
    np.testing.assert_allclose(errors, [[0, 0.75, 0.25], [0.5, 0, 0.5], [0.5, 0.5, 0]])


def test_the_strength_is_that_of_the_most_probable_labels():
    labels, _ = counted(60, n_labels=12, strength=8.0)
    model = AbilityModel.initial(60, 3).fit(labels)
    accuracy = labels.expected_accuracy(model.ability)

    def log_evidence(strength):
        a, b = strength * accuracy + SLIPS, strength * (1 - accuracy) + SLIPS
        return betabinom.logpmf(labels.right, labels.total, a, b).sum()

    assert model.strength == max(STRENGTHS, key=log_evidence)


def test_before_any_label_abilities_are_zero_and_uncertain():
    model = AbilityModel.initial(2, 3)
    assert model.ability.tolist() == [0, 0]
    assert model.variance.tolist() == [model.spread**2] * 2
    assert not model.errors.any()


@pytest.mark.parametrize("n_labels", [1, 20])
def test_abilities_are_those_of_the_most_probable_labels(n_labels):
    """Labels of a row beyond the first tell less: rows deviate from the ability."""
    labels, _ = counted(12, n_labels)
    model = AbilityModel.initial(12, 3).fit_abilities(labels)
    weight = (model.strength + 1) / (model.strength + labels.total)

    def loss(ability, r):
        accuracy = labels.expected_accuracy(np.array([ability]))[0]
        logs = labels.right[r] * np.log(accuracy) + labels.wrong[r] * np.log(1 - accuracy)
        return -weight[r] @ logs - norm.logpdf(ability, model.centre, model.spread)

    best = [minimize_scalar(loss, args=(r,)).x for r in range(12)]
    np.testing.assert_allclose(model.ability, best, atol=0.01)


def test_a_model_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        AbilityModel.initial(2, 3).strength = 1.0


def test_an_annotator_without_labels_varies_as_the_crowd():
    counts = counted(20)[0].counts
    counts[7] = 0
    model = fit(LabelCounts(counts, counts))
    assert model.ability[7] == model.centre
    assert model.variance[7] == pytest.approx(model.spread**2)
    nothing = np.zeros((3, 2, 2))
    initial = AbilityModel.initial(3, 2)
    unchanged = initial.fit(LabelCounts(nothing, nothing))
    assert (unchanged.centre, unchanged.spread) == pytest.approx((0, initial.spread))
