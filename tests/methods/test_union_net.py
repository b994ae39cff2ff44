import numpy as np
import pytest
import torch
from crowds import built, whole_batch

import annotrace as at
from annotrace.methods.union_net import union_log_likelihood_a, union_log_likelihood_b

N_CLASSES, N_ANNOTATORS = 3, 2


def small_case(variant):
    """A model with random weights, its table, batch and logits."""
    table = at.LabelTable.from_codes([0, 0, 1, 2], [0, 1, 1, 0], [0, 1, 2, 2], n_classes=3)
    model = built("union-net", table, variant=variant)
    model._gold = None
    weight = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(0))
    model.annotator_model_.load_state_dict({"weight": weight})
    logits = torch.tensor([[1.0, 0.2, -1.0], [0.3, 2.0, 0.1], [-0.5, 0.4, 0.9]])
    return model, table, weight.double().numpy(), logits


def softmax(values):
    return np.exp(values) / np.exp(values).sum()


def union(variant, weight, p):
    """The distribution over the labels of all annotators for one item, [annotator, reported]."""
    # The transition matrix of the paper: a row for each annotator and label, a column per class.
    T = np.zeros((N_ANNOTATORS * N_CLASSES, N_CLASSES))
    for r in range(N_ANNOTATORS):
        for j in range(N_CLASSES):
            T[r * N_CLASSES + j] = weight[r, :, j]
    if variant == "A":
        u = softmax(T @ p)
    else:
        u = np.stack([softmax(T[:, i]) for i in range(N_CLASSES)], axis=1) @ p
    return u.reshape(N_ANNOTATORS, N_CLASSES)


@pytest.mark.parametrize("variant", ["A", "B"])
def test_the_loss_is_the_cross_entropy_of_the_union_of_labels(variant):
    model, table, weight, logits = small_case(variant)
    expected = 0.0
    for n in range(3):
        of_item = np.flatnonzero(table.item == n)
        u = union(variant, weight, softmax(logits[n].double().numpy()))
        target = np.zeros_like(u)
        target[table.annotator[of_item], table.label[of_item]] = 1
        if variant == "B":
            target /= target.sum()
        expected -= (target * np.log(u)).sum() / 3
    loss = model._loss(whole_batch(table), logits)
    assert loss.item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("variant", ["A", "B"])
def test_held_out_labels_are_scored_given_who_labels(variant):
    model, table, weight, logits = small_case(variant)
    expected = 0.0
    for n, r, j in zip(table.item, table.annotator, table.label, strict=True):
        u = union(variant, weight, softmax(logits[n].double().numpy()))
        expected -= np.log(u[r, j] / u[r].sum())
    total, n_labels = model._score(whole_batch(table), logits)
    assert (total.item(), n_labels) == (pytest.approx(expected, abs=1e-5), 4)


@pytest.mark.parametrize("function", [union_log_likelihood_a, union_log_likelihood_b])
def test_large_logits_have_finite_values_and_gradients(function):
    logits = torch.tensor([[500.0, 0, -500], [0, 0, 0], [-1e4, 1e4, 0]], requires_grad=True)
    weight = (30 * torch.eye(3)).repeat(2, 1, 1).requires_grad_()
    labels = torch.tensor([[0, 0, 1, 2], [0, 1, 1, 0], [0, 1, 2, 2]])
    value = function(logits, weight, *labels).sum()
    assert torch.isfinite(value)
    assert all(torch.isfinite(part).all() for part in torch.autograd.grad(value, (logits, weight)))


def test_the_union_also_learns_who_labels_which_class():
    """Annotator 0 labels items of class 0 only, and annotator 1 the others."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    X = (4.0 * np.eye(3)[truth] + rng.normal(size=(300, 3))).astype(np.float32)
    table = at.LabelTable.from_codes(np.arange(300), (truth > 0).astype(int), truth)
    model = at.UnionNet(epochs=40, confusion_lr=30.0, random_state=0).fit(X, table)
    weight = model.annotator_model_.weight.detach()
    first = torch.softmax(weight.transpose(0, 1).flatten(1), 1).view(3, 2, 3).sum(2)[:, 0]
    assert first[0] > 0.8
    assert max(first[1:]) < 0.2


@pytest.mark.parametrize("variant", ["A", "B"])
def test_it_learns_digits_from_hammer_spammers(variant):
    train, test = at.data.load_digits().split(600)
    crowd = at.simulate.hammer_spammers(5, 10, 0.6, random_state=0)
    table = at.simulate.simulate_labels(train.y, crowd, labels_per_item=2, random_state=0)
    model = at.UnionNet(variant=variant, random_state=0).fit(train.X, table)
    assert model.score(test.X, test.y) > 0.85
