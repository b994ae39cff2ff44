import pytest
import torch

from annotrace.aggregation.dirichlet import divergence, expected_log, rise


@pytest.mark.parametrize("n_priors", [1, 4])
def test_what_counts_raise_is_worked_out_where_there_are_any(n_priors):
    torch.manual_seed(0)
    alpha = torch.rand(n_priors, 5, 5, dtype=torch.float64)
    counts = torch.zeros(4, 5, 5, dtype=torch.float64)
    counts[0, 1, 2], counts[3, 4, 0], counts[1, 0, 0] = 2.0, 0.5, 1e-30
    asked = []

    def digamma(values):
        asked.append(values.numel())
        return torch.digamma(values)

    found = rise(digamma, counts + alpha, alpha)
    torch.testing.assert_close(found, torch.digamma(counts + alpha) - torch.digamma(alpha))
    assert asked == ([25, 2] if n_priors == 1 else [2, 2])


@pytest.mark.parametrize("n_priors", [1, 3])
def test_divergence_is_that_of_torch_distributions(n_priors):
    torch.manual_seed(1)
    prior = torch.rand(n_priors, 4, 2, dtype=torch.float64) + 0.1
    posterior = prior + torch.randint(0, 3, (3, 4, 2)).double()
    every = (parameters.expand(3, 4, 2).transpose(1, 2) for parameters in (posterior, prior))
    expected = torch.distributions.kl_divergence(*map(torch.distributions.Dirichlet, every)).sum()
    torch.testing.assert_close(divergence(posterior, prior, expected_log(posterior)), expected)
