import math
from itertools import pairwise

import pytest
import torch
from scipy.stats import gamma

from annotrace.crowd.dirichlet import (
    SMALLEST,
    VAGUE,
    difference,
    divergence,
    expected_log,
    log_vague,
    update_pool,
    weighted_counts,
)


@pytest.mark.parametrize("n_priors", [1, 4])
def test_differences_are_computed_only_where_something_was_counted(n_priors):
    torch.manual_seed(0)
    alpha = torch.rand(n_priors, 5, 5, dtype=torch.float64)
    counts = torch.zeros(4, 5, 5, dtype=torch.float64)
    counts[0, 1, 2], counts[3, 4, 0], counts[1, 0, 0] = 2.0, 0.5, 1e-30
    asked = []

    def digamma(values):
        asked.append(values.numel())
        return torch.digamma(values)

    found = difference(digamma, counts + alpha, alpha)
    torch.testing.assert_close(found, torch.digamma(counts + alpha) - torch.digamma(alpha))
    assert asked == ([25, 2] if n_priors == 1 else [2, 2])


@pytest.mark.parametrize("n_priors", [1, 3])
def test_divergence_is_that_of_torch_distributions(n_priors):
    torch.manual_seed(1)
    prior = torch.rand(n_priors, 4, 2, dtype=torch.float64) + 0.1
    posterior = prior + torch.randint(0, 3, (3, 4, 2)).double()
    every = (parameters.expand(3, 4, 2) for parameters in (posterior, prior))
    expected = torch.distributions.kl_divergence(*map(torch.distributions.Dirichlet, every)).sum()
    torch.testing.assert_close(divergence(posterior, prior, expected_log(posterior)), expected)


def test_expected_logs_are_those_of_draws():
    parameters = torch.tensor([[3.0, 0.8, 5.0], [1.0, 2.0, 0.5]], dtype=torch.float64)
    torch.manual_seed(0)
    draws = torch.distributions.Dirichlet(parameters).sample((200_000,))
    torch.testing.assert_close(expected_log(parameters), draws.log().mean(0), atol=0.02, rtol=0)


def log_marginal(counts, alpha):
    """Log probability of counts under Dirichlet priors, term by term (Polya)."""
    total = 0.0
    for annotator in range(len(counts)):
        for state in range(counts.shape[1]):
            n, a = counts[annotator, state], alpha[0, state]
            total += math.lgamma(a.sum()) - math.lgamma(a.sum() + n.sum())
            for count, prior in zip(n, a, strict=True):
                total += math.lgamma(prior + count) - math.lgamma(prior)
    return total


def test_each_step_of_the_pool_makes_the_counts_more_probable():
    torch.manual_seed(2)
    counts = torch.distributions.Dirichlet(torch.tensor([4.0, 1.0, 1.0])).sample((12, 3)) * 20
    counts = counts.round().double()
    alpha = torch.full((1, 3, 3), 0.7, dtype=torch.float64)
    reached = []
    for _ in range(40):
        reached.append(log_marginal(counts, alpha))
        alpha = update_pool(counts, alpha)
    assert all(after > before - 1e-9 for before, after in pairwise(reached))
    assert reached[-1] > reached[0] + 10
    shares = alpha[0] / alpha[0].sum(1, keepdim=True)
    torch.testing.assert_close(
        shares, counts.sum(0) / counts.sum((0, 2))[:, None], atol=0.1, rtol=0
    )


def test_counts_never_weigh_more_than_they_are():
    torch.manual_seed(3)
    counts = torch.randint(0, 9, (5, 3, 3)).double()
    weighted, rate = weighted_counts(counts, torch.rand(1, 3, 3).double() + 0.1)
    assert (weighted <= counts + 1e-12).all()
    assert not weighted[counts == 0].any()
    assert rate.shape == (5, 3)


def test_where_nothing_is_counted_the_pool_is_uniform():
    nothing = torch.zeros(4, 2, 3, dtype=torch.float64)
    alpha = torch.rand(1, 2, 3, dtype=torch.float64) + 0.1
    torch.testing.assert_close(update_pool(nothing, alpha), torch.ones_like(alpha))


def test_a_class_that_is_never_reported_stays_possible():
    counts = torch.tensor([9.0, 0.0], dtype=torch.float64).expand(1000, 1, 2)
    alpha = torch.full((1, 1, 2), 1e-3, dtype=torch.float64)
    assert update_pool(counts, alpha)[0, 0, 1] == SMALLEST


def test_strengths_have_a_gamma_prior():
    strength = torch.tensor([0.5, 20.0, 3.0], dtype=torch.float64)
    gained = log_vague(strength) - log_vague(torch.ones(3, dtype=torch.float64))
    prior = gamma(1 + VAGUE, scale=1 / VAGUE)
    expected = (prior.logpdf(strength) - prior.logpdf(1)).sum()
    assert gained.item() == pytest.approx(expected)
