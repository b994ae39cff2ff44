"""Families of simulated crowds whose annotators share errors; see `zoo_families.py`."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri
from scipy.stats import beta
from zoo_crowds import (
    Array,
    Codes,
    Crowd,
    Design,
    Rng,
    diagonal_matrices,
    draw_classes,
    draw_design,
    draw_items,
    draw_skilled,
    make_table,
    one_coin,
    posterior,
    safe_log,
    sum_by_item,
)

from annotrace.labels import LabelTable

LEVELS = np.linspace(0.02, 0.98, 15)
"""Difficulties of items."""
NODES = 31
"""Nodes of the quadrature over the common factor of a panel."""


def difficulty(rng: Rng) -> Crowd:
    """Draw a crowd in which all annotators guess more often on some items than on others.

    An item's difficulty, the probability that an annotator guesses, is one of 15 levels from .02
    to .98 with the shares of a beta(.3 to 1.5, .8 to 2.5) distribution. Guesses follow a label
    marginal of the annotator's own, Dirichlet with 3 counts per class; mean skill .7 to .93 else.
    """
    design = draw_design(rng)
    skilled = draw_skilled(rng, *design.shape, (0.7, 0.93))
    guesses = rng.dirichlet(np.full(len(design.prior), 3.0), len(skilled))[:, None]
    shares = beta.pdf(LEVELS, rng.uniform(0.3, 1.5), rng.uniform(0.8, 2.5))
    shares /= shares.sum()
    truth, item, annotator = draw_items(rng, design)
    level = rng.choice(LEVELS, design.n_items, p=shares)[item, None]
    knowing, guessing = skilled[annotator, truth[item]], guesses[annotator, 0]
    label = draw_classes(rng, (1 - level) * knowing + level * guessing)
    table = make_table(design, truth, item, annotator, label)
    known, guessed = skilled[annotator, :, label], guesses[annotator, :, label]
    likelihood = np.log(
        known[:, :, None] * (1 - LEVELS) + guessed[:, :, None] * LEVELS
    )  # (n_labels, n_classes, n_levels)
    by_item = logsumexp(sum_by_item(table, likelihood), b=shares, axis=2)
    mean = shares @ LEVELS
    confusion = (1 - mean) * skilled + mean * guesses
    return Crowd(table, posterior(design.prior, by_item), confusion, shares_errors=True)


def camps(rng: Rng) -> Crowd:
    """Draw a crowd with a camp of a quarter to a half of the annotators who share wrong answers.

    The camp's answer to an item is right with a probability of only .3 to .65, and a member gives
    it with one of .7 to 1. Otherwise, and outside the camp, annotators have a mean skill of .6 to
    .8.
    """
    design = draw_design(rng)
    skilled = draw_skilled(rng, *design.shape, (0.6, 0.8))
    group = np.where(rng.random(len(skilled)) < rng.uniform(0.25, 0.5), 0, -1)
    answers = one_coin(rng.uniform(0.3, 0.65, 1), len(design.prior))
    return label_in_groups(rng, design, skilled, group, answers, rng.uniform(0.7, 1.0))


def shared_groups(rng: Rng) -> Crowd:
    """Draw a crowd of two to five groups, such as offices, each with answers that members share.

    Shared answers have a mean skill of .55 to .85 and a member gives them with a probability of .3
    to .9. Otherwise, and outside of groups, annotators have a mean skill of .6 to .85.
    """
    design = draw_design(rng)
    n_annotators, n_classes = design.shape
    skilled = draw_skilled(rng, n_annotators, n_classes, (0.6, 0.85))
    n_groups = int(rng.integers(2, 6))
    group = rng.integers(-1, n_groups, n_annotators)
    answers = draw_skilled(rng, n_groups, n_classes, (0.55, 0.85))
    return label_in_groups(rng, design, skilled, group, answers, rng.uniform(0.3, 0.9))


def copies(rng: Rng) -> Crowd:
    """Draw a crowd in which a fifth to three fifths of the annotators copy one source.

    The source has a mean skill of .45 to .8 and is copied with a probability of .9 to 1. Otherwise,
    and for the rest, annotators have a mean skill of .55 to .85.
    """
    design = draw_design(rng)
    skilled = draw_skilled(rng, *design.shape, (0.55, 0.85))
    group = np.where(rng.random(len(skilled)) < rng.uniform(0.2, 0.6), 0, -1)
    source = draw_skilled(rng, 1, len(design.prior), (0.45, 0.8))
    return label_in_groups(rng, design, skilled, group, source, rng.uniform(0.9, 1.0))


def label_in_groups(
    rng: Rng, design: Design, own: Array, group: Codes, answers: Array, copying: float
) -> Crowd:
    """Draw labels by annotators of whom groups share one answer per item.

    Parameters
    ----------
    own : ndarray of shape (n_annotators, n_classes, n_classes)
        Matrices of answers of an annotator's own.
    group : ndarray of int, shape (n_annotators,)
        The group of each annotator, -1 for none.
    answers : ndarray of shape (n_groups, n_classes, n_classes)
        Matrices of the answers that groups share.
    copying : float
        Probability that a member gives the shared answer.
    """
    truth, item, annotator = draw_items(rng, design)
    shared = draw_classes(rng, answers[:, truth])
    membership = group[annotator]
    copied = (membership >= 0) & (rng.random(len(item)) < copying)
    alone = draw_classes(rng, own[annotator, truth[item]])
    label = np.where(copied, shared[membership, item], alone)
    table = make_table(design, truth, item, annotator, label)
    by_item = group_log_likelihood(table, own, group, answers, copying)
    mixed = (1 - copying) * own + copying * answers[group]
    confusion = np.where((group >= 0)[:, None, None], mixed, own)
    return Crowd(table, posterior(design.prior, by_item), confusion, shares_errors=True)


def group_log_likelihood(
    table: LabelTable, own: Array, group: Codes, answers: Array, copying: float
) -> Array:
    """Return log p(labels of an item | true class), summed over the answers of each group.

    Parameters are those of `label_in_groups`; the shape is (n_items, n_classes).
    """
    membership = group[table.annotator]
    alone = own[table.annotator, :, table.label]
    total = sum_by_item(table, np.where((membership < 0)[:, None], safe_log(alone), 0.0))
    same = np.eye(table.n_classes)[table.label]
    both = safe_log((1 - copying) * alone[:, :, None] + copying * same[:, None, :])
    for place, answer in enumerate(answers):
        # (n_items, n_classes, n_classes): true class, shared answer
        members = sum_by_item(table, np.where((membership == place)[:, None, None], both, 0.0))
        total += logsumexp(members, b=answer, axis=2)
    return total


def panel(rng: Rng) -> Crowd:
    """Draw a panel of judges who label all items and find the same items hard.

    Two or three classes, 5 to 13 judges, 500 to 2,000 items; class shares are Dirichlet with 15
    counts per class. A judge's accuracy on a class is a mean of .65 to .85 plus deviations of .08
    for the judge and of .08 for the class, from .2 to .97. Each item tempts to one wrong class.
    Being wrong is a threshold on a normal variable, of whose variance a share of .1 to .6 is a
    common factor of all judges.
    """
    n_classes, n_judges = int(rng.integers(2, 4)), int(rng.integers(5, 14))
    prior = rng.dirichlet(np.full(n_classes, 15.0))
    design = Design(prior, np.ones(n_judges), int(rng.integers(500, 2001)), n_judges)
    level = rng.normal(rng.uniform(0.65, 0.85), 0.08, (n_judges, 1))
    accuracy = (level + rng.normal(0, 0.08, design.shape)).clip(0.2, 0.97)
    common = rng.uniform(0.1, 0.6)
    truth, item, annotator = draw_items(rng, design)
    tempting = (truth + rng.integers(1, n_classes, len(truth))) % n_classes
    factor, own = rng.normal(size=len(truth)), rng.normal(size=len(item))
    hardness = np.sqrt(common) * factor[item] + np.sqrt(1 - common) * own
    right = hardness < ndtri(accuracy[annotator, truth[item]])
    label = np.where(right, truth[item], tempting[item])
    table = make_table(design, truth, item, annotator, label)
    by_item = panel_log_likelihood(table, accuracy, common)
    confusion = diagonal_matrices(accuracy)
    return Crowd(table, posterior(prior, by_item), confusion, shares_errors=True)


def panel_log_likelihood(table: LabelTable, accuracy: Array, common: float) -> Array:
    """Return log p(labels of an item | true class), integrated over the common factor.

    Sums over the wrong class that an item tempts to, which all wrong labels have.

    Parameters
    ----------
    table : LabelTable
        Labels of every judge for every item.
    accuracy : ndarray of shape (n_judges, n_classes)
    common : float
        Share of the variance due to the common factor.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    label = table.label.reshape(table.n_items, -1)
    result = np.empty((table.n_items, table.n_classes))
    for true in range(table.n_classes):
        threshold = ndtri(accuracy[:, true, None])
        right = ndtr((threshold - np.sqrt(common) * nodes) / np.sqrt(1 - common))
        is_right = (label == true).astype(float)
        # (n_items, n_nodes): matrix products with the log probabilities of each judge
        by_node = is_right @ safe_log(right) + (1 - is_right) @ safe_log(1 - right)
        n_wrong = label.shape[1] - is_right.sum(axis=1)
        agree = [
            (label == other).sum(axis=1) == n_wrong
            for other in range(table.n_classes)
            if other != true
        ]
        tempted = np.mean(agree, axis=0)
        result[:, true] = logsumexp(by_node, b=weights / weights.sum(), axis=1) + safe_log(tempted)
    return result
