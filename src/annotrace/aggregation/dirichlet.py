r"""Dirichlet priors whose strength is learned from the data.

Reports of an annotator where the truth is k are drawn from :math:`\pi_k \sim Dir(\alpha_k)`. Given
counts n, the posterior is :math:`Dir(\alpha_k + n_k)`, and the prior that makes the counts of all
annotators most probable is found by the fixed point of T. Minka (Estimating a Dirichlet
distribution, 2000): a count of n under a prior of alpha weighs

.. math:: c = \alpha \, (\psi(n + \alpha) - \psi(\alpha)),

never more than n, and the share of c is where the prior is centred. Each step raises the
marginal likelihood, so EM around it never loses.

Everywhere counts are laid out [annotator, reported, true], so that dimension 1 is a distribution.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

# A Gamma prior on strengths that moves nothing but what the data leave open.
VAGUE = 1e-3
SMALLEST, LARGEST = 1e-6, 1e6


def expected_log(parameters: Tensor) -> Tensor:
    """Give E[log pi] under Dirichlet distributions along dimension 1."""
    return torch.digamma(parameters) - torch.digamma(parameters.sum(1, keepdim=True))


def rise(function: Callable[[Tensor], Tensor], raised: Tensor, alpha: Tensor) -> Tensor:
    """Give f(raised) - f(alpha), without working it out where nothing was counted: it is 0 there.

    Of 100 classes and 20 annotators with 300 labels each, that is six cells in seven.

    Parameters
    ----------
    function : callable
        Of every element: `torch.digamma` or `torch.lgamma`.
    raised, alpha : Tensor of shape (n_annotators, n_classes, n_states)
        `alpha` may have one annotator, for all.
    """
    counted = (raised != alpha).flatten().nonzero().squeeze(1)
    if len(alpha) < len(raised):
        before = function(alpha).expand_as(raised).take(counted)
    else:
        before = function(alpha.take(counted))
    gained = function(raised.take(counted)) - before
    return torch.zeros_like(raised).put_(counted, gained)


def weighed_counts(counts: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Weigh counts for the prior (Minka's fixed point).

    Parameters
    ----------
    counts, alpha : Tensor of shape (n_annotators, n_classes, n_states)
        `alpha` may have one annotator, for all.

    Returns
    -------
    weighed : Tensor of shape (n_annotators, n_classes, n_states)
    rate : Tensor of shape (n_annotators, n_states)
        What a unit of strength costs: strength = sum of `weighed` / sum of `rate`.
    """
    strength = alpha.sum(1)
    weighed = alpha * rise(torch.digamma, counts + alpha, alpha)
    rate = torch.digamma(counts.sum(1) + strength) - torch.digamma(strength)
    return weighed, rate


def pool(counts: Tensor, alpha: Tensor) -> Tensor:
    """Take one step towards the prior that all annotators share.

    Parameters
    ----------
    counts : Tensor of shape (n_annotators, n_classes, n_states)
    alpha : Tensor of shape (1, n_classes, n_states)

    Returns
    -------
    Tensor of shape (1, n_classes, n_states)
    """
    weighed, rate = weighed_counts(counts, alpha)
    shared = (weighed.sum(0, keepdim=True) + VAGUE) / (rate.sum(0) + VAGUE)
    return shared.clamp(SMALLEST, LARGEST)


def log_vague(strength: Tensor) -> Tensor:
    """Log density of the vague prior on strengths, without its constant."""
    return VAGUE * (strength.log() - strength).sum(dtype=torch.float64)


def divergence(posterior: Tensor, prior: Tensor, logs: Tensor) -> Tensor:
    """Kullback-Leibler divergence between Dirichlet distributions along dimension 1, summed.

    Parameters
    ----------
    posterior, prior : Tensor of shape (n_annotators, n_classes, n_states)
        Their parameters; the prior may have one annotator, for all.
    logs : Tensor of shape (n_annotators, n_classes, n_states)
        `expected_log` of the posterior.
    """
    scale = len(posterior) / len(prior)
    gained = ((posterior - prior) * logs).sum(dtype=torch.float64)
    posterior, prior = posterior.double(), prior.double()
    totals = torch.lgamma(posterior.sum(1)).sum() - scale * torch.lgamma(prior.sum(1)).sum()
    return gained - rise(torch.lgamma, posterior, prior).sum() + totals
