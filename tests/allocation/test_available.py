from collections import Counter

import numpy as np
import pandas as pd
import pytest

import annotrace as at
from annotrace.errors import InputError


def test_a_series_without_a_number_is_told_as_it_is(model):
    with pytest.raises(InputError, match="maximum number of labels by 0 to be a whole number"):
        at.allocate(model, 5, available=pd.Series([np.nan, 3], index=[0, 5]))
    with pytest.raises(InputError, match="`cost` has '0' more than once, with"):
        at.allocate(model, 5, cost=pd.Series([1.0, 2.0], index=[0, 0]))


def test_a_series_goes_by_its_index(model):
    limits, costs = {1: 1, 0: 2}, {0: 2.0, 1: 0.5}
    expected = at.allocate(model, 6, available=limits, cost=costs, at_least=0)
    assert set(expected["annotator"].to_list()) == {0, 1}
    series = {"available": pd.Series(limits), "cost": pd.Series(costs)}
    assert at.allocate(model, 6, **series, at_least=0).equals(expected)
    each = at.allocate(model, 6, available=np.int64(1))
    assert each.equals(at.allocate(model, 6, available=1))


def test_capacity_is_kept_by_many_who_are_all_alike(fitted):
    item, annotator = np.arange(400), np.arange(400) % 100
    table = at.LabelTable.from_codes(item, annotator, np.zeros(400, int), n_classes=2)
    capacity = {who: 1 if who < 40 else 5 for who in range(100)}
    frame = at.allocate(fitted(table, np.full((400, 2), 0.5)), 1000, available=capacity, at_least=0)
    assert Counter(frame["annotator"]) == capacity


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"budget": 0}, "`budget` to be a number larger than 0, but got 0"),
        ({"budget": float("nan")}, "`budget` to be a number larger than 0, but got nan"),
        ({"budget": float("inf")}, "`budget` to be a number larger than 0, but got inf"),
        ({"budget": "5"}, "`budget` to be a number larger than 0, but got '5'"),
        ({"per_item": 0}, "`per_item` to be a whole number larger than 0"),
        ({"per_item": 1.5}, "`per_item` to be a whole number larger than 0"),
        ({"at_least": None}, "`at_least` to be a whole number of at least 0"),
        ({"cost": -1}, "cost of a label by each annotator to be above 0, but got -1"),
        ({"cost": {0: "free"}}, "cost of a label by 0 to be above 0, but got 'free'"),
        ({"cost": {"zoe": 1}}, "neither in the labels nor in `available`: 'zoe'"),
        ({"available": "ann"}, r"Use available=\['ann'\]"),
        (
            {"available": pd.Series([3, 2])},
            r"pass its \.tolist\(\) for names, or its \.to_dict\(\)",
        ),
        (
            {"available": {0: -1}},
            "maximum number of labels by 0 to be a whole number of",
        ),
        ({"available": {0: 1.5}}, "but got 1.5"),
    ],
)
def test_what_cannot_be_is_refused(model, settings, said):
    with pytest.raises(InputError, match=said):
        at.allocate(model, **({"budget": 5} | settings))
