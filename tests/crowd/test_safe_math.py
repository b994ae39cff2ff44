import math

import pytest
import torch

from annotrace.crowd.safe_math import (
    at_least_float32,
    inverse_softplus,
    log_normalize,
    log_softplus,
    log_softplus_and_slope,
    mixture_log_likelihood,
    refuse_second_derivatives,
    scaled_softmax_and_log_sum,
    softmax_and_log_sum,
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_softplus_and_its_slope_at_any_x(dtype):
    x = torch.tensor([-1000.0, -120, -60, -49, -5, 0, 5, 50], dtype=dtype, requires_grad=True)
    y = log_softplus(x)
    y.sum().backward()
    points = x.tolist()
    expected = [v if v < -60 else math.log(math.log1p(math.exp(v))) for v in points]
    slopes = [1.0 if v < -60 else 1 / (1 + math.exp(-v)) / math.log1p(math.exp(v)) for v in points]
    torch.testing.assert_close(y, torch.tensor(expected, dtype=dtype))
    torch.testing.assert_close(x.grad, torch.tensor(slopes, dtype=dtype))
    value, slope = log_softplus_and_slope(x.detach())
    torch.testing.assert_close(value, y.detach())
    torch.testing.assert_close(slope, x.grad)


def test_the_slope_of_log_softplus_is_that_of_finite_differences():
    x = torch.linspace(-8, 8, 9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(log_softplus, x)


def test_rows_are_normalized_as_by_log_softmax():
    x = torch.randn(5, 3, dtype=torch.float64) * 100
    torch.testing.assert_close(log_normalize(x), torch.log_softmax(x, dim=1))


def test_softmax_and_its_log_sums():
    x = torch.randn(5, 3, dtype=torch.float64) * 100
    softmax, log_sum = softmax_and_log_sum(x.clone())
    torch.testing.assert_close(softmax, torch.softmax(x, dim=1))
    torch.testing.assert_close(log_sum, torch.logsumexp(x, dim=1))
    scaled = scaled_softmax_and_log_sum(x.clone(), -0.5)
    torch.testing.assert_close(scaled, (softmax * -0.5, log_sum.sum() * -0.5))


@pytest.mark.parametrize("y", [1e-6, 0.01, 1.0, 30.0])
def test_inverse_softplus(y):
    x = inverse_softplus(torch.tensor(y, dtype=torch.float64))
    assert math.log1p(math.exp(x)) == pytest.approx(y)


def test_only_half_precision_is_widened():
    for dtype, wide in (
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ):
        assert at_least_float32(torch.zeros(1, dtype=dtype)).dtype == wide


def test_the_mixture_and_its_gradient_are_those_of_autograd():
    torch.manual_seed(0)
    log_p = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    logs = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    row = torch.tensor([0, 0, 3, 1, 3, 3])
    ours = mixture_log_likelihood(log_p, logs, row)
    theirs = torch.logsumexp(log_p[row] + logs, 1)
    torch.testing.assert_close(ours, theirs)
    weight = torch.randn(6, dtype=torch.float64)
    for a, b in zip(
        torch.autograd.grad(ours @ weight, (log_p, logs)),
        torch.autograd.grad(theirs @ weight, (log_p, logs)),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


def test_many_rows_are_summed_alike():
    x = torch.randn(5000, 3, dtype=torch.float64)
    softmax, log_sum = softmax_and_log_sum(x.clone())
    torch.testing.assert_close(softmax, torch.softmax(x, dim=1))
    torch.testing.assert_close(log_sum, torch.logsumexp(x, dim=1))


def test_second_derivatives_raise():
    with torch.no_grad():
        refuse_second_derivatives()
    with pytest.raises(NotImplementedError, match="second derivatives"):
        refuse_second_derivatives()
    x = torch.zeros(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad(log_softplus(x).sum(), x, create_graph=True)
