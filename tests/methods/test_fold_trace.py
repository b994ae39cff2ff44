import numpy as np
import pytest
import torch
import torch.nn.functional as F

import annotrace as at
from annotrace.crowd.confusion import Confusion
from annotrace.methods.fold_trace import LAM, TraceLoss, fits, held_out_losses
from annotrace.training import Batch, Mixture

N_FOLDS, N_ANNOTATORS, N_CLASSES = 3, 2, 4
FOLD = torch.tensor([0, 1, 2, 0, 1])
TABLE = at.LabelTable.from_codes(
    [0, 0, 1, 2, 3, 3, 4], [0, 1, 1, 0, 0, 1, 1], [1, 2, 3, 0, 2, 2, 1], n_classes=N_CLASSES
)


def batch_of(table):
    item = torch.arange(5)
    row, annotator, label = (
        torch.tensor(codes).long() for codes in (table.item, table.annotator, table.label)
    )
    return Batch(torch.zeros(5, 1), item, row, annotator, label)


def random_layer():
    torch.manual_seed(0)
    layer = Confusion(N_FOLDS * N_ANNOTATORS, N_CLASSES, diagonal=0.6)
    layer.weight.data.add_(torch.randn_like(layer.weight))
    return layer, torch.randn(N_FOLDS, 5, N_CLASSES)


def by_hand(layer, logits, gold=()):
    """The loss of each network, from its own matrices and the labels of the other folds."""
    matrices, p = layer.matrices(), logits.softmax(-1)
    total = 0.0
    for k in range(N_FOLDS):
        joint = p[k].clone()
        for item, annotator, label in zip(TABLE.item, TABLE.annotator, TABLE.label, strict=True):
            if FOLD[item] != k:
                joint[item] *= matrices[k * N_ANNOTATORS + annotator, :, label]
        total += -joint.sum(1).log().sum() / 5
        own = matrices[k * N_ANNOTATORS : (k + 1) * N_ANNOTATORS]
        total += LAM * own.diagonal(dim1=1, dim2=2).sum(1).mean()
        for item, label in gold:
            total += -p[k, item, label].log() / 5 if FOLD[item] != k else 0.0
    return total


def test_the_loss_is_that_of_networks_with_matrices_of_their_own():
    layer, logits = random_layer()
    loss = TraceLoss(TABLE, FOLD, layer, None)(batch_of(TABLE), logits)
    torch.testing.assert_close(loss, by_hand(layer, logits))


def test_gold_items_teach_the_networks_of_other_folds():
    layer, logits = random_layer()
    gold = torch.tensor([-1, 2, -1, -1, 0])
    loss = TraceLoss(TABLE, FOLD, layer, gold)(batch_of(TABLE), logits)
    torch.testing.assert_close(loss, by_hand(layer, logits, [(1, 2), (4, 0)]))


def test_no_network_learns_from_the_labels_of_its_fold():
    layer, logits = random_layer()
    judged = FOLD[torch.tensor(TABLE.item).long()] == 2
    swapped = torch.where(
        judged, (torch.tensor(TABLE.label) + 1) % N_CLASSES, torch.tensor(TABLE.label)
    )
    other = at.LabelTable.from_codes(TABLE.item, TABLE.annotator, swapped, n_classes=N_CLASSES)
    grads = []
    for table in (TABLE, other):
        leaf = logits.clone().requires_grad_()
        TraceLoss(table, FOLD, layer, None)(batch_of(table), leaf).backward()
        grads.append(leaf.grad)
    torch.testing.assert_close(grads[0][2], grads[1][2], rtol=0, atol=0)
    assert not torch.allclose(grads[0][0], grads[1][0])


def test_networks_are_judged_by_labels_that_they_have_not_learned_from():
    logits = torch.randn(5, N_CLASSES, generator=torch.Generator().manual_seed(1)).double()
    matrices = torch.rand(N_FOLDS, N_ANNOTATORS, N_CLASSES, N_CLASSES).double()
    p = F.softmax(logits, 1)
    losses: list[list[float]] = [[] for _ in range(N_FOLDS)]
    for item, annotator, label in zip(TABLE.item, TABLE.annotator, TABLE.label, strict=True):
        network = int(FOLD[item])
        likely = (p[item] * matrices[network, annotator, :, label]).sum()
        losses[network].append(-float(likely.log()))
    expected = [np.mean(own) for own in losses]
    found = held_out_losses(TABLE, FOLD.numpy(), logits, matrices)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(("n_classes", "expected"), [(4, True), (3000, False)])
def test_matrices_that_would_be_large_are_not_learned(n_classes, expected):
    table = at.LabelTable.from_codes([0, 1], [0, 1], [0, 1], n_classes=n_classes)
    assert fits(table, N_FOLDS) is expected


@pytest.mark.parametrize("gold", [None, torch.tensor([-1, 2, -1, -1, 0])])
def test_the_loss_of_a_mixture_is_the_mean_of_both_items_by_their_weights(gold):
    layer, logits = random_layer()
    loss, batch = TraceLoss(TABLE, FOLD, layer, gold), batch_of(TABLE)
    mixture = Mixture(torch.tensor(0.3), torch.tensor([3, 4, 0, 1, 2]))
    expected = 0.3 * loss(batch, logits) + 0.7 * loss(mixture.partners(batch), logits)
    torch.testing.assert_close(loss.mixed(batch, logits, mixture), expected)
