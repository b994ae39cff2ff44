import numpy as np
import torch
from references import agreement, leading, random_table

from annotrace.aggregation import IterativeWeightedVote, Wawa
from annotrace.aggregation.weighted_vote import leading_classes
from annotrace.labels import LabelTable


def test_iterations_end_where_votes_and_weights_agree():
    item, annotator, label, _ = random_table(np.random.default_rng(1), 200, 8, 3, skill=0.5)
    model = IterativeWeightedVote().fit(LabelTable.from_codes(item, annotator, label))
    skill = model.annotator_model_.skill.numpy()
    votes = np.zeros((200, 3))
    np.add.at(votes, (item, label), 3 * skill[annotator] - 1)
    np.testing.assert_allclose(leading(votes), leading(model.posterior_))
    again = agreement(item, annotator, label, leading(votes), 8, 3)
    np.testing.assert_allclose(skill, again, atol=1e-10)


def test_the_labels_of_an_adversary_count_for_other_classes():
    rng = np.random.default_rng(2)
    item, annotator, label, truth = random_table(rng, 500, 9, 2, labels_each=5, skill=0.9)
    label = np.where(annotator < 3, 1 - truth[item], label)
    table = LabelTable.from_codes(item, annotator, label)
    assert (IterativeWeightedVote().fit(table).predict() == truth).mean() > 0.995
    assert (Wawa().fit(table).predict() == truth).mean() < 0.99


def test_ties_share_the_lead():
    votes = torch.tensor([[1.0, 1.0, 0.0], [0.2, 0.5, 0.3]])
    np.testing.assert_array_equal(leading_classes(votes), [[0.5, 0.5, 0], [0, 1, 0]])
