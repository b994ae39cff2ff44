import numpy as np
import pytest

from annotrace.errors import InputError
from annotrace.simulate import cifar10_annotators, hammer_spammers, pairwise_flippers


@pytest.mark.parametrize("group", [pairwise_flippers, hammer_spammers])
def test_rows_sum_to_one_and_a_seed_repeats(group):
    drawn = group(50, 10, 0.35, random_state=3)
    np.testing.assert_allclose(drawn.sum(axis=2), 1)
    np.testing.assert_array_equal(drawn, group(50, 10, 0.35, random_state=3))
    assert not np.array_equal(drawn, group(50, 10, 0.35, random_state=4))


def test_a_pairwise_flipper_has_one_skill_and_one_mistake_for_each_class():
    for matrix in pairwise_flippers(200, 10, 0.3, random_state=0):
        right = np.diagonal(matrix)
        assert np.ptp(right) == 0
        mistakes = matrix - np.diag(right)
        assert np.all((mistakes > 0).sum(axis=1) == 1)
        np.testing.assert_allclose(mistakes.max(axis=1), 1 - right)


def test_flipping_targets_are_uniform_over_the_other_classes():
    drawn = pairwise_flippers(4000, 5, 0.3, random_state=0)
    targets = (drawn * (1 - np.eye(5))).argmax(axis=2)
    share = np.bincount(targets[:, 0], minlength=5) / 4000
    assert share[0] == 0
    np.testing.assert_allclose(share[1:], 0.25, atol=0.03)


def test_skills_have_the_papers_mean_and_deviation():
    skill = pairwise_flippers(20_000, 3, 0.4, random_state=0)[:, 0, 0]
    assert skill.mean() == pytest.approx(0.4, abs=5e-4)
    assert skill.std() == pytest.approx(0.01, rel=0.05)


def test_a_hammer_spammer_is_correct_or_chooses_at_random():
    matrix = hammer_spammers(1, 4, 0.5, random_state=0)[0]
    q = 1 - 4 * matrix[0, 1]
    np.testing.assert_allclose(matrix, q * np.eye(4) + (1 - q) / 4)
    assert q == pytest.approx(0.5, abs=0.05)


def test_the_cifar10_group_is_correct_45_percent_of_the_time():
    group = cifar10_annotators()
    np.testing.assert_allclose(group.sum(axis=2), 1)
    assert np.diagonal(group, axis1=1, axis2=2).mean() == pytest.approx(0.45)
    spammer, similar, neighbours, adversary = group
    assert spammer[0, 0] == pytest.approx(0.55)
    cat, dog, automobile, truck = 3, 5, 1, 9
    assert similar[cat, dog] == similar[dog, cat] == similar[automobile, truck] == 0.4
    assert neighbours[0, 9] == neighbours[0, 1] == 0.25
    assert adversary[8, 1] == 0.85


def test_a_skill_outside_zero_to_one_is_rejected():
    with pytest.raises(InputError, match=r"`skill` to be from 0 to 1, but got 1.5"):
        hammer_spammers(2, 3, 1.5)
