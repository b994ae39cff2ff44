from functools import partial

import numpy as np

from annotrace.aggregation import Hierarchical
from annotrace.diagnosis import diagnose
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import TEXT
from annotrace.simulate import hammer_spammers, simulate_labels


def test_people_are_flagged_for_what_they_do(learned):
    good = hammer_spammers(9, 4, 0.8, 0)
    spammer = np.tile([0.6, 0.2, 0.1, 0.1], (4, 1))
    adversary = 0.05 + 0.8 * np.roll(np.eye(4), 1, axis=1)
    mixer = good[0].copy()
    mixer[:2] = [[0.4, 0.55, 0.03, 0.02], [0.5, 0.45, 0.03, 0.02]]
    confusion = np.concatenate([good, [spammer, adversary, mixer]])
    flags = diagnose(*learned(confusion, n_items=1500, labels_per_item=4), confusion).flags
    assert flags[:9] == ((),) * 9
    assert flags[9] == ("spammer: answers do not depend on the item",)
    assert flags[10][0] == "adversarial: right less often than by chance"
    assert flags[11] == ("mixes up 0 and 1",)


def test_constant_answers_are_found_where_classes_are_rare():
    """A handful of labels of each rare class does not make them look informed."""
    always, expert = np.tile([0.97, 0.015, 0.015], (3, 3, 1)), 0.92 * np.eye(3) + 0.08 / 3
    confusion = np.concatenate([hammer_spammers(14, 3, 0.8, 0), always, [expert] * 2])
    for seed in range(3):
        truth = np.random.default_rng(seed).choice(3, 1000, p=[0.85, 0.1, 0.05])
        table = simulate_labels(truth, confusion, labels_per_item=5, random_state=seed)
        flags = Hierarchical().fit(table).diagnosis_.flags
        spammers = [k for k, own in enumerate(flags) if any(f.startswith("spammer") for f in own)]
        assert spammers == [14, 15, 16]


def test_those_who_swap_names_are_no_spammers(learned):
    """Their answers depend on the item, and are right as often as blind ones."""
    swap = 0.8 * np.eye(3)[[0, 2, 1]] + 0.2 / 3
    weak_swap = 0.4 * np.roll(np.eye(3), 1, axis=1) + 0.2
    confusion = np.concatenate([hammer_spammers(9, 3, 0.8, 0), [swap, weak_swap]])
    flags = diagnose(*learned(confusion, n_items=2000, labels_per_item=4), confusion).flags
    assert flags[9][0] == "mixes up 1 and 2"
    assert flags[10][0] == "adversarial: right less often than by chance"


def test_those_with_few_labels_are_accused_of_nothing_else(learned):
    confusion = hammer_spammers(150, 4, 0.6, 0)
    table, posterior = learned(confusion, n_items=400, labels_per_item=3)
    found = diagnose(table, posterior, confusion)
    few = table.labels_per_annotator() < 16
    assert few.sum() > 100
    assert {flag for who in np.flatnonzero(few) for flag in found.flags[who]} == {"few labels"}
    assert "- Few labels, less than 4 a class: " in str(found)


def test_flags_are_told_apart_whatever_classes_are_called(learned):
    mixer = hammer_spammers(1, 3, 0.9, 0)[0]
    mixer[0] = [0.1, 0.1, 0.8]
    confusion = np.concatenate([hammer_spammers(6, 3, 0.8, 0), [mixer]])
    table, posterior = learned(confusion, n_items=1200, labels_per_item=4)
    table = table.replace(classes=np.array(["human", "bot", "spammer"], dtype=TEXT))
    found = diagnose(table, posterior, confusion)
    assert found.flags[6] == ("takes human for spammer",)
    assert "Answers do not depend on the item" not in str(found)
    assert "- Takes one class for another: " in str(found)


def test_what_goes_both_ways_and_what_does_not_are_two_flags(learned):
    mixer = np.array(
        [[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0.1, 0.1, 0.1, 0.7], [0.05, 0.05, 0.05, 0.85]]
    )
    confusion = np.concatenate([hammer_spammers(8, 4, 0.8, 0), [mixer]])
    found = diagnose(*learned(confusion, n_items=2000, labels_per_item=4), confusion)
    assert found.flags[8] == ("mixes up 0 and 1", "takes 2 for 3")


def test_people_who_see_different_classes_are_accused_of_nothing():
    """Five see the items of the first class only, and say what they see."""
    confusion = hammer_spammers(10, 3, 0.8, 0)
    truth = np.random.default_rng(0).integers(0, 3, 900)
    first = np.flatnonzero(truth == 0)
    rest = np.flatnonzero(truth != 0)
    label = partial(simulate_labels, labels_per_item=3, random_state=0)
    parts = [
        (own, place, label(truth[own], confusion[place : place + 5]))
        for own, place in ((first, 0), (rest, 5))
    ]
    table = LabelTable.from_codes(
        np.concatenate([own[part.item] for own, _, part in parts]),
        np.concatenate([part.annotator + place for _, place, part in parts]),
        np.concatenate([part.label for *_, part in parts]),
        n_items=900,
    )
    found = Hierarchical().fit(table).diagnosis_
    assert found.overlap.apart
    assert found.flags == ((),) * 10
