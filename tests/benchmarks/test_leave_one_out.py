import pytest
from leave_one_out import LeftOut, choose_leaving_one_out

SCORES = {
    ("flat", "easy"): 0.9,
    ("flat", "spam"): 0.5,
    ("flat", "camps"): 0.8,
    ("sharp", "easy"): 0.95,
    ("sharp", "spam"): 0.9,
    ("sharp", "camps"): 0.4,
}


def test_the_family_left_out_has_no_say():
    def score(candidate, family):
        return SCORES[candidate, family]

    left = choose_leaving_one_out(["flat", "sharp"], ["easy", "spam", "camps"], score)
    assert left == [
        LeftOut("easy", "flat", 0.9, 0.95),  # .65 and .65: the first of equals
        LeftOut("spam", "flat", 0.5, 0.9),  # .85 against .675
        LeftOut("camps", "sharp", 0.4, 0.8),  # .7 against .925
    ]


def test_each_pair_is_scored_once():
    scored = []

    def score(candidate, family):
        scored.append((candidate, family))
        return candidate

    choose_leaving_one_out([1, 2, 3], ["a", "b"], score)
    assert sorted(scored) == [(number, family) for number in (1, 2, 3) for family in "ab"]


def test_one_family_cannot_be_left_out():
    with pytest.raises(ValueError, match="two or more families"):
        choose_leaving_one_out([1], ["a"], lambda candidate, family: 0.0)
