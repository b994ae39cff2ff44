import numpy as np
import pytest

import annotrace as at
from annotrace.diagnosis.past import with_past
from annotrace.simulate import hammer_spammers, simulate_labels

SKILL = np.array([0.9, 0.6])
PAST = 300 * (SKILL[:, None, None] * np.eye(3) + (1 - SKILL[:, None, None]) / 3)


@pytest.fixture(scope="module")
def single():
    """Sixty items of one label, by two annotators in turn."""
    labels = np.random.default_rng(0).integers(0, 3, 60)
    return at.LabelTable.from_codes(np.arange(60), np.arange(60) % 2, labels)


def test_counts_become_labels_of_known_items(single):
    past = np.zeros((2, 3, 3))
    past[0, 1, 2], past[1, 0, 0] = 2.2, 1
    posterior = np.full((60, 3), 1 / 3)
    table, extended, gold = with_past(single, posterior, np.full(60, -1), past)
    assert table.n_items == len(extended) == len(gold) == 63
    further = list(zip(table.annotator, gold[table.item], table.label, strict=True))[60:]
    assert further == [(0, 1, 2), (0, 1, 2), (1, 0, 0)]
    np.testing.assert_array_equal(extended[60:].argmax(axis=1), gold[60:])


def test_skills_are_known_from_the_past(single, tmp_path):
    model = at.aggregation.make("dawid-skene").fit(single, confusion_prior=PAST)
    people = model.annotators_
    assert people["n_labels"].to_list() == [30, 30]
    expected = PAST.diagonal(axis1=1, axis2=2).mean(axis=1) / 300
    np.testing.assert_allclose(people["skill"].to_numpy(), expected, atol=0.05)
    assert (people["high"] - people["low"]).max() < 0.1
    assert "nothing to compare" not in str(model.diagnosis_)
    model.save(tmp_path)
    assert at.load(tmp_path).annotators_["skill"].to_list() == people["skill"].to_list()


def test_a_past_makes_intervals_narrower():
    confusion = hammer_spammers(6, 3, 0.7, random_state=0)
    table = simulate_labels(np.arange(60) % 3, confusion, labels_per_item=3, random_state=0)
    widths = []
    for past in (None, 200 * confusion):
        people = at.aggregation.make("dawid-skene").fit(table, confusion_prior=past).annotators_
        widths.append((people["high"] - people["low"]).mean())
    assert widths[1] < widths[0] / 2
