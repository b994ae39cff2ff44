import numpy as np
import pytest
import torch

from annotrace.aggregation.second_opinion import Solution, followers, labels_of
from annotrace.crowd.problem import CrowdProblem
from annotrace.labels import LabelTable


def divided_crowd(copying, n_items=600, seed=0):
    """Twelve annotators; the first five give one shared answer, right half of the time."""
    rng = np.random.default_rng(seed)
    truth, shared = rng.integers(3, size=(2, n_items))
    shared = np.where(rng.random(n_items) < 0.5, truth, shared)
    item, annotator = np.repeat(np.arange(n_items), 12), np.tile(np.arange(12), n_items)
    own = np.where(rng.random(len(item)) < 0.7, truth[item], rng.integers(3, size=len(item)))
    copied = (annotator < 5) & (rng.random(len(item)) < copying)
    label = np.where(copied, shared[item], own)
    return LabelTable.from_codes(item, annotator, label), truth, shared


def solve(table, classes):
    certain = torch.eye(table.n_classes, dtype=torch.float64)[torch.from_numpy(classes)]
    return Solution(CrowdProblem(table), certain)


def test_the_less_accurate_who_gave_half_of_the_labels_are_doubted():
    table, truth, _ = divided_crowd(0.9)
    solution = solve(table, truth)
    assert solution.doubted()[:5].all()
    assert solution.doubted().sum() == 6
    np.testing.assert_array_less(solution.accuracy[:5], solution.accuracy[5:].min())


@pytest.mark.parametrize("copying", [0.0, 0.9])
def test_doubted_annotators_agree_beyond_a_solution_that_favours_the_others(copying):
    table, _, shared = divided_crowd(copying)
    solution = solve(table, shared)
    excess = solution.excess_agreement(np.arange(12) >= 5)
    # They are right where the solution is wrong, whoever copies.
    assert excess > 0.08


def test_independent_errors_leave_no_excess():
    table, truth, _ = divided_crowd(0.0)
    solution = solve(table, truth)
    assert abs(solution.excess_agreement(np.ones(12, bool))) < 0.01
    assert abs(solution.excess_agreement(solution.doubted())) < 0.02


def test_the_excess_is_that_of_all_pairs_counted_one_by_one():
    table, truth, _ = divided_crowd(0.9, n_items=20)
    solution = solve(table, truth)
    asked = np.arange(12) < 4
    differences = []
    for item in range(20):
        labels = table.label[table.item == item]
        for r in range(4):
            for s in range(r):
                rows = solution.matrices.array[[r, s], truth[item]]
                differences.append((labels[r] == labels[s]) - rows.prod(0).sum())
    assert solution.excess_agreement(asked) == pytest.approx(np.mean(differences))


@pytest.mark.parametrize("softness", [0.0, 0.3])
def test_the_cells_of_labels_say_what_an_array_says(softness):
    table, truth, shared = divided_crowd(0.9, n_items=60)
    posterior = torch.eye(3, dtype=torch.float64)[torch.from_numpy(truth)]
    posterior = posterior.lerp(posterior[torch.from_numpy(shared).argsort()], softness)
    problem = CrowdProblem(table)
    array, cells = (Solution(problem, posterior, dense=dense) for dense in (True, False))
    np.testing.assert_allclose(cells.accuracy, array.accuracy)
    np.testing.assert_allclose(cells.agreement(), array.agreement())
    for asked in (np.arange(12) < 5, np.ones(12, bool)):
        assert cells.excess_agreement(asked) == pytest.approx(array.excess_agreement(asked))


def test_annotators_without_common_items_have_no_excess():
    table = LabelTable.from_codes([0, 1, 2], annotator=[0, 1, 2], label=[0, 1, 0])
    solution = solve(table, np.array([0, 1, 0]))
    assert solution.excess_agreement(np.ones(3, bool)) == 0


def test_agreement_is_with_the_labels_of_the_others():
    # Two annotators who always differ: each agrees with the other never, whatever the posterior.
    table = LabelTable.from_codes(np.repeat(np.arange(50), 2), [0, 1] * 50, label=[0, 1] * 50)
    certain = torch.tensor([[0.98, 0.02]], dtype=torch.float64).repeat(50, 1)
    agreement = Solution(CrowdProblem(table), certain).agreement()
    assert agreement[0] < 0.98
    assert agreement[1] < 0.1


def test_more_annotators_follow_the_truth_than_the_shared_answer():
    table, truth, shared = divided_crowd(0.9)
    right, wrong = solve(table, truth).agreement(), solve(table, shared).agreement()
    assert followers(table, right, wrong) == pytest.approx(7 / 12)
    assert followers(table, wrong, right) == pytest.approx(5 / 12)


def test_some_annotators_keep_their_codes():
    table, _, _ = divided_crowd(0.9, n_items=10)
    some = labels_of(table, np.arange(12) == 7)
    assert (some.n_items, some.n_annotators, some.n_labels) == (10, 12, 10)
    assert set(some.annotator) == {7}
