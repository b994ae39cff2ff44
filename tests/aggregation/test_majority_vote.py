from collections import Counter

import numpy as np
import pytest
from references import random_table

from annotrace.aggregation import MajorityVote
from annotrace.labels import LabelTable


def test_counts_as_a_counter_does():
    item, annotator, label, _ = random_table(np.random.default_rng(0), 200, 10, 4, skill=0.3)
    vote = MajorityVote().fit(LabelTable.from_codes(item, annotator, label))
    predicted = vote.predict()
    for i in range(200):
        counted = Counter(label[item == i].tolist())
        most = max(counted.values())
        winners = [name for name, count in counted.items() if count == most]
        assert predicted[i] in winners
        assert vote.ties_[i] == (len(winners) > 1)
        assert vote.posterior_[i].max() == most / 4


def test_ties_are_broken_by_seed_and_evenly():
    item = np.repeat(np.arange(2000), 2)
    table = LabelTable.from_codes(item, np.tile([0, 1], 2000), np.tile([0, 1], 2000))
    first, again, other = (MajorityVote(random_state=s).fit(table).predict() for s in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert 0.45 < first.mean() < 0.55


@pytest.mark.parametrize("random_state", [None, np.random.default_rng(0)])
def test_ties_are_broken_once_per_fit(random_state):
    item = np.repeat(np.arange(200), 2)
    table = LabelTable.from_codes(item, np.tile([0, 1], 200), np.tile([0, 1], 200))
    vote = MajorityVote(random_state=random_state).fit(table)
    assert np.array_equal(vote.predict(), vote.predict())
    assert not np.array_equal(vote.predict(), vote.fit(table).predict())
