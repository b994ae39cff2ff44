import numpy as np
import pytest

import annotrace as at
from annotrace.judges.people import compare_with_people


def test_by_hand():
    answers = {
        "ann": ["a", "a", "b", None],
        "bob": ["a", "b", "b", "a"],
        "cem": ["b", "b", None, None],
    }
    people = at.LabelTable.from_wide(
        np.array(list(answers.values()), object).T, annotators=list(answers)
    )
    judges = at.LabelTable.from_wide(
        np.array([["a", "b", "b", "a"], ["b", "b", "b", "b"]]).T, annotators=["gpt", "qwen"]
    )
    found = compare_with_people(people, judges)
    # Pairs of people: one of three equal on the first two items, one of one on the third.
    assert found.together.share.value == pytest.approx(3 / 7)
    assert found.together.n_items == 3
    by_name = {each.person: each for each in found.each}
    assert by_name["ann"].agreement.value == pytest.approx(2 / 5)
    assert by_name["bob"].agreement.value == pytest.approx(3 / 5)
    assert by_name["cem"].n_items == 2
    gpt, qwen = found.judges
    # gpt agrees with 2 of 3, 2 of 3, 2 of 2 and 1 of 1 people.
    assert (gpt.n_items, gpt.share.value) == (4, pytest.approx(7 / 9))
    assert qwen.share.value == pytest.approx(5 / 9)
    assert qwen.kappa.value == pytest.approx(0)
