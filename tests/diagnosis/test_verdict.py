import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from annotrace.aggregation import Hierarchical
from annotrace.diagnosis import diagnose
from annotrace.diagnosis.counting import label_scores, normalised, report_matrix
from annotrace.diagnosis.identifiability import Estimate
from annotrace.diagnosis.prediction import PairInformation
from annotrace.diagnosis.reasons import _alike
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, pairwise_flippers, simulate_labels


@pytest.mark.parametrize("labels_per_item", [1, 3])
def test_a_good_crowd_is_identified_one_label_an_item_too(learned, labels_per_item):
    confusion = pairwise_flippers(6, 5, 0.7, 1)
    found = diagnose(*learned(confusion, labels_per_item=labels_per_item), confusion)
    assert (found.verdict, found.reasons, found.advice) == ("identified", (), ())
    assert str(found).startswith("Identified: every class is called by its own name")


def test_a_permuted_solution_is_never_identified(learned):
    confusion = hammer_spammers(6, 4, 0.7, 0)
    table, posterior = learned(confusion)
    swap = [1, 0, 2, 3]
    found = diagnose(table, posterior[:, swap], confusion[:, swap])
    assert found.verdict == "not identified"
    assert "Names of classes came out permuted: 0 is called 1, 1 is called 0" in str(found)


def test_of_many_reasons_the_gravest_are_said_and_all_are_kept(learned):
    confusion = hammer_spammers(4, 9, 0.05, 0)
    found = diagnose(*learned(confusion, labels_per_item=1), confusion)
    assert len(found.reasons) > 6
    assert f"... and {len(found.reasons) - 6} more, in `reasons`" in str(found)
    assert found.reasons[5] in str(found)
    assert found.reasons[6] not in str(found)


def test_a_class_without_a_lead_is_named_with_its_rival(learned):
    confusion = hammer_spammers(8, 4, 0.8, 0)
    confusion[:, 2] = [0.01, 0.79, 0.19, 0.01]
    found = diagnose(*learned(confusion), confusion)
    assert found.verdict == "weak"
    assert found.weak_classes.tolist() == [1]
    assert "Items of class 2 are called 1 nearly as often as items of class 1 are" in str(found)
    assert "how 1 differs from 2" in str(found)


def test_advice_says_how_many_labels_are_missing_and_by_whom(learned):
    confusion = hammer_spammers(6, 3, 0.2, 0)
    confusion[2] = 0.9 * np.eye(3) + 0.1 / 3
    found = diagnose(*learned(confusion, n_items=30, distance=4), confusion)
    assert found.verdict != "identified"
    assert "more labels on items that seem to be" in " ".join(found.advice)
    assert "best by those who know it: 2" in " ".join(found.advice)


def test_spammers_alone_are_not_identified():
    rng = np.random.default_rng(0)
    habits = np.repeat(rng.dirichlet(np.ones(3), 8)[:, None], 3, axis=1)
    table = simulate_labels(rng.integers(0, 3, 900), habits, labels_per_item=3, random_state=rng)
    confusion = hammer_spammers(8, 3, 0.6, 0)
    found = diagnose(table, np.full((900, 3), 1 / 3), confusion, prior=np.full(3, 1 / 3))
    assert found.verdict == "not identified"
    assert "Labels depend on the items no more than chance" in found.reasons[0]


def test_labels_alone_need_items_in_common():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 800)
    confusion = hammer_spammers(8, 3, 0.8, rng)
    halves = [
        simulate_labels(truth[:400], confusion[:4], labels_per_item=3, random_state=rng),
        simulate_labels(truth[400:], confusion[4:], labels_per_item=3, random_state=rng),
    ]
    table = LabelTable.from_codes(
        np.concatenate([halves[0].item, 400 + halves[1].item]),
        np.concatenate([halves[0].annotator, 4 + halves[1].annotator]),
        np.concatenate([half.label for half in halves]),
    )
    posterior = np.eye(3)[truth]
    found = diagnose(table, posterior, confusion, prior=np.full(3, 1 / 3))
    assert found.verdict == "weak"
    assert "Annotators fall into 2 groups that share no item" in found.reasons[0]
    assert found.advice[0].startswith("Give some items of ")


def test_single_labels_are_held_against_known_classes():
    rng = np.random.default_rng(0)
    truth, confusion = rng.integers(0, 3, 1600), hammer_spammers(8, 3, 0.8, rng)
    table = simulate_labels(truth, confusion, labels_per_item=1, random_state=rng)
    learned = table, np.eye(3)[truth], confusion
    alone = diagnose(*learned, prior=np.full(3, 1 / 3))
    assert (alone.verdict, alone.n_compared) == ("not identified", 0)
    assert "learn from some whose class is known" in alone.advice[0]
    gold = np.where(np.arange(1600) < 400, truth, -1)
    found = diagnose(*learned, prior=np.full(3, 1 / 3), gold=gold)
    assert (found.verdict, found.n_compared, found.groups.max()) == ("identified", 400, 0)
    low, high = found.crowd.skills()
    skill = confusion.diagonal(axis1=1, axis2=2).mean(axis=1)
    assert np.mean((low <= skill) & (skill <= high)) >= 0.75
    assert np.all(found.crowd.counts.sum(axis=(0, 2)) == np.bincount(truth[:400]))


def test_known_classes_overrule_a_classifier(learned):
    confusion = hammer_spammers(6, 3, 0.8, 0)
    table, posterior = learned(confusion)
    gold = np.zeros(table.n_items, int)
    found = diagnose(table, posterior, confusion, gold=gold)
    assert found.labels_behind.tolist() == [table.n_labels, 0, 0]
    with pytest.raises(InputError, match="one entry for each"):
        diagnose(table, posterior, confusion, gold=gold[1:])


def test_annotators_who_see_different_classes_are_not_compared():
    rng = np.random.default_rng(0)
    confusion = hammer_spammers(8, 4, 0.8, rng)
    truth = np.sort(rng.integers(0, 4, 800))
    first = int(np.searchsorted(truth, 2))
    parts = [
        simulate_labels(truth[:first], confusion[:4], labels_per_item=3, random_state=rng),
        simulate_labels(truth[first:], confusion[4:], labels_per_item=3, random_state=rng),
    ]
    table = LabelTable.from_codes(
        np.concatenate([parts[0].item, first + parts[1].item]),
        np.concatenate([parts[0].annotator, 4 + parts[1].annotator]),
        np.concatenate([part.label for part in parts]),
    )
    classifier = np.log(0.9 * np.eye(4)[truth] + 0.025)
    posterior = normalised(classifier + label_scores(report_matrix(table), confusion))
    found = diagnose(table, posterior, confusion)
    assert found.verdict == "weak"
    assert "whether they would mix them up is not known" in " ".join(found.reasons)


def test_classes_seen_by_some_only_are_doubted_where_estimates_have_lost_one():
    """Nine in ten items go to those who see their half of the classes only."""
    rng = np.random.default_rng(0)
    truth, confusion = np.arange(1200) % 4, hammer_spammers(12, 4, 0.85, 0)
    half = np.where(rng.random(1200) < 0.9, truth // 2, rng.integers(0, 2, 1200))
    item = np.repeat(np.arange(1200), 3)
    annotator = np.concatenate([6 * own + rng.choice(6, 3, replace=False) for own in half])
    label = [rng.choice(4, p=confusion[r, truth[i]]) for i, r in zip(item, annotator, strict=True)]
    table = LabelTable.from_codes(item, annotator, label)
    found = Hierarchical().fit(table).diagnosis_
    assert found.crowd.counts.sum(axis=(0, 2)).min() < 400
    assert found.overlap.separation > 0.7
    assert "Those who label items of 2, 3 hardly ever label items of 0, 1" in str(found) or (
        "Those who label items of 0, 1 hardly ever label items of 2, 3" in str(found)
    )


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (Estimate(0.07, 0.05, 0.09), "less well than it seems: keeping them apart helps .* 70%"),
        (Estimate(0.07, 0.001, 0.139), "Labels do not tell cat from dog"),
        (Estimate(0.07, 0.03, 0.11), None),
        (Estimate(0.09, 0.085, 0.095), None),
    ],
)
def test_two_classes_are_doubted_where_labels_fall_short_by_more_than_chance(gain, said):
    pair = PairInformation((0, 1), gain, claimed=0.1)
    found = SimpleNamespace(pairs=[pair], table=SimpleNamespace(classes=["cat", "dog"]))
    reasons = [reason.said for reason in _alike(found)]
    assert len(reasons) == (said is not None)
    assert said is None or re.search(said, reasons[0])


def test_a_class_that_nobody_reports_is_told(learned):
    confusion = hammer_spammers(6, 3, 0.8, 0)
    table, posterior = learned(confusion)
    wider = LabelTable.from_codes(table.item, table.annotator, table.label, n_classes=4)
    padded = np.zeros((6, 4, 4)) + np.eye(4)
    padded[:, :3, :3] = confusion
    found = diagnose(wider, np.pad(posterior, ((0, 0), (0, 1))), padded)
    assert found.verdict == "weak"
    assert found.reasons[0] == "Nobody ever reported 3."


def test_a_handful_of_labels_is_not_enough(learned):
    confusion = hammer_spammers(5, 3, 0.9, 0)
    found = diagnose(*learned(confusion, n_items=12, labels_per_item=1), confusion)
    assert found.verdict != "identified"


def test_the_verdict_can_be_written_to_a_file(learned):
    confusion = hammer_spammers(6, 3, 0.8, 0)
    described = diagnose(*learned(confusion), confusion).as_dict()
    assert json.loads(json.dumps(described)) == described
    assert [entry["class"] for entry in described["margins"]] == [0, 1, 2]


def test_shapes_that_do_not_fit_are_named(learned):
    confusion = hammer_spammers(6, 3, 0.8, 0)
    table, posterior = learned(confusion)
    with pytest.raises(InputError, match=r"`posterior` of shape \(900, 3\), but got \(899, 3\)"):
        diagnose(table, posterior[1:], confusion)
    with pytest.raises(InputError, match=r"`confusion` of shape \(6, 3, 3\)"):
        diagnose(table, posterior, confusion[1:])
