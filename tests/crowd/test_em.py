import numpy as np
import pytest
import torch
from batches import random_labels, random_layer
from references import brute_force_posterior, random_table

from annotrace.crowd import FixedMatrices, LabelIndex, expected_counts, posterior
from annotrace.crowd.em import (
    clamp_posterior,
    clamp_to_gold,
    item_log_likelihood,
    matrices_from_counts,
    normalize_joint,
)
from annotrace.labels import LabelTable


def test_the_posterior_is_bayes_rule():
    rng = np.random.default_rng(6)
    layer = random_layer(rng)
    row, annotator, label = random_labels(rng, 6, 5, 4)
    log_p = torch.log_softmax(torch.from_numpy(rng.normal(size=(6, 4))), dim=1)
    likelihood = layer.item_log_likelihood(LabelIndex(row, annotator, label, 6, 5, 4))
    ours = posterior(log_p, likelihood.detach()).numpy()
    expected = log_p.exp().numpy()
    for k, r, j in zip(row, annotator, label, strict=True):
        expected[k] *= layer.matrices()[r, :, j].numpy()
    np.testing.assert_allclose(ours, expected / expected.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("seed", range(3))
def test_posterior_and_evidence_equal_the_sum_over_all_assignments(seed):
    rng = np.random.default_rng(seed)
    item, annotator, label, _ = random_table(rng, 6, 3, 3, labels_each=3)
    confusion, prior = rng.dirichlet(np.ones(3), (3, 3)), rng.dirichlet(np.ones(3))
    table = LabelTable.from_codes(item, annotator, label, n_classes=3)
    likelihood = item_log_likelihood(FixedMatrices(torch.from_numpy(confusion)), table)
    log_prior = torch.from_numpy(np.log(prior))
    expected, log_evidence = brute_force_posterior(item, annotator, label, confusion, prior, 6)
    found = posterior(log_prior, torch.from_numpy(likelihood))
    np.testing.assert_allclose(found, expected, atol=1e-10)
    joint, by_item = normalize_joint(log_prior + torch.from_numpy(likelihood))
    np.testing.assert_allclose(joint, expected, atol=1e-10)
    assert float(by_item.sum()) == pytest.approx(log_evidence, abs=1e-10)


def test_the_arguments_of_the_posterior_are_left_alone():
    log_prior, likelihood = torch.randn(3, 2), torch.randn(3, 2)
    before = log_prior.clone(), likelihood.clone()
    posterior(log_prior, likelihood)
    torch.testing.assert_close((log_prior, likelihood), before)


def test_counts_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    item, annotator, label, _ = random_table(rng)
    table = LabelTable.from_codes(item, annotator, label)
    weights = rng.dirichlet(np.ones(3), 30)
    expected = np.zeros((6, 3, 3))
    for i, r, j in zip(item, annotator, label, strict=True):
        expected[r, :, j] += weights[i]
    for labels in (table, LabelIndex.from_table(table)):
        np.testing.assert_allclose(expected_counts(weights, labels), expected)
    np.testing.assert_allclose(expected.sum((1, 2)), table.labels_per_annotator())


@pytest.mark.parametrize("n_states", [3, 6])
def test_gold_items_keep_the_states_of_their_class(n_states):
    log_joint = torch.randn(4, n_states, dtype=torch.float64)
    clamped = clamp_to_gold(log_joint.clone(), np.array([-1, 2, -1, 0], np.int32), 3)
    of_class = np.arange(n_states) % 3
    for row, gold in ((1, 2), (3, 0)):
        np.testing.assert_array_equal(clamped[row].isfinite(), of_class == gold)
    torch.testing.assert_close(clamped[[0, 2]], log_joint[[0, 2]])
    found = normalize_joint(clamped)[0].view(4, -1, 3).sum(1)
    np.testing.assert_allclose(found[[1, 3]], np.eye(3)[[2, 0]])


def test_the_posterior_of_gold_items_is_certain():
    given = np.full((3, 2), 0.5)
    clamped = clamp_posterior(given, np.array([1, -1, 0]))
    np.testing.assert_array_equal(clamped, [[0, 1], [0.5, 0.5], [1, 0]])
    np.testing.assert_array_equal(given, 0.5)
    assert clamp_posterior(given, np.full(3, -1)) is given


def test_counts_become_matrices():
    counts = torch.tensor([[[8.0, 2.0], [1.0, 4.0]], [[0.0, 0.0], [3.0, 0.0]]])
    expected = [[[8.5 / 11, 2.5 / 11], [1.5 / 6, 4.5 / 6]], [[0.5, 0.5], [3.5 / 4, 0.5 / 4]]]
    np.testing.assert_allclose(matrices_from_counts(counts.double(), 0.5), expected)
    np.testing.assert_allclose(matrices_from_counts(counts)[0], [[0.8, 0.2], [0.2, 0.8]])
    pool = torch.tensor([[1.0, 1.0], [0.0, 2.0]])
    np.testing.assert_allclose(matrices_from_counts(counts, pool)[1], [[0.5, 0.5], [0.6, 0.4]])
