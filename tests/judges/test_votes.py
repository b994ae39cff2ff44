import numpy as np
import pytest

import annotrace as at
from annotrace.judges.votes import GoldVotes

ANSWERS = np.array([[0, 0, 1], [1, 0, -1], [-1, -1, 2], [2, 2, 2], [-1, -1, -1]])


@pytest.fixture
def gold():
    table = at.LabelTable.from_wide(ANSWERS)
    return GoldVotes.of(table, np.array([0, 1, 1, -1, 0], np.int32))


def test_only_gold_items_with_labels_count(gold):
    assert gold.items.tolist() == [0, 1, 2]
    assert gold.truth.tolist() == [0, 1, 1]
    assert (gold.n_items, gold.n_judges, gold.n_classes) == (3, 3, 3)


def test_ties_are_correct_by_chance(gold):
    votes = gold.votes(range(3))
    assert votes.tolist() == [[2, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert gold.correct(votes).tolist() == [1, 0.5, 0]
    # Nobody of this panel has labelled the last item: a guess among three classes.
    assert gold.correct(gold.votes([0, 1])).tolist() == pytest.approx([1, 0.5, 1 / 3])


def test_a_judge_alone(gold):
    item, correct = gold.judge_correct(1)
    assert (item.tolist(), correct.tolist()) == ([0, 1], [True, False])


def test_folds_are_of_equal_size_and_seeded():
    gold = GoldVotes(np.arange(25), np.zeros(25, np.int32), 2, [])
    fold = gold.folds(10, 3)
    assert sorted(np.bincount(fold)) == [2] * 5 + [3] * 5
    np.testing.assert_array_equal(fold, gold.folds(10, 3))
