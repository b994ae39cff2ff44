import json
from dataclasses import replace

import numpy as np
import pytest
from fitted_crowds import crowd_result, with_classifier

from annotrace.diagnosis import diagnose
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, pairwise_flippers, simulate_labels


def split_crowd(confusion, classes_apart, rng):
    """Label 800 items by two halves of the annotators, who share no item."""
    n_classes = confusion.shape[1]
    truth = rng.integers(0, n_classes, 800)
    if classes_apart:
        truth = np.sort(truth)
    first = int(np.searchsorted(truth, n_classes // 2)) if classes_apart else 400
    half = len(confusion) // 2
    parts = [
        simulate_labels(truth[:first], confusion[:half], labels_per_item=3, random_state=rng),
        simulate_labels(truth[first:], confusion[half:], labels_per_item=3, random_state=rng),
    ]
    table = LabelTable.from_codes(
        np.concatenate([parts[0].item, first + parts[1].item]),
        np.concatenate([parts[0].annotator, half + parts[1].annotator]),
        np.concatenate([part.label for part in parts]),
    )
    return table, truth


@pytest.mark.parametrize("labels_per_item", [1, 3])
def test_a_good_crowd_is_identified_with_one_label_per_item_too(labels_per_item):
    found = diagnose(
        with_classifier(pairwise_flippers(6, 5, 0.7, 1), labels_per_item=labels_per_item)
    )
    assert (found.verdict, found.reasons, found.advice) == ("identified", (), ())
    assert str(found).startswith("Identified: items of each class receive its label")


def test_a_permuted_solution_is_never_identified():
    confusion, swap = hammer_spammers(6, 4, 0.7, 0), [1, 0, 2, 3]
    right = with_classifier(confusion)
    found = diagnose(crowd_result(right.table, right.prior[:, swap], confusion[:, swap]))
    assert found.verdict == "not identified"
    assert "permuted: 0 is mostly called 1, 1 is mostly called 0" in str(found)


def test_the_gravest_of_many_reasons_are_printed_and_all_are_kept():
    found = diagnose(with_classifier(hammer_spammers(4, 9, 0.05, 0), labels_per_item=1))
    texts = found.reason_texts
    assert len(texts) == len(found.reasons) > 6
    assert f"... and {len(texts) - 6} more in `reasons`" in str(found)
    assert texts[5] in str(found)
    assert texts[6] not in str(found)


def test_a_class_without_a_margin_is_named_with_its_rival():
    confusion = hammer_spammers(8, 4, 0.8, 0)
    confusion[:, 2] = [0.01, 0.79, 0.19, 0.01]
    found = diagnose(with_classifier(confusion))
    assert found.verdict == "weak"
    assert found.weak_classes.tolist() == [1]
    assert "Items of class 2 are labelled 1 nearly as often as items of class 1 are" in str(found)
    assert "how 1 differs from 2" in str(found)


def test_advice_says_how_many_labels_are_missing_and_from_whom():
    confusion = hammer_spammers(6, 3, 0.2, 0)
    confusion[2] = 0.9 * np.eye(3) + 0.1 / 3
    found = diagnose(with_classifier(confusion, n_items=30, distance=4))
    assert found.verdict != "identified"
    assert "more labels for items that are probably" in " ".join(found.advice)
    assert "annotators who know the class: 2" in " ".join(found.advice)


def test_spammers_alone_are_not_identified():
    rng = np.random.default_rng(0)
    marginals = np.repeat(rng.dirichlet(np.ones(3), 8)[:, None], 3, axis=1)
    table = simulate_labels(rng.integers(0, 3, 900), marginals, labels_per_item=3, random_state=rng)
    found = diagnose(crowd_result(table, np.full(3, 1 / 3), hammer_spammers(8, 3, 0.6, 0)))
    assert found.verdict == "not identified"
    assert found.reasons[0].kind == "no-information"


def test_labels_alone_need_items_in_common():
    rng = np.random.default_rng(0)
    confusion = hammer_spammers(8, 3, 0.8, rng)
    table, _ = split_crowd(confusion, False, rng)
    found = diagnose(crowd_result(table, np.full(3, 1 / 3), confusion))
    assert found.verdict == "weak"
    assert "Annotators fall into 2 groups that share no item" in found.reason_texts[0]
    assert found.advice[0].startswith("Have some of the same items labelled by ")


def test_single_labels_are_compared_with_gold():
    rng = np.random.default_rng(0)
    truth, confusion = rng.integers(0, 3, 1600), hammer_spammers(8, 3, 0.8, rng)
    table = simulate_labels(truth, confusion, labels_per_item=1, random_state=rng)
    alone = diagnose(crowd_result(table, np.full(3, 1 / 3), confusion))
    assert (alone.verdict, alone.n_compared) == ("not identified", 0)
    assert "provide gold items" in alone.advice[0]
    gold = np.where(np.arange(1600) < 400, truth, -1)
    result = crowd_result(table, np.full(3, 1 / 3), confusion, gold=gold)
    found = diagnose(result)
    assert (found.verdict, found.n_compared, found.groups.max()) == ("identified", 400, 0)
    low, high = result.annotators.skill_interval()
    skill = confusion.diagonal(axis1=1, axis2=2).mean(axis=1)
    assert np.mean((low <= skill) & (skill <= high)) >= 0.75
    np.testing.assert_allclose(found.class_labels, np.bincount(truth[:400]))


def test_gold_overrules_a_classifier():
    gold = np.zeros(900, int)
    result = with_classifier(hammer_spammers(6, 3, 0.8, 0), gold=gold)
    np.testing.assert_allclose(diagnose(result).class_labels, [result.table.n_labels, 0, 0])


def test_annotators_who_see_different_classes_are_not_compared():
    rng = np.random.default_rng(0)
    confusion = hammer_spammers(8, 4, 0.8, rng)
    table, truth = split_crowd(confusion, True, rng)
    found = diagnose(crowd_result(table, 0.9 * np.eye(4)[truth] + 0.025, confusion))
    assert found.verdict == "weak"
    assert found.overlap.separation > 0.7
    assert found.flags == ((),) * 8
    assert "hardly ever label items of" in " ".join(found.reason_texts)


def test_a_class_that_nobody_reports_is_a_reason():
    confusion = hammer_spammers(6, 3, 0.8, 0)
    narrow = with_classifier(confusion)
    table = narrow.table
    wider = LabelTable.from_codes(table.item, table.annotator, table.label, n_classes=4)
    padded = np.zeros((6, 4, 4)) + np.eye(4)
    padded[:, :3, :3] = confusion
    found = diagnose(crowd_result(wider, np.pad(narrow.prior, ((0, 0), (0, 1))), padded))
    assert found.verdict == "weak"
    assert found.reason_texts[0] == "No label reports 3."


def test_a_handful_of_labels_is_not_enough():
    found = diagnose(with_classifier(hammer_spammers(5, 3, 0.9, 0), n_items=12, labels_per_item=1))
    assert found.verdict != "identified"


def test_earlier_counts_compare_annotators():
    confusion = hammer_spammers(2, 3, 0.8, 0)
    table = LabelTable.from_codes(np.arange(60), np.arange(60) % 2, np.arange(60) % 3)
    result = crowd_result(table, np.full(3, 1 / 3), confusion, prior_counts=100 * confusion)
    assert diagnose(result).n_compared == 600
    assert "nothing-compared" not in {reason.kind for reason in diagnose(result).reasons}


def test_many_labels_of_one_item_are_no_burden():
    rng = np.random.default_rng(0)
    item = np.r_[np.zeros(30_000, int), np.repeat(np.arange(1, 101), 3)]
    annotator = np.r_[np.arange(30_000), rng.integers(0, 30_000, 300)]
    table = LabelTable.from_codes(item, annotator, rng.integers(0, 2, 30_300), n_classes=2)
    confusion = np.broadcast_to(0.6 * np.eye(2) + 0.2, (30_000, 2, 2))
    assert len(diagnose(crowd_result(table, [0.5, 0.5], confusion)).flags) == 30_000


def test_names_of_another_table_are_used_in_texts():
    confusion = hammer_spammers(5, 3, 0.9, 0)
    confusion[1] = 1 / 3
    found = diagnose(with_classifier(confusion, n_items=1500))
    table = found.table
    hidden = LabelTable(
        table.item, table.annotator, table.label,
        items=table.items, annotators=np.arange(100, 105), classes=table.classes,
    )  # fmt: skip
    assert "leave their labels out): 101." in str(replace(found, table=hidden))


def test_the_verdict_can_be_written_to_a_file():
    described = diagnose(with_classifier(hammer_spammers(6, 3, 0.8, 0))).as_dict()
    assert json.loads(json.dumps(described)) == described
    assert [entry["class"] for entry in described["margins"]] == [0, 1, 2]


def test_one_class_cannot_be_diagnosed():
    table = LabelTable.from_codes([0, 0], [0, 1], [0, 0], n_classes=1)
    with pytest.raises(InputError, match="two classes or more"):
        diagnose(crowd_result(table, [1.0], np.ones((2, 1, 1))))
