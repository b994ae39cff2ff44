import pytest
import scipy.special
import torch

from annotrace.crowd.digamma import BLOCK, digamma


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 3e-6), (torch.float64, 1e-12)])
def test_it_is_that_of_scipy(dtype, tolerance):
    x = torch.cat([torch.logspace(-6, 7, BLOCK), torch.tensor([1.4616321, 1.0, 2.0])]).to(dtype)
    expected = torch.from_numpy(scipy.special.digamma(x.double().numpy()))
    torch.testing.assert_close(digamma(x).double(), expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(digamma(x[:6].view(2, 3)), digamma(x[:6]).view(2, 3))
