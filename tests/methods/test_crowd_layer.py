import numpy as np
import pytest
import torch
from crowds import blobs, built, whole_batch

import annotrace as at


def loss_by_loops(table, weight, p):
    """The paper's cross-entropy: summed over labels, mean over items."""
    loss = 0.0
    for n, r, j in zip(table.item, table.annotator, table.label, strict=True):
        cells = np.exp([sum(p[n, i] * weight[r, i, k] for i in range(3)) for k in range(3)])
        loss -= np.log(cells[j] / cells.sum())
    return loss / len(p)


def test_the_loss_is_the_cross_entropy_of_the_softmax_of_activations():
    table = at.LabelTable.from_codes([0, 0, 1, 2], [0, 1, 1, 0], [0, 1, 2, 2], n_classes=3)
    model = built("crowd-layer", table)
    model._gold = None
    weight = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(0))
    model.annotator_model_.load_state_dict({"weight": weight})
    logits = torch.tensor([[1.0, 0.2, -1.0], [0.3, 2.0, 0.1], [-0.5, 0.4, 0.9]])
    expected = loss_by_loops(table, weight.numpy(), torch.softmax(logits, 1).numpy())
    assert model._loss(whole_batch(table), logits).item() == pytest.approx(expected, abs=1e-5)
    total, n_labels = model._score(whole_batch(table), logits)
    assert (total.item() / 3, n_labels) == (pytest.approx(expected, abs=1e-5), 4)


def test_weights_start_as_the_identity():
    table = at.LabelTable.from_codes([0, 0, 1, 2], [0, 1, 1, 0], [0, 1, 2, 2], n_classes=3)
    model = built("crowd-layer", table).annotator_model_
    torch.testing.assert_close(model.weight.data, torch.eye(3).repeat(2, 1, 1))
    assert model.lr_scale == 1


@pytest.mark.parametrize(("labels_per_item", "at_least"), [(1, 0.75), (3, 0.85)])
def test_it_learns_digits_from_hammer_spammers(labels_per_item, at_least):
    train, test = at.data.load_digits().split(600)
    crowd = at.simulate.hammer_spammers(5, 10, 0.6, random_state=0)
    table = at.simulate.simulate_labels(
        train.y, crowd, labels_per_item=labels_per_item, random_state=0
    )
    model = at.CrowdLayer(random_state=0).fit(train.X, table)
    assert model.score(test.X, test.y) > at_least


def test_it_tells_an_annotator_who_swaps_two_classes():
    X, truth, _, _ = blobs(n_items=600)
    crowd = np.stack([np.eye(3), np.eye(3), np.eye(3)[[1, 0, 2]]])
    table = at.simulate.simulate_labels(truth, crowd, random_state=0)
    model = at.CrowdLayer(epochs=60, confusion_lr=30.0, random_state=0).fit(X, table)
    assert model.confusion_.argmax(2).tolist() == [[0, 1, 2], [0, 1, 2], [1, 0, 2]]
    assert np.mean(model.posterior_.argmax(1) == truth) > 0.98


def test_a_warm_start_keeps_the_matrices():
    X, _, table, _ = blobs()
    model = at.CrowdLayer(epochs=20, lr=1e-2, random_state=0, warm_start=True).fit(X, table)
    before = model.confusion_
    model.set_params(epochs=1, lr=1e-6).fit(X, table)
    np.testing.assert_allclose(model.confusion_, before, atol=1e-3)
