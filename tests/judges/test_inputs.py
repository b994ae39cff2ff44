import numpy as np
import pytest

import annotrace as at
from annotrace.errors import InputError
from annotrace.judges.inputs import (
    resolve_costs,
    resolve_gold,
    resolve_kinds,
    resolve_models,
    resolve_periods,
)

TABLE = at.LabelTable.from_long(
    {
        "item": ["w", "w", "x", "x", "y"],
        "annotator": ["gpt/a", "eve", "gpt/a", "gpt/b", "eve"],
        "label": ["yes", "no", "no", "no", "yes"],
    }
)


def test_gold_may_have_classes_that_nobody_reported():
    table, known = resolve_gold(TABLE, {"w": "maybe", "y": "no"})
    assert table.classes.tolist() == ["no", "yes", "maybe"]
    assert known.tolist() == [2, -1, 0]


def test_without_gold_the_truth_of_the_table_counts():
    assert resolve_gold(TABLE, None)[1].tolist() == [-1, -1, -1]
    table = TABLE.with_truth(["yes", "no", "no"])
    assert resolve_gold(table, None)[1].tolist() == [1, 0, 0]


def test_kinds():
    assert resolve_kinds(TABLE, None).all()
    kind = {"eve": "person", "gpt/a": "llm", "gpt/b": "llm"}
    assert resolve_kinds(TABLE, kind).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ({"eve": "human"}, "to be 'person' or 'llm', but got 'human'"),
        ({"eve": "person"}, "2 annotators have none: 'gpt/a', 'gpt/b'"),
        ({"bob": "person"}, "`kind` has annotators 'bob', but the labels do not"),
        (dict.fromkeys(["eve", "gpt/a", "gpt/b"], "person"), "no annotator has the kind 'llm'"),
    ],
)
def test_wrong_kinds(kind, message):
    with pytest.raises(InputError, match=message):
        resolve_kinds(TABLE, kind)


def test_costs():
    assert resolve_costs(TABLE, None).tolist() == [1, 1, 1]
    assert resolve_costs(TABLE, {"gpt/a": "2.5", "eve": None}).tolist() == [1, 2.5, 1]


@pytest.mark.parametrize("cost", [0, -1, "dear", float("inf"), [1]])
def test_wrong_costs(cost):
    with pytest.raises(InputError, match=r"a number above 0, but got .* for 'gpt/a'"):
        resolve_costs(TABLE, {"gpt/a": cost})


def test_models():
    assert resolve_models(TABLE, None) is None
    assert resolve_models(TABLE, "/") == ["eve", "gpt", "gpt"]
    assert resolve_models(TABLE, {"gpt/b": "gpt"}) == ["eve", "gpt/a", "gpt"]
    nested = at.LabelTable.from_wide(
        [["a", "b"]], annotators=["meta/llama/short", "meta/llama/long"]
    )
    assert resolve_models(nested, "/") == ["meta/llama"] * 2
    with pytest.raises(InputError, match="empty text"):
        resolve_models(TABLE, "")


def test_times_of_items_and_of_labels():
    period, names = resolve_periods(TABLE, {"w": "2025-02", "x": "2025-01", "y": None})
    assert (period.tolist(), names) == ([1, 1, 0, 0, -1], ["2025-01", "2025-02"])
    time = {("w", "eve"): 10, ("x", "gpt/b"): 9, ("w", "nobody"): 8}
    period, names = resolve_periods(TABLE, time)
    # Numbers are in order of value, not of digits.
    assert (period.tolist(), names) == ([-1, 1, -1, 0, -1], ["9", "10"])
    assert resolve_periods(TABLE, None) is None
    with pytest.raises(InputError, match="it has none of them"):
        resolve_periods(TABLE, {"z": 1})


def test_many_times_are_cut_into_periods_of_equal_size():
    table = at.LabelTable.from_codes(np.arange(60), np.zeros(60, int), np.arange(60) % 2)
    period, names = resolve_periods(table, {k: k for k in range(60)})
    assert np.bincount(period).tolist() == [10] * 6
    assert names[0] == "0 to 9"
    assert np.all(np.diff(period) >= 0)
