import numpy as np
import pytest
import torch
from references import random_table, vote_shares

from annotrace.crowd.problem import BLOCK, CrowdProblem
from annotrace.errors import InputError
from annotrace.labels import LabelTable


@pytest.fixture
def triplets():
    return random_table(np.random.default_rng(0))


@pytest.fixture
def table(triplets):
    return LabelTable.from_codes(*triplets[:3], n_items=32)


def test_votes_are_shares_gold_or_uniform(triplets, table):
    gold = np.full(32, -1)
    gold[[0, 31]] = 2, 1
    votes = CrowdProblem(table, gold).votes().numpy()
    np.testing.assert_allclose(votes[1:30], vote_shares(triplets[0], triplets[2], 30, 3)[1:])
    np.testing.assert_array_equal(votes[[0, 31]], np.eye(3)[[2, 1]])
    np.testing.assert_allclose(votes[30], 1 / 3)


def test_no_item_is_gold_by_default(triplets, table):
    votes = CrowdProblem(table).votes().numpy()
    np.testing.assert_allclose(votes[:30], vote_shares(triplets[0], triplets[2], 30, 3))


def test_prior_counts_compare_annotators():
    table = LabelTable.from_codes([0, 1], [0, 1], [0, 1])
    assert not CrowdProblem(table).is_comparable
    assert CrowdProblem(table, None, np.ones((2, 2, 2))).is_comparable
    assert CrowdProblem(table, [0, -1]).is_comparable


def test_counts_include_those_of_earlier_labels(table):
    earlier = np.random.default_rng(1).random((6, 3, 3))
    votes = CrowdProblem(table).votes()
    without, with_them = (CrowdProblem(table, None, counts) for counts in (None, earlier))
    np.testing.assert_allclose(with_them.counts(votes), without.counts(votes).numpy() + earlier)
    logs = torch.rand(6, 3, 3, dtype=torch.float64)
    assert without.log_prior_counts(logs) == 0
    expected = (earlier * logs.numpy()).sum()
    assert float(with_them.log_prior_counts(logs)) == pytest.approx(expected)


def test_items_of_which_nothing_is_known_do_not_count_in_totals(table):
    problem = CrowdProblem(table, np.where(np.arange(32) == 31, 0, -1))
    assert problem.uninformed.tolist() == [30]
    values = torch.rand(32, 2, dtype=torch.float64)
    expected = values[np.arange(32) != 30].sum(0)
    torch.testing.assert_close(problem.total(values), expected)


def test_totals_of_many_items_are_exact():
    n_items = 2 * BLOCK + 7
    item = np.arange(n_items)
    problem = CrowdProblem(LabelTable.from_codes(item, item * 0, item % 2))
    values = torch.rand(n_items, 2)
    torch.testing.assert_close(problem.total(values), values.double().sum(0))


def test_the_e_step_clamps_gold_and_sums_the_evidence(table):
    problem = CrowdProblem(table, np.where(np.arange(32) == 3, 2, -1))
    log_joint = torch.randn(32, 3, dtype=torch.float64)
    expected = torch.logsumexp(log_joint, 1)
    expected[3] = log_joint[3, 2]
    posterior, log_evidence = problem.e_step(log_joint.clone())
    np.testing.assert_array_equal(posterior[3], [0, 0, 1])
    torch.testing.assert_close(posterior[:3], torch.softmax(log_joint[:3], 1))
    known = np.arange(32) < 30
    assert log_evidence == pytest.approx(float(expected[known].sum()))


def test_wrong_inputs_are_rejected(table):
    with pytest.raises(InputError, match=r"of shape \(6, 3, 3\) \(annotator, true, reported\)"):
        CrowdProblem(table, None, np.ones((2, 3, 3)))
    counts = np.ones((6, 3, 3))
    for wrong in (-1.0, np.nan):
        counts[5, 0, 2] = wrong
        with pytest.raises(InputError, match="`prior_counts` to be 0 or more"):
            CrowdProblem(table, None, counts)


def test_small_values_are_not_lost_beside_large_ones():
    item = np.arange(2 * BLOCK + 2)
    problem = CrowdProblem(LabelTable.from_codes(item, item * 0, item % 2))
    values = torch.zeros(len(item), 1)
    values[[0, 2 * BLOCK]] = 2.0**24
    values[[BLOCK, 2 * BLOCK + 1]] = 1.0
    assert problem.total(values).item() == 2**25 + 2


def test_the_evidence_alone_and_agreement_are_those_of_all_that_is_computed():
    rng = np.random.default_rng(0)
    item, annotator, label = (rng.integers(n, size=40) for n in (9, 3, 4))
    sizes = {"n_items": 10, "n_annotators": 3, "n_classes": 4}
    table = LabelTable.from_codes(item, annotator, label, **sizes)
    gold = np.where(np.arange(10) == 2, 1, -1)
    problem = CrowdProblem(table, gold, rng.random((3, 4, 4)))
    log_joint = torch.from_numpy(rng.normal(size=(10, 4)))
    posterior, evidence = problem.e_step(log_joint.clone())
    assert problem.log_evidence(log_joint) == pytest.approx(evidence)
    counts = problem.counts(posterior)
    correct, total = problem.agreement(posterior)
    torch.testing.assert_close(correct, counts.diagonal(dim1=1, dim2=2).sum(1))
    torch.testing.assert_close(total, counts.sum((1, 2)))
