import re
from functools import partial

import numpy as np
import pytest
import torch
from batches import PARAMETRIZATIONS, frequency_of, gradients, random_labels, random_layer

from annotrace.crowd import (
    AnnotatorModel,
    Confusion,
    FixedMatrices,
    crowd_nll,
    joint_nll,
    label_log_likelihood,
    trace_regularized_nll,
)
from annotrace.crowd.losses import cross_entropy
from annotrace.errors import InputError


def listing(labels, logits, confusion_matrices):
    """The paper's `cross_entropy_over_annotators`, line by line, in float64."""
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    preds_true = exp / exp.sum(axis=1, keepdims=True)
    losses = []
    for annotator in range(labels.shape[1]):
        preds = np.clip(preds_true @ confusion_matrices[annotator], 1e-10, 0.9999999)
        losses.append(np.sum(-labels[:, annotator] * np.log(preds), axis=-1))
    has_labels = labels.sum(axis=2)
    return np.mean(np.sum(np.stack(losses, axis=1) * has_labels, axis=1))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_papers_listing(seed, parametrization, sparse):
    rng = np.random.default_rng(seed)
    layer = random_layer(rng, parametrization=parametrization, sparse=sparse)
    logits = rng.normal(0, 3, (20, 4))
    row, annotator, label = random_labels(rng, 20, 5, 4)
    one_hot = np.zeros((20, 5, 4))
    one_hot[row, annotator, label] = 1
    expected = listing(one_hot, logits, layer.matrices().numpy())
    loss = crowd_nll(torch.from_numpy(logits), layer, row, annotator, label)
    assert loss.item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_gradients_are_those_of_finite_differences(parametrization):
    rng = np.random.default_rng(0)
    layer = random_layer(rng, parametrization=parametrization)
    labels = random_labels(rng, 6, 5, 4)
    logits = torch.from_numpy(rng.normal(size=(6, 4))).requires_grad_()

    def loss(logits, weight):
        layer._parameters["weight"] = weight
        return (
            crowd_nll(logits, layer, *labels),
            trace_regularized_nll(logits, layer, *labels, 0.3),
            trace_regularized_nll(logits, layer, *labels, 0.3, joint=True),
        )

    assert torch.autograd.gradcheck(loss, (logits, layer.weight))


def matrices_of_kind(kind, n_annotators, n_classes):
    eye = torch.eye(n_classes, dtype=torch.float64)
    if kind == "identity":
        return 6 * eye - 5
    if kind == "uniform":
        return 0 * eye
    if kind == "permuted":
        return 6 * eye.roll(1, 0) - 5
    if kind == "one class":
        return 12 * eye[:1].expand(n_classes, -1) - 8
    return 80 * eye - 75  # so near the identity that float32 cannot tell


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
@pytest.mark.parametrize("kind", ["identity", "uniform", "permuted", "one class", "extreme"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("gap", [0, 1, 10, 50, 90, 200, 500])
def test_half_and_single_precision_equal_double(gap, dtype, kind, parametrization, sparse):
    rng = np.random.default_rng(gap)
    n_rows, n_annotators, n_classes = 8, 3, 4
    labels = random_labels(rng, n_rows, n_annotators, n_classes, missing=0.1)
    stored = torch.from_numpy(rng.normal(size=(n_rows, n_classes)))
    stored[torch.arange(n_rows), torch.arange(n_rows) % n_classes] += gap
    stored = stored.to(dtype)
    start = matrices_of_kind(kind, n_annotators, n_classes).to(dtype)
    results = []
    for precision in (dtype, torch.float64):
        layer = Confusion(n_annotators, n_classes, parametrization=parametrization, sparse=sparse)
        layer.to(precision).weight.data.copy_(start)
        logits = stored.to(precision).requires_grad_()
        loss = crowd_nll(logits, layer, *labels)
        results.append([loss.detach(), *gradients(loss, logits, layer.weight)])
    (loss, *grads), (exact_loss, *exact_grads) = results
    single = torch.finfo(torch.float32).eps
    torch.testing.assert_close(loss.double(), exact_loss, rtol=8 * single, atol=8 * single)
    for grad, exact in zip(grads, exact_grads, strict=True):
        assert grad.dtype == dtype
        # A sparse gradient is rounded label by label, before opposite terms cancel.
        by_label = torch.finfo(dtype).eps * exact.abs().max() if sparse else 0
        torch.testing.assert_close(
            grad.double(),
            exact,
            rtol=4 * torch.finfo(dtype).eps,
            atol=16 * single + by_label,
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_label_that_contradicts_a_certain_network_still_has_a_gradient(dtype):
    layer = Confusion(1, 2).to(dtype)
    logits = torch.tensor([[500.0, 0.0]], dtype=dtype, requires_grad=True)
    zero, one = torch.tensor([0]), torch.tensor([1])
    crowd_nll(logits, layer, zero, zero, one).backward()
    assert layer.weight.grad[0, 0, 1] < -0.1


def test_rows_without_labels_count_in_the_divisor():
    layer = Confusion(1, 2)
    zero = torch.tensor([0])
    alone = crowd_nll(torch.zeros(1, 2), layer, zero, zero, zero)
    among_four = crowd_nll(torch.zeros(4, 2), layer, zero, zero, zero)
    assert among_four.item() == pytest.approx(alone.item() / 4)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_batch_without_labels_costs_nothing(sparse):
    layer = Confusion(3, 2, sparse=sparse)
    logits = torch.zeros(4, 2, requires_grad=True)
    none = torch.zeros(0, dtype=torch.long)
    loss = crowd_nll(logits, layer, none, none, none)
    loss.backward()
    assert loss.item() == 0
    assert not layer.weight.grad.to_dense().any()
    assert not logits.grad.any()


@pytest.mark.parametrize("sparse", [False, True])
def test_labels_taken_together_have_the_likelihood_of_the_row(sparse):
    rng = np.random.default_rng(5)
    row, annotator, label = random_labels(rng, 12, 5, 4)
    frequency = frequency_of(annotator, 5, 12)
    layer = random_layer(rng, sparse=sparse, frequency=frequency)
    logits = torch.from_numpy(rng.normal(size=(12, 4)))
    probabilities, matrices = torch.softmax(logits, 1).numpy(), layer.matrices().numpy()
    for each in zip(row, annotator, label, strict=True):
        probabilities[each[0]] *= matrices[each[1], :, each[2]]
    expected = -np.log(probabilities.sum(1)).mean()
    loss = trace_regularized_nll(logits, layer, row, annotator, label, lam=0.0, joint=True)
    assert loss.item() == pytest.approx(expected, abs=1e-10)


def test_one_label_per_row_is_the_same_alone_and_together():
    rng = np.random.default_rng(6)
    row = torch.arange(8)
    annotator, label = (torch.from_numpy(rng.integers(4, size=8)) for _ in range(2))
    layer, logits = random_layer(rng), torch.from_numpy(rng.normal(size=(8, 4)))
    apart, together = (
        trace_regularized_nll(logits, layer, row, annotator, label, 0.1, joint=joint)
        for joint in (False, True)
    )
    torch.testing.assert_close(apart, together)
    torch.testing.assert_close(gradients(apart, layer.weight), gradients(together, layer.weight))


def test_a_second_derivative_raises_rather_than_being_wrong():
    rng = np.random.default_rng(5)
    layer = random_layer(rng)
    logits = torch.zeros(6, 4, dtype=torch.float64, requires_grad=True)
    loss = crowd_nll(logits, layer, *random_labels(rng, 6, 5, 4))
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad(loss, logits, create_graph=True)


def test_the_likelihood_of_a_label_is_a_sum_over_the_true_classes():
    rng = np.random.default_rng(7)
    layer = random_layer(rng)
    logits = torch.from_numpy(rng.normal(size=(6, 4)))
    row, annotator, label = random_labels(rng, 6, 5, 4)
    by_label = label_log_likelihood(logits, layer, row, annotator, label)
    p = torch.softmax(logits, dim=1)
    expected = [
        (p[k] * layer.matrices()[r, :, j]).sum().log()
        for k, r, j in zip(row, annotator, label, strict=True)
    ]
    torch.testing.assert_close(by_label, torch.stack(expected))


LABELS = (torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), torch.tensor([2, 1, 0]))


@pytest.mark.parametrize("joint", [False, True])
def test_indices_may_be_of_32_bits(joint):
    layer = Confusion(2, 3)
    logits = torch.randn(2, 3)
    losses = [
        trace_regularized_nll(logits, layer, *parts, lam=0.1, joint=joint)
        for parts in (LABELS, [part.int() for part in LABELS])
    ]
    assert torch.equal(*losses)
    losses[1].backward()


@pytest.mark.parametrize("loss", [crowd_nll, joint_nll, partial(trace_regularized_nll, lam=0.01)])
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"label": torch.tensor([2, 1, -1])}, "label to be 0 or more, but got -1. Leave"),
        ({"annotator": torch.tensor([0, -2, 1])}, "annotator to be 0 or more, but got -2"),
        ({"row": torch.tensor([0, 1])}, "the shapes (2,), (3,) and (3,)"),
        ({"label": torch.tensor([2, 1])}, "the shapes (3,), (3,) and (2,)"),
        ({"logits": torch.zeros(2, 1)}, "logits of shape (n_rows, 3), but got (2, 1)"),
        ({"logits": torch.zeros(3)}, "logits of shape (n_rows, 3), but got (3,)"),
        ({"logits": torch.zeros(0, 3)}, "at least one row, but got the shape (0, 3)"),
        ({"row": LABELS[0].byte()}, "row to be of int64 or int32, but got torch.uint8"),
        ({"annotator": LABELS[1].byte()}, "annotator to be of int64 or int32, but got torch.uint8"),
        ({"label": LABELS[2].float()}, "label to be of int64 or int32, but got torch.float32"),
        ({"label": LABELS[2] > 0}, "label to be of int64 or int32, but got torch.bool"),
    ],
)
def test_labels_that_torch_would_misread_are_rejected(loss, changed, said):
    given = dict(zip(("row", "annotator", "label"), LABELS, strict=True))
    given |= {"logits": torch.zeros(2, 3), "model": Confusion(2, 3), **changed}
    with pytest.raises(InputError, match=re.escape(said)):
        loss(**given)


class ByItem(AnnotatorModel):
    """One matrix per item, whoever labels it."""

    def __init__(self, matrices):
        super().__init__()
        self.n_annotators, self.n_classes = 1, matrices.shape[1]
        self.by_item = matrices

    def log_likelihood(self, annotator, label, item=None):
        return self.by_item[item, :, label].log()

    def matrices(self, annotators=None, items=None):
        return self.by_item.mean(0, keepdim=True)


@pytest.mark.parametrize("loss", [crowd_nll, joint_nll])
def test_errors_may_depend_on_the_item(loss):
    rng = np.random.default_rng(10)
    matrices = torch.from_numpy(rng.dirichlet(np.ones(3), (9, 3)))
    row, item, label = torch.tensor([0, 1]), torch.tensor([7, 4]), torch.tensor([2, 1])
    logits = torch.from_numpy(rng.normal(size=(2, 3)))
    p = torch.softmax(logits, 1)
    expected = -sum((p[k] * matrices[item[k], :, label[k]]).sum().log() for k in range(2)) / 2
    found = loss(logits, ByItem(matrices), row, torch.zeros_like(row), label, item)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("joint", [False, True])
def test_a_model_of_another_structure_has_the_same_loss(joint):
    rng = np.random.default_rng(11)
    layer, labels = random_layer(rng), random_labels(rng, 12, 5, 4)
    logits = torch.from_numpy(rng.normal(size=(12, 4)))
    fixed = FixedMatrices(layer.matrices())
    ours, theirs = (
        trace_regularized_nll(logits, model, *labels, 0.2, joint=joint).detach()
        for model in (layer, fixed)
    )
    torch.testing.assert_close(ours, theirs)


def test_cross_entropy_of_soft_targets():
    torch.manual_seed(0)
    logits, targets = torch.randn(2, 5, 3), torch.rand(5, 3).softmax(1)
    p = torch.softmax(logits, 2).numpy()
    expected = -(targets.numpy() * np.log(p)).sum(2)
    np.testing.assert_allclose(cross_entropy(logits, targets), expected, rtol=1e-5)
