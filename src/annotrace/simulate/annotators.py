"""The annotators of the paper's experiments, with known confusion matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotrace.errors import InputError
from annotrace.labels.codes import Seed

SKILL_DEVIATION = 0.01

# The class that each of airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck
# is confused with.
_CIFAR10_PARTNERS = np.array([8, 9, 6, 5, 7, 3, 2, 4, 0, 1])


def pairwise_flippers(
    n_annotators: int, n_classes: int, skill: float, random_state: Seed = None
) -> NDArray[np.float64]:
    """Draw annotators who confuse each class with one other class.

    Each row has q on the diagonal and 1 - q on one other class, drawn uniformly; q is drawn from
    Normal(skill, 0.01) for each annotator.

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
        confusion[annotator, true, reported].
    """
    rng = np.random.default_rng(random_state)
    skills = _draw_skills(n_annotators, skill, rng)
    matrices = skills[:, None, None] * np.eye(n_classes)
    step = rng.integers(1, n_classes, size=(n_annotators, n_classes))
    true = np.arange(n_classes)
    partner = (true + step) % n_classes
    matrices[np.arange(n_annotators)[:, None], true, partner] = 1 - skills[:, None]
    return matrices


def hammer_spammers(
    n_annotators: int, n_classes: int, skill: float, random_state: Seed = None
) -> NDArray[np.float64]:
    """Draw annotators who are correct with probability q, and otherwise choose a class uniformly.

    The matrix is q I + (1 - q) / n_classes; q is drawn from Normal(skill, 0.01) per annotator.

    Returns
    -------
    ndarray of shape (n_annotators, n_classes, n_classes)
    """
    skills = _draw_skills(n_annotators, skill, np.random.default_rng(random_state))
    q = skills[:, None, None]
    return q * np.eye(n_classes) + (1 - q) / n_classes


def cifar10_annotators() -> NDArray[np.float64]:
    """Return the four annotators of the CIFAR-10 experiments, with a mean accuracy of 45 %.

    A hammer-spammer, one who confuses pairs of similar classes, one who confuses neighbouring
    class indices, and an adversary. The values are read off a figure of the paper.

    Returns
    -------
    ndarray of shape (4, 10, 10)
    """
    eye = np.eye(10)
    spammer = 0.5 * eye + 0.05
    similar = 0.6 * eye + 0.4 * eye[_CIFAR10_PARTNERS]
    neighbours = 0.5 * eye + 0.25 * (np.roll(eye, 1, axis=1) + np.roll(eye, -1, axis=1))
    adversary = 0.15 * eye + 0.85 * np.roll(eye, 3, axis=1)
    return np.stack([spammer, similar, neighbours, adversary])


def _draw_skills(n_annotators: int, skill: float, rng: np.random.Generator) -> NDArray[np.float64]:
    if not 0 <= skill <= 1:
        raise InputError(f"Expected `skill` to be from 0 to 1, but got {skill}.")
    return rng.normal(skill, SKILL_DEVIATION, n_annotators).clip(0, 1)
