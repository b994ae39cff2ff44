"""The loss with its gradient by hand, against autograd through the plain formula."""

import numpy as np
import pytest
import torch
from batches import PARAMETRIZATIONS, frequency_of, gradients, random_labels, random_layer

from annotrace.crowd import Confusion, crowd_nll, trace_regularized_nll


def plain_loss(logits, layer, row, annotator, label, lam, joint):
    """Eq. 4 of the paper, by autograd alone."""
    log_p, log_matrices = torch.log_softmax(logits, 1), layer.log_matrices()
    logs = log_matrices[annotator, :, label]
    if joint:
        evidence = torch.logsumexp(log_p.index_add(0, row, logs), 1)
    else:
        evidence = torch.logsumexp(log_p[row] + logs, 1)
    trace = torch.stack([matrix.exp().trace() for matrix in log_matrices]).mean()
    return -evidence.sum() / len(logits) + lam * trace


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_loss_and_gradient_are_those_of_autograd(parametrization, pooled, joint):
    rng = np.random.default_rng(12)
    layer = random_layer(rng, parametrization=parametrization, pooled=pooled)
    labels = random_labels(rng, 12, 5, 4)
    logits = torch.from_numpy(rng.normal(0, 3, (12, 4))).requires_grad_()
    learned = [logits, *layer.parameters()]
    ours = trace_regularized_nll(logits, layer, *labels, 0.3, joint=joint)
    theirs = plain_loss(logits, layer, *labels, 0.3, joint)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(gradients(ours, *learned), gradients(theirs, *learned))


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


@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_the_gradient_by_log_matrices_is_the_expected_counts(parametrization):
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
def test_a_gpu_and_a_cpu_give_the_same(parametrization, gap):
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


@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_a_sparse_layer_raises_for_second_derivatives_too(parametrization):
    rng = np.random.default_rng(5)
    row, annotator, label = random_labels(rng, 6, 5, 4)
    frequency = frequency_of(annotator, 5, 6)
    layer = random_layer(rng, parametrization=parametrization, sparse=True, frequency=frequency)
    logits = torch.zeros(6, 4, dtype=torch.float64)
    joint = trace_regularized_nll(logits, layer, row, annotator, label, lam=0.1, joint=True)
    for value in (joint, layer.mean_trace(annotator, 6)):
        with pytest.raises(NotImplementedError, match="second derivatives"):
            torch.autograd.grad(value, layer.weight, create_graph=True)
