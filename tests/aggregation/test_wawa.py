import numpy as np
from references import agreement, leading, random_table, vote_shares

from annotrace.aggregation import Wawa
from annotrace.labels import LabelTable


def test_wawa_votes_twice():
    item, annotator, label, _ = random_table(np.random.default_rng(0), skill=0.5)
    chosen = leading(vote_shares(item, label, 30, 3))
    skill = agreement(item, annotator, label, chosen, 6, 3)
    expected = np.zeros((30, 3))
    np.add.at(expected, (item, label), skill[annotator])
    model = Wawa().fit(LabelTable.from_codes(item, annotator, label))
    np.testing.assert_allclose(model.annotator_model_.skill, skill, atol=1e-10)
    np.testing.assert_allclose(model.posterior_, expected / expected.sum(1, keepdims=True))
