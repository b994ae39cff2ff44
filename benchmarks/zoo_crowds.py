"""Simulated crowds whose annotator model is known: their parts, and the posterior given the model.

A family of crowds (`zoo_families.py`) draws a design and the matrices of annotators from the parts
of this file, and labels the items. The oracle of a crowd is the Bayes posterior of the true class
given the labels, the class shares and the annotator model that drew the labels: no method can be
more accurate in expectation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from annotrace.diagnosis import dominance_margins
from annotrace.labels import LabelTable
from annotrace.simulate import assign_annotators, simulate_labels

Rng = np.random.Generator
Array = NDArray[np.float64]
Codes = NDArray[np.integer]

EASY_MARGIN = 0.15
EASY_LABELS = 3
# Probabilities below this have underflowed.
TINY = 1e-12


@dataclass(frozen=True)
class Crowd:
    """Labels with truth, and the annotators who gave them.

    Attributes
    ----------
    table : LabelTable
        Including the truth of every item.
    oracle : ndarray of shape (n_items, n_classes)
        Posterior of the true class given the labels and the true annotator model.
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
        [annotator, true, reported], averaged over items.
    shares_errors : bool
        Whether errors of different annotators on an item depend on each other given its class.
    """

    table: LabelTable
    oracle: Array
    confusion: Array
    shares_errors: bool = False

    @property
    def annotator_accuracy(self) -> Array:
        """Share of each annotator's labels that are correct, NaN without labels."""
        assert self.table.truth is not None
        right = self.table.label == self.table.truth[self.table.item]
        n_right = np.bincount(self.table.annotator[right], minlength=self.table.n_annotators)
        with np.errstate(invalid="ignore"):
            return n_right / np.bincount(self.table.annotator, minlength=self.table.n_annotators)

    @property
    def is_easy(self) -> bool:
        """Whether errors are independent, the mean matrix dominant and labels not few."""
        margin = dominance_margins(self.confusion.mean(axis=0)).min()
        fewest = self.table.labels_per_item().min()
        return bool(margin >= EASY_MARGIN and fewest >= EASY_LABELS and not self.shares_errors)


class Design(NamedTuple):
    """Class shares, relative activity of annotators, and numbers of items and of labels."""

    prior: Array
    activity: Array
    n_items: int
    labels_per_item: int

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of annotators and of classes."""
        return len(self.activity), len(self.prior)


def draw_design(rng: Rng, *, n_classes: int | None = None, uneven: float = 0.5) -> Design:
    """Draw 2 to 6 classes, 10 to 60 annotators, 300 to 1,000 items, 3 to 7 labels per item.

    Class shares are Dirichlet with 8 counts per class. With probability `uneven`, few annotators
    give most of the labels: activities are .05 plus exponential; otherwise all are equal.
    """
    classes = int(rng.integers(2, 7)) if n_classes is None else n_classes
    n_annotators = int(rng.integers(10, 61))
    activity = rng.exponential(size=n_annotators) + 0.05
    return Design(
        prior=rng.dirichlet(np.full(classes, 8.0)),
        activity=activity if rng.random() < uneven else np.ones(n_annotators),
        n_items=int(rng.integers(300, 1001)),
        labels_per_item=int(rng.integers(3, 8)),
    )


def diagonal_matrices(diagonal: Array) -> Array:
    """Return matrices with a given diagonal and uniform errors.

    Parameters
    ----------
    diagonal : ndarray of shape (n_annotators, n_classes)

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
    """
    n_classes = diagonal.shape[1]
    errors = (1 - diagonal) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), diagonal[:, :, None], errors[:, :, None])


def one_coin(skill: Array, n_classes: int) -> Array:
    """Return matrices of annotators with one probability of a correct label each."""
    return diagonal_matrices(np.repeat(skill[:, None], n_classes, axis=1))


def scatter_rows(rng: Rng, mean: Array, strength: float) -> Array:
    """Draw each row from a Dirichlet distribution around `mean` with `strength` counts."""
    drawn = rng.gamma(np.maximum(mean * strength, 1e-3))
    rows: Array = drawn / drawn.sum(axis=-1, keepdims=True)
    return rows


def draw_skilled(
    rng: Rng, n_annotators: int, n_classes: int, mean_skill: tuple[float, float]
) -> Array:
    """Draw annotators of various skills and uneven errors.

    The mean skill of the crowd is uniform on `mean_skill`, skills are normal around it with a
    deviation of .12, from .03 above chance to .98, and rows are Dirichlet around one coin with 5
    to 60 counts.
    """
    skill = rng.normal(rng.uniform(*mean_skill), 0.12, n_annotators).clip(
        1 / n_classes + 0.03, 0.98
    )
    return scatter_rows(rng, one_coin(skill, n_classes), rng.uniform(5, 60))


def draw_spammers(rng: Rng, n_annotators: int, n_classes: int) -> Array:
    """Draw annotators who answer independently of the item.

    A third each answer uniformly, nearly always (.95) the same class, or by a label marginal of
    their own, uniform on the simplex.
    """
    uniform = np.full((n_annotators, n_classes), 1 / n_classes)
    constant = 0.95 * np.eye(n_classes)[rng.integers(n_classes, size=n_annotators)] + 0.05 * uniform
    marginal = rng.dirichlet(np.ones(n_classes), n_annotators)
    kind = rng.integers(3, size=n_annotators)
    answers = np.stack([uniform, constant, marginal])[kind, np.arange(n_annotators)]
    return np.repeat(answers[:, None], n_classes, axis=1)


def draw_classes(rng: Rng, probabilities: Array) -> Codes:
    """Draw a class from each row of probabilities, shape (..., n_classes)."""
    uniform = rng.random(probabilities.shape[:-1])
    passed = uniform[..., None] >= probabilities.cumsum(axis=-1)[..., :-1]
    drawn: Codes = passed.sum(axis=-1)
    return drawn


def draw_items(rng: Rng, design: Design) -> tuple[Codes, Codes, Codes]:
    """Draw the true classes (n_items,), and the item and the annotator of each label."""
    truth = rng.choice(len(design.prior), design.n_items, p=design.prior)
    n_annotators, k = len(design.activity), design.labels_per_item
    return truth, *assign_annotators(design.n_items, n_annotators, k, design.activity, rng)


def make_table(
    design: Design, truth: Codes, item: Codes, annotator: Codes, label: Codes
) -> LabelTable:
    """Return the labels of a crowd as a table with truth."""
    n_annotators, n_classes = design.shape
    return LabelTable.from_codes(
        item,
        annotator,
        label,
        n_items=design.n_items,
        n_annotators=n_annotators,
        n_classes=n_classes,
        truth=truth,
    )


def sum_by_item(table: LabelTable, values: Array) -> Array:
    """Sum values of labels, shape (n_labels, ...), over each item; all items have labels."""
    return np.add.reduceat(values, table.offsets[:-1], axis=0)


def posterior(prior: Array, log_likelihood: Array) -> Array:
    """Return Bayes' posterior given the log-likelihood of each class, (n_items, n_classes)."""
    return softmax(np.log(prior) + log_likelihood, axis=1)


def safe_log(probability: Array) -> Array:
    """Return the logarithm of probabilities that may have underflowed to zero."""
    return np.log(np.maximum(probability, TINY))


def label_independently(rng: Rng, design: Design, confusion: Array) -> Crowd:
    """Draw labels that are independent given the class, as Dawid and Skene assume."""
    truth = rng.choice(len(design.prior), design.n_items, p=design.prior)
    table = simulate_labels(
        truth,
        confusion,
        labels_per_item=design.labels_per_item,
        activity=design.activity,
        random_state=rng,
    )
    likelihood = safe_log(confusion[table.annotator, :, table.label])
    return Crowd(table, posterior(design.prior, sum_by_item(table, likelihood)), confusion)
