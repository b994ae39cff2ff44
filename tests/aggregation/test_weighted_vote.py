import numpy as np
from references import random_table, vote_shares

from annotrace.aggregation import IterativeWeightedVote, Wawa
from annotrace.labels import LabelTable


def leading(votes):
    highest = votes >= votes.max(1, keepdims=True) - 1e-9
    return highest / highest.sum(1, keepdims=True)


def agreement(item, annotator, label, chosen, n_annotators, n_classes, smoothing=0.01):
    skill = np.zeros(n_annotators)
    for r in range(n_annotators):
        mine = annotator == r
        agreed = chosen[item[mine], label[mine]].sum() + smoothing * n_classes
        skill[r] = agreed / (mine.sum() + smoothing * n_classes**2)
    return skill


def test_wawa_votes_twice():
    item, annotator, label, _ = random_table(np.random.default_rng(0), skill=0.5)
    chosen = leading(vote_shares(item, label, 30, 3))
    skill = agreement(item, annotator, label, chosen, 6, 3)
    expected = np.zeros((30, 3))
    np.add.at(expected, (item, label), skill[annotator])
    model = Wawa().fit(LabelTable.from_codes(item, annotator, label))
    np.testing.assert_allclose(model.skill_, skill, atol=1e-10)
    np.testing.assert_allclose(model.posterior_, expected / expected.sum(1, keepdims=True))


def test_iterations_end_where_votes_and_weights_agree():
    item, annotator, label, _ = random_table(np.random.default_rng(1), 200, 8, 3, skill=0.5)
    model = IterativeWeightedVote().fit(LabelTable.from_codes(item, annotator, label))
    votes = np.zeros((200, 3))
    np.add.at(votes, (item, label), 3 * model.skill_[annotator] - 1)
    np.testing.assert_allclose(leading(votes), leading(model.posterior_))
    again = agreement(item, annotator, label, leading(votes), 8, 3)
    np.testing.assert_allclose(model.skill_, again, atol=1e-10)


def test_an_adversary_is_turned_against():
    rng = np.random.default_rng(2)
    item, annotator, label, truth = random_table(rng, 500, 9, 2, labels_each=5, skill=0.9)
    label = np.where(annotator < 3, 1 - truth[item], label)
    table = LabelTable.from_codes(item, annotator, label)
    assert (IterativeWeightedVote().fit(table).predict() == truth).mean() > 0.995
    assert (Wawa().fit(table).predict() == truth).mean() < 0.99
