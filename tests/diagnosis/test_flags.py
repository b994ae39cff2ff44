import numpy as np

from annotrace.aggregation import Hierarchical
from annotrace.diagnosis import diagnose
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
