import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

import annotrace as at
from annotrace.judges.agreement import agreement_between, agreement_with, agreement_within


def against(label, truth, n_classes=3):
    votes = np.eye(n_classes, dtype=int)[truth]
    return agreement_with(np.arange(len(label)), np.asarray(label), votes)


def fleiss_cohen_everitt(label, truth, n_classes):
    """The large-sample variance of kappa, as published in 1969, in sums over cells."""
    p = np.zeros((n_classes, n_classes))
    np.add.at(p, (label, truth), 1 / len(label))
    rows, columns = p.sum(1), p.sum(0)
    o, e = np.trace(p), rows @ columns
    first = sum(
        p[i, i] * ((1 - e) - (rows[i] + columns[i]) * (1 - o)) ** 2 for i in range(n_classes)
    )
    second = (1 - o) ** 2 * sum(
        p[i, j] * (columns[i] + rows[j]) ** 2
        for i in range(n_classes)
        for j in range(n_classes)
        if i != j
    )
    return (first + second - (o * e - 2 * e + o) ** 2) / (len(label) * (1 - e) ** 4)


def test_kappa_is_cohens_with_the_published_variance():
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 2000, p=[0.1, 0.2, 0.7])
    # Labels have other shares than the truth.
    label = np.where(rng.random(2000) < 0.6, truth, rng.choice(3, 2000, p=[0.7, 0.3, 0]))
    found = against(label, truth)
    assert found.share.value == pytest.approx((label == truth).mean())
    assert found.kappa.value == pytest.approx(cohen_kappa_score(label, truth))
    error = np.sqrt(fleiss_cohen_everitt(label, truth, 3))
    width = found.kappa.high - found.kappa.low
    assert width == pytest.approx(2 * 1.64485 * error, rel=2e-3)


def test_perfect_agreement_of_few_items_is_not_certain():
    found = against([0, 1, 2, 1, 0, 2], [0, 1, 2, 1, 0, 2])
    assert found.kappa.value == pytest.approx(1)
    assert found.share.value == 1
    assert 0.4 < found.kappa.low < found.share.low < 0.75


def test_one_class_only_leaves_nothing_beyond_chance():
    found = against([1, 1, 1], [1, 1, 1])
    assert found.share.value == 1
    assert not found.kappa.is_known


def test_labels_without_votes_are_not_compared():
    votes = np.array([[1, 0], [0, 0], [0, 2]])
    found = agreement_with(np.arange(3), np.array([0, 0, 0]), votes)
    # One vote agrees and two do not.
    assert (found.n_items, found.share.value) == (2, pytest.approx(1 / 3))
    assert not agreement_with(np.arange(1), np.zeros(1, int), np.zeros((1, 2))).share.is_known


def test_agreement_within_counts_pairs():
    table = at.LabelTable.from_codes([0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 0], [0, 0, 1, 1, 1, 0])
    # Item 0 has one equal pair of three, item 1 one of one, item 2 none to compare.
    found = agreement_within(table)
    assert (found.n_items, found.share.value) == (2, pytest.approx(0.5))


def test_agreement_between_tables():
    table = at.LabelTable.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 1], n_classes=2)
    others = at.LabelTable.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 1], n_items=3, n_classes=2)
    found = agreement_between(table, others)
    assert (found.n_items, found.share.value) == (2, pytest.approx(2 / 3))


def test_intervals_cover_with_several_votes_per_item():
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(400):
        easy = rng.random(60) < 0.5
        label = np.zeros(60, int)
        votes = np.zeros((60, 2), int)
        votes[:, 0] = rng.binomial(4, np.where(easy, 0.95, 0.5))
        votes[:, 1] = 4 - votes[:, 0]
        share = agreement_with(np.arange(60), label, votes).share
        covered.append(share.low <= 0.725 <= share.high)
    # Taken for 240 independent votes, the intervals would cover in 79 % of the cases.
    assert 0.86 <= np.mean(covered) <= 0.94
