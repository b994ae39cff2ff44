import numpy as np
import pytest

import annotrace as at
from annotrace.connect import Pulled
from annotrace.connect.estimation import (
    Status,
    check_gold,
    describe_gain,
    gold_of,
    plan_queue,
    predictions_of,
    texts_of,
)
from annotrace.errors import InputError


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    rows = [
        (f"t{i}", who, "xy"[int(rng.random() < 0.2) ^ (i % 2)])
        for i in range(30)
        for who in ("ann", "bo", "cy")[: 1 + i % 3]
    ]
    columns = dict(zip(("item", "annotator", "label"), zip(*rows, strict=True), strict=True))
    return at.LabelTable.from_long(columns).with_items(["new"])


@pytest.fixture(scope="module")
def model(table):
    return at.aggregation.make(random_state=0).fit(table)


def test_gold_that_is_given_prevails(table):
    truth = np.full(table.n_items, -1)
    truth[:2] = 0
    known = table.replace(truth=truth)
    assert gold_of(known, {"t1": "y", "t2": "x"}) == {"t0": "x", "t1": "y", "t2": "x"}
    assert gold_of(table, {}) is None


def test_gold_must_be_in_the_project(table):
    pulled = Pulled(table, None, {"t0": {}})
    check_gold(pulled, {"t0": "x"}, "gold.csv")
    with pytest.raises(InputError, match=r"gold.csv: 1 item is not in the project \('q'\)"):
        check_gold(pulled, {"q": "x"}, "gold.csv")


def test_texts(table):
    source = texts_of(Pulled(table, None, {"a": {"text": "one"}, "b": {"text": "two"}}), "text")
    assert source.texts[:, 0].tolist() == ["one", "two"]
    assert source.items.tolist() == ["a", "b"]
    with pytest.raises(InputError, match="Item b has no field 'title'; it has 'text'"):
        texts_of(Pulled(table, None, {"a": {"title": ""}, "b": {"text": ""}}), "title")


def test_predictions_have_every_item_with_its_confidence(model):
    found = predictions_of(model)
    assert [each.item for each in found] == model.table_.items.tolist()
    assert [each.label for each in found] == model.predict().tolist()
    assert [each.score for each in found] == model.confidence_.tolist()


def test_a_queue_lists_everybody_and_asks_nobody_twice(model):
    queue = plan_queue(model, 12, available={"ann": 2, "bo": None, "dee": 1})
    assert set(queue.items) == {"ann", "bo", "dee"}
    assert len(queue.items["ann"]) <= 2
    assert sum(map(len, queue.items.values())) <= 12
    labelled = {(f"t{i}", "bo") for i in range(30) if i % 3 >= 1}
    assert not labelled & {(item, "bo") for item in queue.items["bo"]}
    assert queue.best_gain > 0


def test_unlabelled_items_are_planned(model):
    assert any("new" in items for items in plan_queue(model, 60).items.values())


def test_ten_labels_each_by_default(model):
    assert sum(map(len, plan_queue(model).items.values())) <= 30


def test_status(model):
    status = Status.of(model, cost=0.5)
    confidence = model.confidence_
    assert status.n_doubtful == sum(value < 0.9 for value in confidence)
    assert status.accuracy == pytest.approx(confidence.mean())
    assert str(status).startswith(f"{model.table_.n_labels} labels of 31 items, ")
    assert str(status).endswith(f"cost so far {model.table_.n_labels / 2:.2f}")
    assert "cost" not in str(Status.of(model))


def test_when_labels_no_longer_pay():
    assert describe_gain(0.02, 0.01, 1.0) is None
    assert "take about 200 of the best of them, at a cost of 10.00" in describe_gain(
        0.005, 0.01, 0.05
    )
    assert "none is expected to gain anything" in describe_gain(0.0, 0.01, None)
