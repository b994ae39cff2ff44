import numpy as np
import pytest
import torch
from references import random_table

from annotrace.aggregation.em_model import class_shares, one_coin_matrices, one_coin_skill
from annotrace.aggregation.majority_vote import VoteModel
from annotrace.crowd.problem import CrowdProblem
from annotrace.labels import LabelTable

COUNTS = torch.tensor([[[8.0, 2.0], [1.0, 4.0]], [[0.0, 0.0], [3.0, 0.0]]], dtype=torch.float64)


def test_one_coin_is_the_share_of_correct_reports():
    skill = one_coin_skill(COUNTS, 0.5)
    np.testing.assert_allclose(skill, [13 / 17, 1 / 5])
    np.testing.assert_allclose(one_coin_matrices(skill, 2)[1], [[0.2, 0.8], [0.8, 0.2]])
    np.testing.assert_allclose(one_coin_matrices(torch.tensor([0.6]), 3).sum(2), 1)
    np.testing.assert_allclose(one_coin_matrices(torch.ones(1), 1), 1)


def test_class_shares_leave_out_items_of_which_nothing_is_known():
    table = LabelTable.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 1], n_items=5)
    problem = CrowdProblem(table)
    np.testing.assert_allclose(class_shares(problem, problem.votes()), [1 / 3, 2 / 3])


@pytest.mark.parametrize("sizes", [(30, 6, 3), (35, 8, 4)])
def test_a_warm_start_copies_what_was_learned(sizes):
    item, annotator, label, _ = random_table(np.random.default_rng(0))
    small = CrowdProblem(LabelTable.from_codes(item, annotator, label))
    names = dict(zip(("n_items", "n_annotators", "n_classes"), sizes, strict=True))
    large = CrowdProblem(LabelTable.from_codes(item, annotator, label, **names))
    previous, model = VoteModel(small, 0.01), VoteModel(large, 0.01)
    previous.m_step(small, small.votes())
    untouched = model.log[6:].clone()
    model.warm_start(previous)
    torch.testing.assert_close(model.log[:6, :3, :3], previous.log)
    torch.testing.assert_close(model.log[6:], untouched)
    torch.testing.assert_close(model.prior[:3], previous.prior)


def test_with_one_class_every_label_is_correct():
    skill = torch.tensor([0.7, 0.9])
    assert one_coin_matrices(skill, 1).tolist() == [[[1.0]], [[1.0]]]
