"""The hand-written gradient of sparse layers against autograd through the dense ones."""

import pytest
import torch
from batches import PARAMETRIZATIONS

from annotrace.crowd import Confusion
from annotrace.crowd.sparse_confusion import batch_log_likelihood


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_the_gradient_by_hand_is_that_of_finite_differences(parametrization, pooled):
    torch.manual_seed(0)
    annotator, label = torch.tensor([0, 2, 2]), torch.tensor([1, 0, 2])
    weight = torch.randn(3, 3, 3, dtype=torch.float64, requires_grad=True)
    shared = torch.randn(3, 3, dtype=torch.float64, requires_grad=True) if pooled else None

    def dense(weight, shared):
        log_likelihood, traces = batch_log_likelihood(
            _Dense.apply(weight), shared, annotator, label, parametrization
        )
        return log_likelihood, traces

    assert torch.autograd.gradcheck(dense, (weight, shared))


class _Dense(torch.autograd.Function):
    """The identity, with a dense gradient, as gradcheck needs."""

    @staticmethod
    def forward(ctx, weight):
        return weight.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad.to_dense()


@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_sparse_layer_equals_the_dense_one_at_very_low_weights(dtype, parametrization):
    weight = torch.tensor([[-200.0, -200.0, -200.0], [-900.0, -61.0, -60.0], [-300.0, 1.0, 60.0]])
    annotator, label = torch.tensor([0, 1, 0]), torch.tensor([0, 1, 2])
    found = []
    for sparse in (False, True):
        layer = Confusion(2, 3, parametrization=parametrization, sparse=sparse).to(dtype)
        layer.load_state_dict({"weight": torch.stack([weight, torch.zeros(3, 3)]).to(dtype)})
        log_likelihood = layer.log_likelihood(annotator, label)
        log_likelihood.sum().backward()
        found.append((log_likelihood.detach(), layer.weight.grad.to_dense()))
    torch.testing.assert_close(found[1], found[0])
    assert found[1][0][0, 0].exp().item() == pytest.approx(1 / 3, rel=1e-5)


@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_a_pooled_layer_is_the_same_whether_sparse_or_not(parametrization):
    torch.manual_seed(0)
    annotator, label = torch.tensor([0, 2, 2, 1]), torch.tensor([1, 0, 2, 2])
    layers = [
        Confusion(4, 3, parametrization=parametrization, pooled=True, sparse=sparse).double()
        for sparse in (False, True)
    ]
    own, shared = torch.randn(4, 3, 3).double(), torch.randn(3, 3).double()
    gradients = []
    for layer in layers:
        layer.load_state_dict({"weight": own, "shared": shared})
        layer.log_likelihood(annotator, label).square().sum().backward()
        gradients.append((layer.weight.grad.to_dense(), layer.shared.grad))
    for dense, sparse in zip(*gradients, strict=True):
        torch.testing.assert_close(sparse, dense)
    expected = Confusion(4, 3, parametrization=parametrization).double()
    expected.load_state_dict({"weight": own + shared})
    torch.testing.assert_close(layers[0].matrices(), expected.matrices())


def test_second_derivatives_raise():
    layer = Confusion(2, 3, sparse=True)
    one = torch.tensor([1])
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad(layer.log_likelihood(one, one).sum(), layer.weight, create_graph=True)
