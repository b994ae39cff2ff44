"""Simulated labels: which annotator labels which item, and the label."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.codes import Seed, check_codes
from annotrace.labels.vocabulary import Codes

_CHUNK = 1 << 18


def simulate_labels(
    truth: ArrayLike,
    confusion: NDArray[np.float64],
    *,
    labels_per_item: int | None = None,
    activity: ArrayLike | None = None,
    labels_per_annotator: ArrayLike | None = None,
    random_state: Seed = None,
) -> LabelTable:
    """Draw labels by annotators with known confusion matrices for items of known class.

    Parameters
    ----------
    truth : array-like of int, shape (n_items,)
        The true class of each item; all must be known.
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    labels_per_item : int, optional
        The number of annotators, drawn at random, who label each item; all by default.
    activity : array-like of shape (n_annotators,), optional
        Relative frequency of labelling of each annotator; uniform by default.
    labels_per_annotator : array-like of int, shape (n_annotators,), optional
        Instead of both: the number of items, drawn at random, that each annotator labels.
    random_state : int, Generator or None

    Returns
    -------
    LabelTable
        Including the truth.

    Examples
    --------
    >>> from annotrace.simulate import hammer_spammers
    >>> simulate_labels([0, 1, 2, 1], hammer_spammers(5, 3, skill=0.7, random_state=0),
    ...                 labels_per_item=2, random_state=0)
    LabelTable(4 items, 5 annotators, 3 classes, 8 labels)
    """
    rng = np.random.default_rng(random_state)
    n_annotators, n_classes, _ = confusion.shape
    classes = check_codes(truth, n_classes, "truth")
    if labels_per_annotator is None:
        item, annotator = assign_annotators(
            len(classes), n_annotators, labels_per_item, activity, rng
        )
    else:
        item, annotator = assign_items(len(classes), labels_per_annotator, rng)
    label = draw_labels(confusion, annotator, classes[item], rng)
    return LabelTable.from_codes(
        item,
        annotator,
        label,
        n_items=len(classes),
        n_annotators=n_annotators,
        n_classes=n_classes,
        truth=classes,
    )


def assign_annotators(
    n_items: int,
    n_annotators: int,
    labels_per_item: int | None = None,
    activity: ArrayLike | None = None,
    random_state: Seed = None,
) -> tuple[Codes, Codes]:
    """Draw distinct annotators for each item.

    Returns
    -------
    item, annotator : ndarray of shape (n_labels,), int32
    """
    k = n_annotators if labels_per_item is None else labels_per_item
    if not 1 <= k <= n_annotators:
        raise InputError(
            f"Expected `labels_per_item` to be from 1 to {n_annotators}, the number of "
            f"annotators, but got {k}."
        )
    item = np.repeat(np.arange(n_items, dtype=np.int32), k)
    if k == n_annotators:
        return item, np.tile(np.arange(n_annotators, dtype=np.int32), n_items)
    rng = np.random.default_rng(random_state)
    return item, _draw_distinct(n_items, k, _probabilities(activity, n_annotators), rng).ravel()


def assign_items(
    n_items: int, labels_per_annotator: ArrayLike, random_state: Seed = None
) -> tuple[Codes, Codes]:
    """Draw a given number of distinct items for each annotator.

    Returns
    -------
    item, annotator : ndarray of shape (n_labels,), int32
    """
    counts = np.asarray(labels_per_annotator)
    if counts.size == 0 or counts.min() < 0 or counts.max() > n_items:
        raise InputError(
            f"Expected `labels_per_annotator` to be from 0 to {n_items}, the number of items, "
            f"but got {labels_per_annotator!r}."
        )
    rng = np.random.default_rng(random_state)
    drawn = [rng.choice(n_items, size, replace=False) for size in counts]
    annotator = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    return np.concatenate(drawn).astype(np.int32), annotator


def _probabilities(activity: ArrayLike | None, n_annotators: int) -> NDArray[np.float64]:
    weights = np.ones(n_annotators) if activity is None else np.asarray(activity, float)
    if weights.shape != (n_annotators,) or np.any(weights <= 0):
        raise InputError(
            f"Expected `activity` to be {n_annotators} numbers above 0, but got {activity!r}."
        )
    probabilities: NDArray[np.float64] = weights / weights.sum()
    return probabilities


def _draw_distinct(
    n_items: int, k: int, probabilities: NDArray[np.float64], rng: np.random.Generator
) -> Codes:
    """Draw k distinct annotators for each item, one after the other, redrawing repeats."""
    cumulative = np.cumsum(probabilities)
    cumulative[-1] = 1.0
    drawn = np.empty((n_items, k), np.int32)
    for place in range(k):
        undrawn = np.arange(n_items)
        while len(undrawn):
            choice = np.searchsorted(cumulative, rng.random(len(undrawn)), side="right")
            drawn[undrawn, place] = choice
            taken = (drawn[undrawn, :place] == choice[:, None]).any(axis=1)
            undrawn = undrawn[taken]
    return drawn


def draw_labels(
    confusion: NDArray[np.float64],
    annotator: NDArray[np.integer],
    true: NDArray[np.integer],
    rng: np.random.Generator,
) -> Codes:
    """Draw the label of each pair of annotator and true class, shape (n_labels,).

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
    annotator, true : ndarray of int, shape (n_labels,)
    rng : Generator
    """
    cumulative = confusion.cumsum(axis=2)
    uniform = rng.random(len(annotator))
    label = np.empty(len(annotator), np.int32)
    for start in range(0, len(label), _CHUNK):
        part = slice(start, start + _CHUNK)
        label[part] = (uniform[part, None] >= cumulative[annotator[part], true[part]]).sum(axis=1)
    # A row may sum to slightly less than one.
    return label.clip(max=confusion.shape[2] - 1)
