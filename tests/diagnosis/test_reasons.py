import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from fitted_crowds import from_labels, with_classifier
from panels import shared_error_panel

from annotrace.aggregation import DawidSkene, make
from annotrace.diagnosis.identifiability import Estimate
from annotrace.diagnosis.prediction import PairInformation
from annotrace.diagnosis.reasons import Reason, _indistinct, find_reasons
from annotrace.diagnosis.verdict import measure
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers


@pytest.mark.parametrize(
    ("gain", "kind"),
    [
        (Estimate(0.07, 0.05, 0.09), "overstated"),
        (Estimate(0.07, 0.001, 0.139), "indistinct"),
        (Estimate(0.07, 0.03, 0.11), None),
        (Estimate(0.09, 0.085, 0.095), None),
    ],
)
def test_two_classes_are_doubted_if_labels_fall_short_by_more_than_chance(gain, kind):
    found = SimpleNamespace(pairs=[PairInformation((0, 1), gain, claimed=0.1)])
    reasons = _indistinct(found)
    assert [reason.kind for reason in reasons] == ([] if kind is None else [kind])


def test_a_good_crowd_gives_no_reason():
    assert find_reasons(measure(with_classifier(hammer_spammers(6, 3, 0.8, 0)))) == ()


def test_a_small_margin_names_class_rival_and_numbers():
    confusion = hammer_spammers(8, 4, 0.8, 0)
    confusion[:, 2] = [0.01, 0.79, 0.19, 0.01]
    reasons = find_reasons(measure(with_classifier(confusion)))
    small = [reason for reason in reasons if reason.kind == "small-margin"]
    assert [(reason.classes, reason.others) for reason in small] == [((1,), (2,))]
    assert small[0].numbers["low"] < small[0].numbers["margin"] < small[0].numbers["high"]


def test_some_reasons_are_fatal_and_some_weaken_classes():
    assert Reason("no-information").is_fatal
    assert not Reason("few-labels", (1,)).is_fatal
    assert Reason("few-labels", (1,)).weak_classes == (1,)
    assert Reason("separate-classes", (0,), (1,)).weak_classes == ()


def test_reasons_are_data_that_can_be_compared():
    assert Reason("few-labels", (1,)) == Reason("few-labels", (1,))
    assert np.all([Reason("few-labels", (1,)) != Reason("few-labels", (2,))])


def test_a_fitted_aggregation_with_reasons_can_be_pickled_and_copied():
    table = LabelTable.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 1])
    fitted = DawidSkene().fit(table)
    assert fitted.diagnosis_.reasons
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert again.diagnosis_.reasons == fitted.diagnosis_.reasons


def kinds(result):
    return [reason.kind for reason in find_reasons(measure(result))]


def test_shared_errors_are_a_reason():
    table = shared_error_panel(0.5)
    found = measure(DawidSkene().fit(table).result_)
    (reason,) = (reason for reason in find_reasons(found) if reason.kind == "shared-errors")
    assert reason.numbers["votes"] == 9
    assert reason.numbers["effective"] == found.dependence.effective_votes < 4
    assert 0.05 < reason.numbers["unknown"] < 0.3
    assert "shared-errors" not in kinds(DawidSkene().fit(shared_error_panel(0.0)).result_)


def test_annotators_who_are_not_known_well_are_a_reason():
    few, many = (
        from_labels(hammer_spammers(n, 4, 0.65, 0), n_items=n_items, labels_per_item=4)
        for n, n_items in ((60, 120), (8, 4000))
    )
    assert "unknown-annotators" in kinds(few)
    assert "unknown-annotators" not in kinds(many)


@pytest.mark.parametrize(("labels_per_item", "is_doubted"), [(2, True), (3, False)])
def test_two_labels_per_item_are_a_reason(labels_per_item, is_doubted):
    confusion = hammer_spammers(6, 2, 0.85, 0)
    alone = from_labels(confusion, labels_per_item=labels_per_item)
    assert ("two-labels" in kinds(alone)) == is_doubted
    assert "two-labels" not in kinds(with_classifier(confusion, labels_per_item=labels_per_item))


def test_a_divided_crowd_is_not_identified():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=400)
    shared = np.where(rng.random(400) < 0.5, truth, (truth + 1) % 3)
    item, annotator = np.repeat(np.arange(400), 9), np.tile(np.arange(9), 400)
    right = rng.random(len(item)) < 0.65
    own = np.where(right, truth[item], (truth[item] + rng.integers(1, 3, len(item))) % 3)
    table = LabelTable.from_codes(item, annotator, np.where(annotator < 4, shared[item], own))
    divided = kinds(make().fit(table).result_)
    assert "divided" in divided
    assert "divided" not in kinds(make("hierarchical").fit(table).result_)
