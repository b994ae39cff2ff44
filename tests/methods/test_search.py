import numpy as np
import pytest

import annotrace as at
from annotrace.methods.class_repair import minimum_gain
from annotrace.methods.search import Candidate, Tried, choose, near_best, neighbours

TABLE = at.LabelTable.from_codes(np.arange(100), np.zeros(100, int), np.arange(100) % 2)
GAIN = minimum_gain(100)


def tried(label_loss, n_right, **changes):
    """A candidate that predicts the reported class of so many items."""
    proba = np.full((100, 2), 0.1)
    proba[np.arange(100), (TABLE.label + (np.arange(100) >= n_right)) % 2] = 0.9
    return Tried(Candidate(**changes), 5, label_loss, proba, proba)


def test_the_first_candidate_stays_unless_another_is_significantly_better():
    first = tried(0.5, 80)
    assert choose([first, tried(0.5 - 0.9 * GAIN, 90)], TABLE)[0] == 0
    assert choose([first, tried(0.5 - 1.1 * GAIN, 90)], TABLE)[0] == 1


def test_a_candidate_with_which_labels_agree_less_by_every_criterion_is_not_chosen():
    likely = tried(0.5 - 2 * GAIN, 60)
    likely.posterior = tried(0, 95).proba
    assert choose([tried(0.5, 80), likely], TABLE)[0] == 0


def test_the_criteria_are_reported():
    number, trials = choose([tried(0.5, 80), tried(0.5 - 2 * GAIN, 90, mixup=0.0)], TABLE)
    assert number == 1
    assert [trial["chosen"] for trial in trials] == [False, True]
    assert [trial["mixup"] for trial in trials] == [1.0, 0.0]
    assert [trial["agreement"] for trial in trials] == [0.8, 0.9]
    # Of 80 items that both give .9 to the same class, 10 to different ones, and 10 again the same.
    expected = [(90 * (0.9**2 + 0.1**2) + 10 * 2 * 0.09) / 100, 0.9**2 + 0.1**2]
    assert [trial["consensus"] for trial in trials] == pytest.approx(expected)


def test_starts_as_good_as_the_best_are_averaged():
    each = [tried(0.5, 80), tried(0.5 + 0.9 * GAIN, 80), tried(0.5 + 1.1 * GAIN, 80)]
    assert near_best(each, 0, TABLE) == [0, 1]


def test_neighbours_differ_in_one_thing_from_the_best():
    best = Candidate(scaling="common")
    for each in neighbours(best, has_hidden=True):
        same = [getattr(each, name) == getattr(best, name) for name in best.to_dict()]
        assert same.count(False) == 1
    without = list(neighbours(best, has_hidden=False))
    assert {(each.width, each.batch_norm) for each in without} == {(best.width, False)}
