import re
from pathlib import PurePath

import numpy as np
import pytest

import annotrace as at
from annotrace import aggregation
from annotrace.errors import InputError
from annotrace.parameters import check_parameters

MAKERS = [
    *((at.make, entry.name) for entry in at.list_methods()),
    *((aggregation.make, entry.name) for entry in aggregation.list_aggregations()),
]


@pytest.mark.parametrize(("make", "name"), MAKERS, ids=lambda each: str(each)[:20])
def test_what_a_method_begins_with_is_right(make, name):
    check_parameters(make(name))


@pytest.mark.parametrize(
    ("method", "name", "value", "said"),
    [
        ("trace", "mend", "False", "True, False or None"),
        ("trace", "mend", 1, "True, False or None"),
        ("trace", "pool", "yes", "True, False, 'auto' or None"),
        ("trace", "lam", -1, "a number of at least 0 or 'auto'"),
        ("trace", "lam", np.nan, "a number of at least 0 or 'auto'"),
        ("trace", "mixup", "on", "a number of at least 0, 'auto' or None"),
        ("trace", "restarts", 1.5, "a whole number larger than 0 or None"),
        ("trace", "epochs", True, "a whole number larger than 0 or None"),
        ("trace", "lr", np.inf, "a number larger than 0 or None"),
        ("trace", "validation", 1, "a number of at least 0 and below 1"),
        (
            "trace",
            "random_state",
            -1,
            "a whole number of at least 0, a generator, a randomstate or None",
        ),
        ("trace", "protocol", "papers", "'default' or 'paper'"),
        ("trace", "protocol", ["paper"], "'default' or 'paper'"),
        ("trace", "backbone", 3, "text or a module"),
        ("trace", "callbacks", print, "a sequence"),
        ("trace", "checkpoint", 3, "text, a path or None"),
        ("auto", "folds", 1, "a whole number of at least 2"),
        ("auto", "rounds", 0, "a whole number larger than 0"),
        ("auto", "start", "x", "'trace' or 'votes'"),
        ("gem", "smoothing", -1, "a number of at least 0"),
        ("soft-bootstrap", "beta", 2, "a number from 0 to 1"),
        ("vanilla", "targets", "some", "'majority' or 'every'"),
    ],
)
def test_what_a_parameter_may_be_is_said(method, name, value, said):
    model = at.make(method, **{name: value})
    expected = f"Expected `{name}` to be {said}, but got {value!r}."
    with pytest.raises(InputError, match=re.escape(expected)):
        model.fit(np.zeros((4, 2)), np.array([0, 1, 0, 1]))


@pytest.mark.parametrize(
    ("name", "setting", "value", "said"),
    [
        ("dawid-skene", "smoothing", 0, "a number larger than 0"),
        ("dawid-skene", "one_coin", "no", "True or False"),
        ("glad", "sweeps", 0, "a whole number larger than 0"),
        ("mace", "guessing", None, "a number larger than 0"),
        ("hierarchical", "tol", np.nan, "a number"),
        (
            "majority",
            "random_state",
            0.5,
            "a whole number of at least 0, a generator, a random state or None",
        ),
    ],
)
def test_aggregations_say_it_too(name, setting, value, said):
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
        ("mend", np.bool_(True)),
        ("lam", "auto"),
        ("weight_decay", 0),
        ("random_state", np.random.RandomState(0)),
        ("callbacks", [print]),
        ("checkpoint", "file"),
        ("checkpoint", PurePath("file")),
    ],
)
def test_numbers_may_be_numpys_and_whole(name, value):
    check_parameters(at.make("trace", **{name: value}))
