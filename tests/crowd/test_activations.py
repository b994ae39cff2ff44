import numpy as np
import pytest
import torch

from annotrace.crowd import Confusion, label_log_likelihood
from annotrace.crowd.activations import (
    activation_log_likelihood,
    activations,
    diagonal_of_identity,
    union_activations,
)

ROW, ANNOTATOR, LABEL = torch.tensor([[0, 0, 1, 3, 3], [0, 2, 1, 4, 4], [1, 0, 2, 2, 0]])


def case(n_annotators=5, n_classes=3, n_rows=4):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(n_rows, n_classes, generator=generator, dtype=torch.float64)
    size = (n_annotators, n_classes, n_classes)
    return logits, torch.randn(size, generator=generator, dtype=torch.float64)


def expected_log_likelihoods(logits, weight):
    """log softmax(p W)[label] of each label, by loops."""
    p = np.exp(logits.numpy())
    p /= p.sum(1, keepdims=True)
    values = []
    for n, r, j in zip(ROW.tolist(), ANNOTATOR.tolist(), LABEL.tolist(), strict=True):
        sums = [sum(p[n, i] * weight[r, i, k].item() for i in range(3)) for k in range(3)]
        values.append(np.log(np.exp(sums[j]) / np.exp(sums).sum()))
    return values


# Of all annotators at once, and of those of the labels.
@pytest.mark.parametrize("n_annotators", [5, 500])
def test_labels_have_the_log_softmax_of_the_weighted_probabilities(n_annotators):
    logits, weight = case(n_annotators)
    actual = activation_log_likelihood(logits, weight, ROW, ANNOTATOR, LABEL)
    np.testing.assert_allclose(actual, expected_log_likelihoods(logits, weight), atol=1e-12)


def test_both_ways_to_compute_activations_have_the_same_gradient():
    logits, weight = case(500)
    gradients = []
    for way in ("few", "all"):
        p, w = logits.softmax(1).requires_grad_(), weight.clone().requires_grad_()
        every = union_activations(p, w).view(4, 500, 3)[ROW, ANNOTATOR]
        found = activations(p, w, ROW, ANNOTATOR) if way == "few" else every
        gradients.append(torch.autograd.grad(found.square().sum(), (p, w)))
    for few, every in zip(*gradients, strict=True):
        torch.testing.assert_close(few, every)


def test_for_a_certain_class_it_is_a_confusion_with_the_same_weights():
    _, weight = case()
    layer = Confusion(5, 3, parametrization="softmax").double()
    layer.load_state_dict({"weight": weight})
    certain = 500.0 * torch.eye(3, dtype=torch.float64)[[0, 1, 2, 2]]
    torch.testing.assert_close(
        activation_log_likelihood(certain, weight, ROW, ANNOTATOR, LABEL),
        label_log_likelihood(certain, layer, ROW, ANNOTATOR, LABEL),
    )


@pytest.mark.parametrize("n_annotators", [5, 500])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_logits_and_weights_have_finite_values_and_gradients(n_annotators, dtype):
    logits = torch.tensor([[500.0, 0, -500], [0, 0, 0], [90, 0, 0], [-1e4, 1e4, 0]], dtype=dtype)
    weight = (300 * case(n_annotators)[1].float()).requires_grad_()
    logits.requires_grad_()
    value = activation_log_likelihood(logits, weight, ROW, ANNOTATOR, LABEL).sum()
    assert torch.isfinite(value)
    assert all(torch.isfinite(g).all() for g in torch.autograd.grad(value, (logits, weight)))


def test_half_precision_of_the_network_does_not_reach_the_labels():
    logits, weight = (part.float() for part in case())
    expected = activation_log_likelihood(logits, weight, ROW, ANNOTATOR, LABEL)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = activation_log_likelihood(logits, weight, ROW, ANNOTATOR, LABEL)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_confusion_can_start_with_a_multiple_of_the_identity(scale):
    diagonal = diagonal_of_identity(4, scale)
    layer = Confusion(2, 4, parametrization="softmax", diagonal=diagonal)
    torch.testing.assert_close(layer.weight.data, (scale * torch.eye(4)).repeat(2, 1, 1))
