import re
from functools import partial

import numpy as np
import pytest
import torch

from annotrace.errors import InputError
from annotrace.models import (
    Confusion,
    crowd_nll,
    label_log_likelihood,
    posterior,
    trace_regularized_nll,
)

PARAMETRIZATIONS = ("softplus", "softmax")


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


def random_labels(rng, n_rows, n_annotators, n_classes, missing=0.6):
    """Who said what of which row, as triplets; some rows have no label."""
    row, annotator = np.nonzero(rng.random((n_rows, n_annotators)) > missing)
    label = rng.integers(n_classes, size=len(row))
    return tuple(torch.from_numpy(part) for part in (row, annotator, label))


def random_layer(rng, n_annotators=5, n_classes=4, dtype=torch.float64, **options):
    layer = Confusion(n_annotators, n_classes, **options).to(dtype)
    weight = torch.from_numpy(rng.normal(0, 2, (n_annotators, n_classes, n_classes)))
    layer.weight.data.copy_(weight)
    return layer


def frequency_of(annotator, n_annotators, n_rows):
    return torch.bincount(annotator, minlength=n_annotators) / n_rows


def gradients(loss, *inputs):
    return [
        grad.to_dense() if grad.is_sparse else grad for grad in torch.autograd.grad(loss, inputs)
    ]


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


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("lam", [0.0, 0.5])
@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_a_sparse_layer_agrees_with_a_dense_one(parametrization, lam, joint):
    rng = np.random.default_rng(1)
    n_rows = 12
    row, annotator, label = random_labels(rng, n_rows, 5, 4, missing=0.3)
    # Each annotator labels once, so that the batch's estimate of the mean trace has no error.
    once = torch.from_numpy(np.unique(annotator.numpy(), return_index=True)[1])
    row, annotator, label = row[once], annotator[once], label[once]
    frequency = frequency_of(annotator, 5, n_rows)
    dense = random_layer(rng, parametrization=parametrization)
    sparse = Confusion(
        5, 4, parametrization=parametrization, sparse=True, frequency=frequency
    ).double()
    sparse.load_state_dict(dense.state_dict())
    logits = torch.from_numpy(rng.normal(size=(n_rows, 4))).requires_grad_()
    ours, theirs = (
        trace_regularized_nll(logits, layer, row, annotator, label, lam, joint=joint)
        for layer in (sparse, dense)
    )
    assert torch.autograd.grad(ours, sparse.weight, retain_graph=True)[0].is_sparse
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        gradients(ours, logits, sparse.weight), gradients(theirs, logits, dense.weight)
    )


def test_a_sparse_layer_adds_up_the_labels_of_an_annotator():
    rng = np.random.default_rng(2)
    labels = random_labels(rng, 12, 5, 4, missing=0.2)
    dense = random_layer(rng)
    sparse = Confusion(5, 4, sparse=True).double()
    sparse.load_state_dict(dense.state_dict())
    logits = torch.from_numpy(rng.normal(size=(12, 4)))
    ours, theirs = (crowd_nll(logits, layer, *labels) for layer in (sparse, dense))
    torch.testing.assert_close(gradients(ours, sparse.weight), gradients(theirs, dense.weight))


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
        # A sparse gradient is rounded a label at a time, before opposite ones cancel.
        by_label = torch.finfo(dtype).eps * exact.abs().max() if sparse else 0
        torch.testing.assert_close(
            grad.double(),
            exact,
            rtol=4 * torch.finfo(dtype).eps,
            atol=16 * single + by_label,
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_label_that_contradicts_a_certain_network_still_teaches(dtype):
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
@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_the_papers_loss_is_the_likelihood_plus_the_trace(parametrization, sparse):
    rng = np.random.default_rng(3)
    row, annotator, label = random_labels(rng, 12, 5, 4)
    frequency = frequency_of(annotator, 5, 12)
    layer = random_layer(rng, parametrization=parametrization, sparse=sparse, frequency=frequency)
    logits = torch.from_numpy(rng.normal(size=(12, 4))).requires_grad_()
    trace = layer.mean_trace(annotator, 12) if sparse else layer.mean_trace()
    apart = crowd_nll(logits, layer, row, annotator, label) + 0.2 * trace
    together = trace_regularized_nll(logits, layer, row, annotator, label, lam=0.2)
    torch.testing.assert_close(together, apart)
    torch.testing.assert_close(
        gradients(together, logits, layer.weight), gradients(apart, logits, layer.weight)
    )


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


def test_one_label_a_row_is_the_same_alone_and_together():
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


@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_the_gradient_by_matrices_is_the_table_of_expected_counts(parametrization):
    rng = np.random.default_rng(8)
    layer = random_layer(rng, parametrization=parametrization)
    row, annotator, label = random_labels(rng, 6, 5, 4)
    logits = torch.from_numpy(rng.normal(size=(6, 4)))
    log_matrices = layer.log_matrices().detach().requires_grad_()
    layer.log_matrices = lambda: log_matrices
    trace_regularized_nll(logits, layer, row, annotator, label, lam=0.0).backward()
    counts = np.zeros((5, 4, 4))
    p, matrices = torch.softmax(logits, dim=1).numpy(), layer.matrices().numpy()
    for k, r, j in zip(row, annotator, label, strict=True):
        joint = p[k] * matrices[r, :, j]
        counts[r, :, j] += joint / joint.sum()
    np.testing.assert_allclose(-6 * log_matrices.grad.numpy(), counts, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("gap", [0, 90, 500])
@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_a_gpu_gives_what_a_cpu_gives(parametrization, gap):
    rng = np.random.default_rng(9)
    layer = random_layer(rng, parametrization=parametrization)
    labels = random_labels(rng, 12, 5, 4)
    logits = torch.from_numpy(rng.normal(size=(12, 4)))
    logits[torch.arange(12), torch.arange(12) % 4] += gap
    results = []
    for device in ("cpu", "cuda"):
        x, on_device = logits.to(device).requires_grad_(), layer.to(device)
        there = [part.to(device) for part in labels]
        loss = trace_regularized_nll(x, on_device, *there, lam=0.3)
        grads = gradients(loss, x, on_device.weight)
        results.append([part.detach().cpu() for part in (loss, *grads)])
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("sparse", [False, True])
def test_logits_and_matrices_may_differ_in_precision(sparse):
    rng = np.random.default_rng(4)
    row, annotator, label = random_labels(rng, 6, 5, 4)
    frequency = frequency_of(annotator, 5, 6).double()
    layer = random_layer(rng, dtype=torch.float32, sparse=sparse, frequency=frequency)
    for dtype in (torch.bfloat16, torch.float64):
        logits = torch.zeros(6, 4, dtype=dtype, requires_grad=True)
        loss = trace_regularized_nll(logits, layer, row, annotator, label, lam=0.1)
        for grad, wanted in zip(
            gradients(loss, logits, layer.weight), (dtype, torch.float32), strict=True
        ):
            assert grad.dtype == wanted


def test_a_second_derivative_is_refused_rather_than_wrong():
    rng = np.random.default_rng(5)
    layer = random_layer(rng)
    logits = torch.zeros(6, 4, dtype=torch.float64, requires_grad=True)
    loss = crowd_nll(logits, layer, *random_labels(rng, 6, 5, 4))
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad(loss, logits, create_graph=True)


@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_a_sparse_layer_refuses_second_derivatives_too(parametrization):
    rng = np.random.default_rng(5)
    row, annotator, label = random_labels(rng, 6, 5, 4)
    frequency = frequency_of(annotator, 5, 6)
    layer = random_layer(rng, parametrization=parametrization, sparse=True, frequency=frequency)
    logits = torch.zeros(6, 4, dtype=torch.float64)
    joint = trace_regularized_nll(logits, layer, row, annotator, label, lam=0.1, joint=True)
    for value in (joint, layer.mean_trace(annotator, 6)):
        with pytest.raises(NotImplementedError, match="second derivatives"):
            torch.autograd.grad(value, layer.weight, create_graph=True)


def test_the_posterior_is_bayes_rule():
    rng = np.random.default_rng(6)
    layer = random_layer(rng)
    row, annotator, label = random_labels(rng, 6, 5, 4)
    log_p = torch.log_softmax(torch.from_numpy(rng.normal(size=(6, 4))), dim=1)
    ours = posterior(log_p, layer.log_columns(annotator, label), row).detach().numpy()
    expected = log_p.exp().numpy()
    for k, r, j in zip(row, annotator, label, strict=True):
        expected[k] *= layer.matrices()[r, :, j].numpy()
    np.testing.assert_allclose(ours, expected / expected.sum(axis=1, keepdims=True))
    with pytest.raises(
        InputError, match=r"`log_columns` to be of shape \(\d+, 4\), one row a label"
    ):
        posterior(log_p, layer.log_columns(annotator, label)[:, :1], row)


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
def test_whole_numbers_may_be_of_32_bits(joint):
    layer = Confusion(2, 3)
    logits = torch.randn(2, 3)
    losses = [
        trace_regularized_nll(logits, layer, *parts, lam=0.1, joint=joint)
        for parts in (LABELS, [part.int() for part in LABELS])
    ]
    assert torch.equal(*losses)
    losses[1].backward()


@pytest.mark.parametrize("loss", [crowd_nll, partial(trace_regularized_nll, lam=0.01)])
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"label": torch.tensor([2, 1, -1])}, "label to be numbers from 0 on, but got -1. Leave"),
        ({"annotator": torch.tensor([0, -2, 1])}, "annotator to be numbers from 0 on, but got -2"),
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
def test_what_torch_would_take_for_something_else_is_refused(loss, changed, said):
    given = dict(zip(("row", "annotator", "label"), LABELS, strict=True))
    given |= {"logits": torch.zeros(2, 3), "layer": Confusion(2, 3), **changed}
    with pytest.raises(InputError, match=re.escape(said)):
        loss(**given)
