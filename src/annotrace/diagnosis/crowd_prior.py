r"""What the crowd says of one more annotator: a prior of matrices, estimated from all of them.

An annotator who knows one class tends to know the others: rows of a matrix are not independent
between annotators, and a prior that took them to be would be too sure of the skill of people with
few labels. So annotator r has a number :math:`t_r`, by which the log-odds of being right differ
from the pool's in *every* class:

.. math::

    t_r &\sim \textstyle\sum_g v_g \, N(c_g, h^2) \\
    \pi_{kk} &\sim Beta(s\,m_k(t_r),\; s\,(1 - m_k(t_r))), \quad
        m_k(t) = \sigma(\mathrm{logit}\, m_k + t) \\
    (\pi_{kj} / (1 - \pi_{kk}))_{j \neq k} &\sim Dir(u\,q_k)

The pool's diagonal m and pattern of errors q are shares of pooled counts. The spread of skills v
and the strengths s and u are those under which the counts of all annotators are most probable
(empirical Bayes). v mixes smooth bumps: an unrestricted maximum would be a few points, and
intervals would shrink to them. t lives on a grid, so that everything is a sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.special import expit, gammaln, logit

TILTS = np.linspace(-6.0, 6.0, 61)
_CENTRES = np.linspace(-6.0, 6.0, 25)
_BUMPS = np.exp(-0.5 * np.square((TILTS - _CENTRES[:, None]) / 0.5))
_BUMPS /= _BUMPS.sum(axis=1, keepdims=True)
# Above 100 a row says no more of its neighbours than the grid of tilts can tell.
_STRENGTHS = np.geomspace(1.0, 100.0, 12)
# What is thought of skills before labels: of people who have never been wrong yet, it alone says
# that they may be, and without it their skills would be known to be 1.
_BROAD = np.exp(-0.5 * np.square(_CENTRES / 1.5))
_BROAD /= _BROAD.sum()
_BROAD_WORTH = 2.0
# Right and wrong labels that each row is thought to have had: nobody is sure never to slip.
_SLIPS = 0.25
_EM_STEPS = 50
ENOUGH_ANNOTATORS = 2000


@dataclass(frozen=True)
class CrowdPrior:
    """The prior of an annotator's matrix.

    Attributes
    ----------
    right : ndarray of shape (n_tilts, n_classes)
        Probability of a right label at each tilt, m_k(t).
    tilt_weights : ndarray of shape (n_tilts,)
        How common each tilt is in the crowd.
    strength : float
        How closely diagonals follow the annotator's tilt, in labels (s).
    errors : ndarray of shape (n_classes, n_classes)
        What is reported where the label is wrong (q); the diagonal is 0.
    error_strength : float
        How closely errors follow the pool's, in labels (u).
    """

    right: NDArray[np.float64]
    tilt_weights: NDArray[np.float64]
    strength: float
    errors: NDArray[np.float64]
    error_strength: float


def estimate_crowd_prior(counts: NDArray[Any], seed: int = 0) -> CrowdPrior:
    """Estimate the prior from the counts of all annotators.

    Parameters
    ----------
    counts : ndarray of shape (n_draws, n_annotators, n_classes, n_classes)
        [draw, annotator, true, reported]: by one or more draws of the truth, of which each says as
        much as the others. The mean over draws would make annotators look more alike than they are.
    seed : int
        Of many annotators, 2,000 drawn at random are enough.
    """
    n_draws = len(counts)
    pooled = counts.sum(axis=(0, 1)) / n_draws
    counts = counts.reshape(-1, *pooled.shape)
    labelled = np.flatnonzero(counts.any(axis=(1, 2)))
    if len(labelled) > n_draws * ENOUGH_ANNOTATORS:
        chosen = np.random.default_rng(seed).choice
        labelled = chosen(labelled, n_draws * ENOUGH_ANNOTATORS, replace=False)
    counts = counts[labelled]
    right, strength, weights = _fit_tilts(*split_counts(counts), _tilted(pooled), n_draws)
    errors = _pooled_errors(pooled)
    return CrowdPrior(right, weights, strength, errors, _fit_error_strength(counts, errors))


def split_counts(counts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Give the right and the wrong labels of each row, both (n_annotators, n_classes)."""
    right = np.diagonal(counts, axis1=1, axis2=2)
    return right, counts.sum(axis=2) - right


def tilt_posterior(
    right: NDArray[Any], wrong: NDArray[Any], prior: CrowdPrior
) -> NDArray[np.float64]:
    """Give the probability of each tilt given an annotator's counts.

    Parameters
    ----------
    right, wrong : ndarray of shape (n_annotators, n_classes)

    Returns
    -------
    ndarray of shape (n_annotators, n_tilts)
    """
    likelihood, _ = _exponentiated(_tilt_likelihood(right, wrong, prior.right, prior.strength))
    weighed = likelihood * prior.tilt_weights
    posterior: NDArray[np.float64] = weighed / weighed.sum(axis=1, keepdims=True)
    return posterior


def _tilted(pooled: NDArray[Any]) -> NDArray[np.float64]:
    right = (np.diagonal(pooled) + 0.5) / (pooled.sum(axis=1) + 1)
    tilted: NDArray[np.float64] = expit(logit(right.clip(0.01, 0.99)) + TILTS[:, None])
    return tilted


def _pooled_errors(pooled: NDArray[Any]) -> NDArray[np.float64]:
    n_classes = len(pooled)
    wrong = ~np.eye(n_classes, dtype=bool)
    errors = (pooled + 1 / (n_classes - 1)) * wrong
    shares: NDArray[np.float64] = errors / errors.sum(axis=1, keepdims=True)
    return shares


def _fit_tilts(
    right: NDArray[Any], wrong: NDArray[Any], tilted: NDArray[np.float64], n_draws: int
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Find the strength and the spread of tilts under which counts are most probable.

    Returns
    -------
    right : ndarray of shape (n_tilts, n_classes)
        Probability of a right label at each tilt, kept off 0 and 1 by the slips.
    strength : float
    weights : ndarray of shape (n_tilts,)
    """
    fits = []
    for strength in _STRENGTHS:
        total = float(strength) + 2 * _SLIPS
        with_slips = (strength * tilted + _SLIPS) / total
        likelihood = _tilt_likelihood(right, wrong, with_slips, total)
        weights, evidence = _fit_weights(likelihood, n_draws * _BROAD_WORTH)
        evidence -= float(_rising(right + wrong, total).sum())
        fits.append((evidence, with_slips, total, weights))
    return max(fits, key=lambda fit: fit[0])[1:]


def _fit_weights(
    log_likelihood: NDArray[Any], broad_worth: float
) -> tuple[NDArray[np.float64], float]:
    """Fit a mixture of bumps by EM, from a broad one that is worth so many annotators."""
    likelihood, highest = _exponentiated(log_likelihood)
    of_bumps = likelihood @ _BUMPS.T
    mix = _BROAD
    for _ in range(_EM_STEPS):
        shares = mix * ((1 / (of_bumps @ mix)) @ of_bumps)
        mix = (shares + broad_worth * _BROAD) / (len(of_bumps) + broad_worth)
    return mix @ _BUMPS, float((np.log(of_bumps @ mix) + highest).sum())


def _exponentiated(
    log_likelihood: NDArray[Any],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give likelihoods divided by the largest of their row, and the logs of the largest."""
    highest = log_likelihood.max(axis=1)
    return np.exp(log_likelihood - highest[:, None]), highest


def _tilt_likelihood(
    right: NDArray[Any], wrong: NDArray[Any], tilted: NDArray[np.float64], strength: float
) -> NDArray[np.float64]:
    """Log marginal likelihood of right and wrong labels at each tilt, (n_annotators, n_tilts).

    But for the rising power of the strength itself, which is the same at every tilt.
    """
    starts = np.vstack([strength * tilted.T, strength * (1 - tilted.T)])
    return _rising_sums(np.hstack([right, wrong]), starts)


def _rising_sums(counts: NDArray[Any], starts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum logs of start (start + 1) ... (start + count - 1) over columns.

    Most counts are 0, which adds nothing, and the others are few different numbers: the logs of
    gamma are taken once for each, and a sparse matrix sums them. With 100,000 annotators anything
    else would be what costs.

    Parameters
    ----------
    counts : ndarray of shape (n_annotators, n_columns)
    starts : ndarray of shape (n_columns, n_starts)

    Returns
    -------
    ndarray of shape (n_annotators, n_starts)
    """
    row, column = np.nonzero(counts)
    values, place = np.unique(counts[row, column], return_inverse=True)
    cells, cell = np.unique(column * len(values) + place, return_inverse=True)
    column, place = np.divmod(cells, max(len(values), 1))
    logs = _rising(values[place, None], starts[column])
    offsets = np.searchsorted(row, np.arange(len(counts) + 1))
    which = csr_matrix((np.ones(len(row)), cell, offsets), shape=(len(counts), len(cells)))
    return np.asarray(which @ logs)


def _fit_error_strength(counts: NDArray[Any], errors: NDArray[np.float64]) -> float:
    wrong = counts * (errors > 0)
    total = wrong.sum(axis=2)
    # A count of 0 adds nothing, and most are.
    total = total[total > 0]
    who, true, reported = np.nonzero(wrong)
    given, share = wrong[who, true, reported], errors[true, reported]
    fits = []
    for strength in _STRENGTHS:
        evidence = _rising(given, strength * share).sum() - _rising(total, strength).sum()
        fits.append((float(evidence), float(strength)))
    return max(fits)[1]


def _rising(counts: NDArray[Any], start: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Log of start (start + 1) ... (start + count - 1)."""
    logs: NDArray[np.float64] = gammaln(counts + start) - gammaln(start)
    return logs
