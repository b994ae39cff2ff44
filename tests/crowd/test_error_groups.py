"""Groups of annotators who err together."""

import numpy as np
import pytest

from annotrace.crowd.dependence import known_dependence
from annotrace.labels import LabelTable


def labels_of(wrong, seen):
    """Labels of items of class 0; wrong and seen are (items, annotators)."""
    item, annotator = np.nonzero(seen)
    return LabelTable.from_codes(
        item, annotator, wrong[seen].astype(int), n_items=len(wrong), n_classes=2
    )


def group_errors(rng, n_items, groups, copy=0.8, rate=0.3):
    """Draw errors of annotators in groups, of which -1 has no common errors."""
    own = rng.random((n_items, len(groups))) < rate
    common = rng.random((n_items, max(groups) + 2)) < rate
    follows = (rng.random(own.shape) < copy) & (np.array(groups) >= 0)
    return np.where(follows, common[:, groups], own)


def test_groups_are_found():
    rng = np.random.default_rng(0)
    groups = [0, 0, 0, 1, 1, 1, 1, -1, -1, -1]
    wrong = group_errors(rng, 400, groups)
    found = known_dependence(labels_of(wrong, np.ones_like(wrong)), np.zeros(400, int))
    assert {group.annotators for group in found.groups} == {(0, 1, 2), (3, 4, 5, 6)}
    for group in found.groups:
        assert group.correlation == pytest.approx(0.64, abs=0.15)
        n = len(group.annotators)
        assert group.effective_votes == pytest.approx(n / (1 + (n - 1) * group.correlation))


@pytest.mark.parametrize("copy", [0.0, 0.7])
def test_a_crowd_that_errs_alike_has_no_groups(copy):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        wrong = group_errors(rng, 300, [0] * 12, copy)
        seen = rng.random(wrong.shape) < 0.5
        assert known_dependence(labels_of(wrong, seen), np.zeros(300, int)).groups == ()


def test_a_coincidence_of_rare_errors_is_no_group():
    wrong = np.zeros((500, 20), bool)
    wrong[3, [4, 9]] = wrong[8, [1, 2]] = wrong[11, [7, 8]] = True
    wrong[20:40, 15] = True
    assert known_dependence(labels_of(wrong, np.ones_like(wrong)), np.zeros(500, int)).groups == ()


def test_no_groups_are_searched_for_in_large_crowds():
    wrong = group_errors(np.random.default_rng(0), 300, [0, 0] + [-1] * 210, copy=1.0)
    crowd = labels_of(wrong, np.ones_like(wrong))
    assert known_dependence(crowd, np.zeros(300, int)).groups == ()
    small = labels_of(wrong[:, :30], np.ones((300, 30), bool))
    assert known_dependence(small, np.zeros(300, int)).groups[0].annotators == (0, 1)
