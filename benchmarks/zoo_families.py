"""Families of simulated crowds, each with something of its own that goes wrong.

A family is a function from a random generator to a `Crowd` with parameters drawn at random;
`draw_crowd(family, seed)` draws one. Unless a docstring says otherwise, sizes, class shares and
activities are those of `draw_design`. Families with shared errors are in `zoo_shared.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from zoo_crowds import (
    Crowd,
    Rng,
    diagonal_matrices,
    draw_design,
    draw_items,
    draw_skilled,
    draw_spammers,
    label_independently,
    make_table,
    one_coin,
    posterior,
    scatter_rows,
    sum_by_item,
)
from zoo_shared import camps, copies, difficulty, panel, shared_groups


def independent(rng: Rng) -> Crowd:
    """Draw a crowd in which nothing goes wrong: independent errors, mean skill .55 to .85."""
    design = draw_design(rng)
    return label_independently(rng, design, draw_skilled(rng, *design.shape, (0.55, 0.85)))


def sparse(rng: Rng) -> Crowd:
    """Draw a crowd with too few labels: one or two per item, most by a few annotators.

    Mean skill .65 to .9.
    """
    design = draw_design(rng, uneven=1.0)._replace(labels_per_item=int(rng.integers(1, 3)))
    return label_independently(rng, design, draw_skilled(rng, *design.shape, (0.65, 0.9)))


def imbalance(rng: Rng) -> Crowd:
    """Draw a crowd with one frequent class: the others have 2 to 10 % of the items together.

    Two or three classes, 600 to 2,000 items, mean skill .7 to .9. A model that calls everything
    the frequent class loses little accuracy, so balanced accuracy matters.
    """
    design = draw_design(rng, n_classes=int(rng.integers(2, 4)))
    n_rare = len(design.prior) - 1
    rare = rng.uniform(0.02, 0.1)
    prior = np.array([1 - rare, *[rare / n_rare] * n_rare])
    design = design._replace(prior=prior, n_items=2 * design.n_items)
    return label_independently(rng, design, draw_skilled(rng, *design.shape, (0.7, 0.9)))


def graded(rng: Rng) -> Crowd:
    """Draw a crowd that grades on an ordered scale, where errors are near the true grade.

    Four to seven grades. Annotators err by a discretised normal distribution with a deviation of
    .15 plus gamma(4, .1 to .3) grades and a bias of their own, whose deviation over the crowd is
    .1 to .5 grades.
    """
    design = draw_design(rng, n_classes=int(rng.integers(4, 8)))
    n_annotators, n_classes = design.shape
    deviation = rng.gamma(4, rng.uniform(0.1, 0.3), n_annotators) + 0.15
    bias = rng.normal(0, rng.uniform(0.1, 0.5), n_annotators)
    grade = np.arange(n_classes)
    distance = grade - grade[:, None] - bias[:, None, None]
    confusion = np.exp(-0.5 * np.square(distance / deviation[:, None, None])) + 0.01
    return label_independently(rng, design, confusion / confusion.sum(axis=2, keepdims=True))


def class_groups(rng: Rng) -> Crowd:
    """Draw a crowd that confuses classes of one group, such as breeds, and rarely others.

    Four classes in twos, or six or nine in threes. An annotator finds the group with probability
    beta(9, 1) and the class in it with beta(4, 2); rows are Dirichlet around that with 60 counts.
    """
    design = draw_design(rng, n_classes=int(rng.choice([4, 6, 9])))
    n_annotators, n_classes = design.shape
    size = 2 if n_classes == 4 else 3
    group = np.arange(n_classes) // size
    found, within = (rng.beta(a, b, (n_annotators, 1, 1)) for a, b in ((9, 1), (4, 2)))
    near = found * (1 - within) / (size - 1)
    far = (1 - found) / (n_classes - size)
    errors = np.where(group == group[:, None], near, far)
    mean = np.where(np.eye(n_classes, dtype=bool), found * within, errors)
    return label_independently(rng, design, scatter_rows(rng, mean, 60))


def drift(rng: Rng) -> Crowd:
    """Draw a crowd of annotators who learn or tire while the items pass by in order.

    One coin per annotator, whose skill moves linearly from a first, normal with a mean of .6 to .8
    and a deviation of .15, to a last that differs by a deviation of .25.
    """
    design = draw_design(rng)
    n_annotators, n_classes = design.shape
    first = rng.normal(rng.uniform(0.6, 0.8), 0.15, n_annotators).clip(0.2, 0.98)
    last = (first + rng.normal(0, 0.25, n_annotators)).clip(0.15, 0.98)
    truth, item, annotator = draw_items(rng, design)
    time = item / design.n_items
    skill = first[annotator] * (1 - time) + last[annotator] * time
    other = (truth[item] + rng.integers(1, n_classes, len(item))) % n_classes
    label = np.where(rng.random(len(item)) < skill, truth[item], other)
    table = make_table(design, truth, item, annotator, label)
    likelihood = np.log(one_coin(skill, n_classes)[np.arange(len(item)), :, label])
    oracle = posterior(design.prior, sum_by_item(table, likelihood))
    return Crowd(table, oracle, one_coin((first + last) / 2, n_classes))


def experts(rng: Rng) -> Crowd:
    """Draw a crowd of one to three experts among many spammers.

    Experts have a skill of .88 to .98, a tenth to four tenths of the annotators are mediocre (mean
    skill .5 to .7), and the rest spam. At least five labels per item; all are equally active, so
    that the experts can be found.
    """
    design = draw_design(rng, uneven=0.0)
    design = design._replace(labels_per_item=max(design.labels_per_item, 5))
    n_annotators, n_classes = design.shape
    n_experts = int(rng.integers(1, 4))
    n_mediocre = int(n_annotators * rng.uniform(0.1, 0.4))
    parts = [
        one_coin(rng.uniform(0.88, 0.98, n_experts), n_classes),
        draw_skilled(rng, n_mediocre, n_classes, (0.5, 0.7)),
        draw_spammers(rng, n_annotators - n_experts - n_mediocre, n_classes),
    ]
    return label_independently(rng, design, np.concatenate(parts))


def spammers(rng: Rng) -> Crowd:
    """Draw a crowd in which each annotator spams with a probability of .2 to .6.

    The others have a mean skill of .65 to .9.
    """
    design = draw_design(rng)
    spams = rng.random(len(design.activity)) < rng.uniform(0.2, 0.6)
    skilled = draw_skilled(rng, *design.shape, (0.65, 0.9))
    spam = draw_spammers(rng, *design.shape)
    return label_independently(rng, design, np.where(spams[:, None, None], spam, skilled))


def specialists(rng: Rng) -> Crowd:
    """Draw a crowd of annotators who know some classes and not the others.

    Three to seven classes, of which an annotator knows each with a probability of .3 to .7. The
    probability of a correct label is .8 to .95 for known classes, and from chance to .5 for others.
    """
    design = draw_design(rng, n_classes=int(rng.integers(3, 8)))
    knows = rng.random(design.shape) < rng.uniform(0.3, 0.7)
    known, unknown = rng.uniform(0.8, 0.95), rng.uniform(1 / len(design.prior), 0.5)
    return label_independently(rng, design, diagonal_matrices(np.where(knows, known, unknown)))


def adversaries(rng: Rng) -> Crowd:
    """Draw a crowd in which each annotator swaps classes with a probability of .05 to .3.

    An adversary answers in a permutation of the classes, with two classes in the reverse. Mean
    skill .7 to .9 before that.
    """
    design = draw_design(rng)
    n_classes = len(design.prior)
    confusion = draw_skilled(rng, *design.shape, (0.7, 0.9))
    for bad in np.flatnonzero(rng.random(len(confusion)) < rng.uniform(0.05, 0.3)):
        order = rng.permutation(n_classes) if n_classes > 2 else np.array([1, 0])
        confusion[bad] = confusion[bad][:, order]
    return label_independently(rng, design, confusion)


FAMILIES: dict[str, Callable[[Rng], Crowd]] = {
    family.__name__: family
    for family in (
        *(independent, sparse, difficulty, camps, shared_groups, copies, panel, imbalance),
        *(graded, class_groups, drift, experts, spammers, specialists, adversaries),
    )
}


def draw_crowd(family: str, seed: int) -> Crowd:
    """Draw a crowd of a family; a seed gives the same crowd whatever other families there are."""
    return FAMILIES[family](np.random.default_rng([seed, *family.encode()]))
