from dataclasses import replace

import numpy as np
import pytest
import torch
from crowds import blobs, whole_batch
from torch import nn

from annotrace.data import ArraySource
from annotrace.methods.distillation import distillation_loss
from annotrace.training import CrowdData, Randomness


def learner(seed=0):
    """A linear network, a posterior, and the loss of a batch for a strength of mixup."""
    X, _, table, _ = blobs(n_items=30)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Identity(), nn.Linear(2, 3))
    posterior = np.random.default_rng(0).dirichlet(np.ones(3), 30)
    device = torch.device("cpu")
    data = CrowdData(ArraySource(X), table, device, Randomness(seed, device))
    batch = whole_batch(table, torch.from_numpy(X))

    def loss(mixup, batch=batch):
        objective = distillation_loss(network, torch.from_numpy(posterior), mixup, data)
        return float(objective(batch).detach())

    return loss, network, posterior, batch


def cross_entropy_by_numpy(network, rows, targets):
    with torch.no_grad():
        logits = network(rows).double().numpy()
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    return -(targets * log_p).sum(1).mean()


def test_without_mixup_it_is_the_cross_entropy_of_the_posterior():
    loss, network, posterior, batch = learner()
    expected = cross_entropy_by_numpy(network, batch.inputs, posterior)
    assert loss(0.0) == pytest.approx(expected, rel=1e-5)


def test_rows_and_targets_of_mixtures_have_the_same_weight():
    # Two items, so each is the partner of the other: the loss is a function of one weight.
    loss, network, posterior, batch = learner()
    pair = replace(batch, inputs=batch.inputs[:2], item=torch.arange(2))
    weights = np.linspace(0, 1, 2001)[:, None, None]
    rows = weights * pair.inputs.numpy() + (1 - weights) * pair.inputs.numpy()[::-1]
    targets = weights * posterior[:2] + (1 - weights) * posterior[1::-1]
    possible = [
        cross_entropy_by_numpy(network, torch.from_numpy(each.astype("f4")), target)
        for each, target in zip(rows, targets, strict=True)
    ]
    found = [loss(1.0, pair) for _ in range(20)]
    assert np.ptp(found) > 0.1 * np.ptp(possible)
    assert max(np.abs(np.array(possible) - each).min() for each in found) < 1e-3
