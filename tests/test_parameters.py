import json
import re
from pathlib import PurePath
from typing import Any, TypedDict

import numpy as np
import pytest

import annotrace as at
from annotrace import aggregation
from annotrace.errors import InputError
from annotrace.parameters import Count, check_parameters, check_value

MAKERS = [
    *((at.make, entry.name) for entry in at.list_methods()),
    *((aggregation.make, entry.name) for entry in aggregation.list_aggregations()),
]

SEED = "a whole number of at least 0, a generator, a random state or None"


@pytest.mark.parametrize(("make", "name"), MAKERS, ids=lambda each: str(each)[:20])
def test_defaults_are_valid(make, name):
    check_parameters(make(name))


@pytest.mark.parametrize(
    ("method", "name", "value", "said"),
    [
        ("trace", "joint", "False", "True, False or None"),
        ("trace", "joint", 1, "True, False or None"),
        ("trace", "structure", 1, "text or None"),
        ("trace", "recipe", "on", "a recipe, 'default', 'none' or None"),
        ("trace", "recipe", {"n_init": 1}, "a recipe, 'default', 'none' or None"),
        ("trace", "lam", -1, "a number of at least 0 or 'auto'"),
        ("trace", "lam", np.nan, "a number of at least 0 or 'auto'"),
        ("auto", "mixup", "on", "a number of at least 0 or 'auto'"),
        ("auto", "n_iter", 1.5, "a whole number larger than 0 or None"),
        ("trace", "epochs", True, "a whole number larger than 0 or None"),
        ("trace", "lr", np.inf, "a number larger than 0 or None"),
        ("trace", "validation_fraction", 1, "a number of at least 0 and below 1"),
        ("trace", "random_state", -1, SEED),
        ("trace", "protocol", "papers", "'default' or 'paper'"),
        ("trace", "protocol", ["paper"], "'default' or 'paper'"),
        ("trace", "backbone", 3, "text or a module"),
        ("trace", "callbacks", print, "a sequence"),
        ("trace", "checkpoint", 3, "text, a path or None"),
        ("auto", "n_folds", 1, "a whole number of at least 2 or None"),
        ("auto", "n_iter", 0, "a whole number larger than 0 or None"),
        ("auto", "effort", "slow", "'fast', 'default', 'thorough' or a number larger than 0"),
        ("auto", "init", "x", "'auto', 'labels', 'trace' or 'votes'"),
        ("gem", "smoothing", -1, "a number of at least 0"),
        ("soft-bootstrap", "beta", 2, "a number from 0 to 1"),
        ("vanilla", "targets", "some", "'majority' or 'every'"),
    ],
)
def test_the_error_says_what_a_parameter_may_be(method, name, value, said):
    model = at.make(method, **{name: value})
    expected = f"Expected `{name}` to be {said}, but got {value!r}."
    with pytest.raises(InputError, match=re.escape(expected)):
        model.fit(np.zeros((4, 2)), np.array([0, 1, 0, 1]))


@pytest.mark.parametrize(
    ("name", "setting", "value", "said"),
    [
        ("dawid-skene", "smoothing", 0, "a number larger than 0"),
        ("dawid-skene", "one_coin", "no", "True or False"),
        ("glad", "n_steps", 0, "a whole number larger than 0"),
        ("mace", "guessing", None, "a number larger than 0"),
        ("hierarchical", "tol", np.nan, "a number"),
        ("mace", "knowing", 10**30, "a number larger than 0"),
        ("majority", "random_state", 0.5, SEED),
    ],
)
def test_so_does_that_of_an_aggregation(name, setting, value, said):
    table = at.LabelTable.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 1])
    expected = f"Expected `{setting}` to be {said}, but got {value!r}."
    with pytest.raises(InputError, match=re.escape(expected)):
        aggregation.make(name, **{setting: value}).fit(table)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", np.int32(3)),
        ("lr", np.float32(0.1)),
        ("lr", 1),
        ("joint", np.bool_(True)),
        ("recipe", at.Recipe(n_init=np.int64(1))),
        ("recipe", "none"),
        ("lam", "auto"),
        ("weight_decay", 0),
        ("random_state", np.random.RandomState(0)),
        ("callbacks", [print]),
        ("checkpoint", "file"),
        ("checkpoint", PurePath("file")),
    ],
)
def test_numbers_may_be_of_numpy_and_whole(name, value):
    check_parameters(at.make("trace", **{name: value}))


class Point(TypedDict):
    x: Count
    label: str | None


@pytest.mark.parametrize(
    ("wanted", "good", "bad", "said"),
    [
        (list[Count], [1, 2], [1, 0], "a list whose values are each a whole number larger than 0"),
        (dict[str, str], {"a": "b"}, {"a": 1}, "a dict whose values are each text"),
        (list[Point], [{"x": 1, "label": None}], [{"x": 1}], "each a dict with the keys x, label"),
        (
            Point,
            {"x": 1, "label": "a"},
            {"x": 1, "label": "a", "y": 1},
            "a dict with the keys x, label",
        ),
        (dict[str, Any] | None, {"a": [1]}, [], "a dict or None"),
    ],
)
def test_what_lists_and_dicts_hold_is_checked(wanted, good, bad, said):
    check_value("it", good, wanted)
    with pytest.raises(InputError, match=f"Expected `it` to be .*{said}, but got"):
        check_value("it", bad, wanted)


def test_long_and_deep_values_are_quoted_in_part():
    deep = json.loads("[" * 900 + "]" * 900)
    for value in ("x" * 10**6, [0] * 10**6, deep):
        with pytest.raises(InputError) as raised:
            check_value("it", value, Count)
        assert len(str(raised.value)) < 400
