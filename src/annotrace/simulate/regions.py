"""Annotators who fail in a region of feature space."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.codes import Seed, check_codes
from annotrace.simulate.labelling import assign_annotators, draw_labels

Shape = Literal["half-space", "ball"]


def failing_regions(
    features: ArrayLike,
    n_annotators: int,
    *,
    share: float = 0.5,
    shape: Shape = "half-space",
    random_state: Seed = None,
) -> NDArray[np.bool_]:
    """Draw for each annotator a region of feature space that holds a share of the items.

    Features are standardised. A half-space lies across the line between two items drawn at random;
    a ball has its centre at an item drawn at random.

    Parameters
    ----------
    features : array-like of numbers, shape (n_items, ...)
    n_annotators : int
    share : float
        The share of items in each region, from 0 to 1.
    shape : {"half-space", "ball"}
    random_state : int, Generator or None

    Returns
    -------
    ndarray of bool, shape (n_annotators, n_items)

    Examples
    --------
    >>> failing_regions([[0.0], [1.0], [2.0], [3.0]], 2, random_state=0).sum(axis=1)
    array([2, 2])
    """
    if not 0 <= share <= 1:
        raise InputError(f"Expected `share` to be from 0 to 1, but got {share}.")
    if shape not in ("half-space", "ball"):
        raise InputError(f"Expected `shape` to be 'half-space' or 'ball', but got {shape!r}.")
    rows = np.asarray(features, np.float64)
    if len(rows) < 2:
        raise InputError(f"Expected at least two items, but got {len(rows)}.")
    rows = rows.reshape(len(rows), -1)
    deviation = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    rng = np.random.default_rng(random_state)
    regions = np.zeros((n_annotators, len(rows)), bool)
    for region in regions:
        first, second = rows[rng.choice(len(rows), 2, replace=False)]
        depth = rows @ (first - second)
        if shape == "ball":
            depth = -np.square(rows - first).sum(axis=1)
        region[np.argsort(-depth, kind="stable")[: round(share * len(rows))]] = True
    return regions


def simulate_regional_labels(
    truth: ArrayLike,
    confusion: NDArray[np.float64],
    failing: NDArray[np.float64],
    regions: NDArray[np.bool_],
    *,
    labels_per_item: int | None = None,
    activity: ArrayLike | None = None,
    random_state: Seed = None,
) -> LabelTable:
    """Draw labels by annotators with other confusion matrices inside a region than outside.

    Parameters
    ----------
    truth : array-like of int, shape (n_items,)
        The true class of each item; all must be known.
    confusion, failing : ndarray of shape (n_annotators, n_classes, n_classes)
        Outside and inside the region of each annotator.
    regions : ndarray of bool, shape (n_annotators, n_items)
        See `failing_regions`.
    labels_per_item, activity, random_state
        As in `simulate_labels`.

    Returns
    -------
    LabelTable
        Including the truth.

    Examples
    --------
    >>> from annotrace.simulate import hammer_spammers
    >>> able, guesses = (hammer_spammers(3, 2, skill, random_state=0) for skill in (0.9, 0.0))
    >>> regions = failing_regions([[0.0], [1.0], [2.0], [3.0]], 3, random_state=0)
    >>> simulate_regional_labels([0, 0, 1, 1], able, guesses, regions, random_state=0)
    LabelTable(4 items, 3 annotators, 2 classes, 12 labels)
    """
    rng = np.random.default_rng(random_state)
    n_annotators, n_classes, _ = confusion.shape
    classes = check_codes(truth, n_classes, "truth")
    if failing.shape != confusion.shape or regions.shape != (n_annotators, len(classes)):
        raise InputError(
            f"Expected `failing` of shape {confusion.shape} and `regions` of shape "
            f"{(n_annotators, len(classes))}, but got {failing.shape} and {regions.shape}."
        )
    item, annotator = assign_annotators(len(classes), n_annotators, labels_per_item, activity, rng)
    # Inside their regions annotators are others, who come after all.
    answering = annotator + n_annotators * regions[annotator, item]
    label = draw_labels(np.concatenate([confusion, failing]), answering, classes[item], rng)
    return LabelTable.from_codes(
        item,
        annotator,
        label,
        n_items=len(classes),
        n_annotators=n_annotators,
        n_classes=n_classes,
        truth=classes,
    )
