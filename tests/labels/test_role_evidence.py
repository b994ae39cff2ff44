import numpy as np
import pytest
from tables import crowd, sheet_of

from annotrace.labels.profiles import Profiles
from annotrace.labels.role_evidence import Evidence, Reading


def evidence(columns, **known):
    profiles = Profiles(sheet_of(columns), list(columns), list(known.values()))
    found = Evidence(profiles, known)
    by_name = {part.name: part for part in profiles.columns}
    return found, by_name


def test_annotators_label_an_item_once():
    columns, _ = crowd()
    found, by_name = evidence(columns)
    pairs = {
        (item, other): found.label_once(by_name[item], by_name[other])
        for item in columns
        for other in columns
        if item != other
    }
    assert {pair for pair, is_so in pairs.items() if is_so} == {("photo", "who"), ("who", "photo")}


def test_a_column_at_random_is_no_annotator():
    """Of many values, few are equal within an item: as few as chance predicts."""
    columns, rows = crowd(n_items=300)
    columns["seconds"] = np.random.default_rng(0).integers(3, 60, len(rows["item"]))
    found, by_name = evidence(columns)
    assert not found.label_once(by_name["photo"], by_name["seconds"])
    assert not found.may_label_once(by_name["photo"], by_name["seconds"])


def test_a_few_repeated_labels_are_no_obstacle():
    columns, _ = crowd()
    for name, values in columns.items():
        columns[name] = values + values[:10]
    found, by_name = evidence(columns)
    assert found.label_once(by_name["photo"], by_name["who"])


def test_a_counter_of_the_labels_of_an_item_is_no_annotator():
    columns, rows = crowd()
    keep = np.random.default_rng(0).random(len(rows["item"])) < 0.7
    columns = {name: np.array(values)[keep] for name, values in columns.items()}
    item = rows["item"][keep]
    columns["slot"] = [int(np.sum(item[:k] == item[k])) + 1 for k in range(len(item))]
    found, by_name = evidence(columns)
    assert not found.label_once(by_name["photo"], by_name["slot"])


@pytest.mark.parametrize(
    ("changes", "is_supported"),
    [
        ({}, True),
        ({"accuracy": 0.4}, False),
        ({"n_items": 30, "n_annotators": 60}, False),
        ({"n_items": 8}, False),
    ],
)
def test_support_of_the_true_reading(changes, is_supported):
    columns, _ = crowd(**changes)
    found, by_name = evidence(columns)
    reading = Reading(*(by_name[name] for name in ("photo", "who", "animal")))
    assert found.supports(reading) is is_supported


def test_less_agreement_is_enough_if_items_are_known():
    columns, _ = crowd(n_items=300, n_classes=2, accuracy=0.4, per_item=5)
    found, by_name = evidence(columns)
    reading = Reading(*(by_name[name] for name in ("photo", "who", "animal")))
    assert not found.supports(reading)
    found, by_name = evidence(columns, item="photo")
    assert found.supports(Reading(*(by_name[name] for name in ("photo", "who", "animal"))))


def test_labels_that_follow_from_the_item_or_the_annotator_are_none():
    columns, rows = crowd()
    columns["truth"] = [f"c{k}" for k in rows["truth"]]
    columns["team"] = [f"t{k % 2}" for k in rows["annotator"]]
    found, by_name = evidence(columns)
    for label in ("truth", "team"):
        reading = Reading(by_name["photo"], by_name["who"], by_name[label])
        assert not found.supports(reading)
