import numpy as np
import pandas as pd
import pytest

import annotrace as at
from annotrace.errors import InputError
from annotrace.labels.gold import gold_by_name, known_classes


@pytest.mark.parametrize(
    "gold",
    [
        {"b": "dog", "c": "cat"},
        [None, "dog", "cat", None],
        [float("nan"), "dog", "cat", -1],
        pd.Series([pd.NA, "dog", "cat", ""]),
        pd.Series({"c": "cat", "b": "dog", "d": None}),
        np.ma.array(["cat", "dog", "cat", "dog"], mask=[1, 0, 0, 1]),
        {"a": None, "b": "dog", "c": "cat", "d": float("nan")},
    ],
    ids=["mapping", "none", "nan", "pandas", "by index", "masked", "unknown"],
)
def test_known_classes_are_given_by_name(gold):
    np.testing.assert_array_equal(known_classes(four_items(), gold), [-1, 1, 0, -1])


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({"z": "dog"}, "`gold` has items 'z', but the table does not have them"),
        ({"a": "cow"}, "`gold` has classes 'cow', but the classes are 'cat', 'dog'"),
        (["cat"], r"`gold` to have shape \(4,\), a class or None for each item, but got \(1,\)"),
    ],
)
def test_known_classes_that_cannot_be_are_rejected(gold, message):
    with pytest.raises(InputError, match=message):
        known_classes(four_items(), gold)


def four_items():
    return at.LabelTable.from_long(
        {
            "item": ["a", "b", "c", "d"],
            "annotator": ["x", "x", "y", "y"],
            "label": ["cat", "dog", "cat", "dog"],
        }
    )


def test_codes_of_known_classes_become_names_and_back():
    table, codes = four_items(), np.array([1, -1, 0, -1], np.int32)
    assert gold_by_name(table, codes) == {"a": "dog", "c": "cat"}
    np.testing.assert_array_equal(known_classes(table, gold_by_name(table, codes)), codes)


def test_a_class_has_one_name_for_every_method():
    table = at.LabelTable.from_wide([[1, 2], [2, 2], [1, 1], [2, 1]])
    gold = [1, -1, -1, 2]
    alone = at.aggregation.DawidSkene().fit(table, gold=gold)
    joint = at.Vanilla(epochs=1, validation_fraction=0).fit(np.eye(4), table, gold=gold)
    two_stage = at.TwoStage(epochs=1, validation_fraction=0).fit(np.eye(4), table, gold=gold)
    for model in (alone, joint, two_stage, two_stage.aggregation_):
        np.testing.assert_array_equal(model.posterior_[[0, 3]], np.eye(2))


def test_a_series_whose_rows_and_names_differ_is_rejected():
    labels = {"annotator": ["x", "x", "y"], "label": ["a", "b", "c"]}
    gold = pd.Series(["a", "b", "c"])
    shuffled = at.LabelTable.from_long({"item": [2, 0, 1], **labels})
    with pytest.raises(InputError, match=r"Pass gold.to_dict\(\) to match by name"):
        known_classes(shuffled, gold)
    np.testing.assert_array_equal(known_classes(shuffled, gold.to_dict()), [2, 0, 1])
    np.testing.assert_array_equal(known_classes(shuffled, gold.tolist()), [0, 1, 2])
    in_order = at.LabelTable.from_long({"item": [0, 1, 2], **labels})
    np.testing.assert_array_equal(known_classes(in_order, gold), [0, 1, 2])


def test_a_series_that_names_an_item_twice_has_one_value_for_it():
    index = ["b", "b", "c", "c"]
    gold = pd.Series(["dog", "dog", "cat", None], index=index)
    np.testing.assert_array_equal(known_classes(four_items(), gold), [-1, 1, 0, -1])
    with pytest.raises(InputError, match="`gold` has 'b' more than once, with 'dog' and 'cat'"):
        known_classes(four_items(), pd.Series(["dog", "cat", "cat", "cat"], index=index))
