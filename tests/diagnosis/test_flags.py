import numpy as np

from annotrace.diagnosis import diagnose
from annotrace.simulate import hammer_spammers


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


def test_those_with_few_labels_are_accused_of_nothing_else(learned):
    confusion = hammer_spammers(150, 4, 0.6, 0)
    table, posterior = learned(confusion, n_items=400, labels_per_item=3)
    found = diagnose(table, posterior, confusion)
    few = table.labels_per_annotator() < 16
    assert few.sum() > 100
    assert {flag for who in np.flatnonzero(few) for flag in found.flags[who]} == {"few labels"}
    assert "- Few labels, less than 4 a class: " in str(found)
