"""What a fitted crowd shows, measured: everything that the verdict rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotrace.diagnosis.copies import Copies, find_copies
from annotrace.diagnosis.counting import report_matrix, without_labels
from annotrace.diagnosis.flags import flag_annotators
from annotrace.diagnosis.identifiability import (
    Estimate,
    Overlap,
    best_names,
    class_distances,
    class_overlap,
    groups_of_annotators,
    margins,
    seen_by_others,
    smallest_singular_value,
)
from annotrace.diagnosis.prediction import LabelPrediction, PairInformation
from annotrace.diagnosis.uncertainty import CrowdPosterior, crowd_posterior
from annotrace.errors import InputError
from annotrace.labels.codes import check_truth
from annotrace.labels.table import LabelTable

# A log probability that no number of labels makes up for.
_IMPOSSIBLE = -1e9


@dataclass(frozen=True)
class Findings:
    """What was measured.

    Attributes
    ----------
    margins : Estimate
        Dominance margin of each class with its 90 % interval, arrays of shape (n_classes,).
    rivals : ndarray of shape (n_classes,), int
        The other class that is most often called by each class's name.
    labels_behind : ndarray of shape (n_classes,)
        Expected labels on items of each true class; `crowd.counts` has every cell.
    information : Estimate
        Nats a label by which the truth predicts labels better than their annotator's habit does.
    pairs : tuple of PairInformation
        How well each class is told from those most like it.
    groups : ndarray of shape (n_annotators,), int
        Which annotators are connected by items: 0 is the largest group, -1 has no labels.
    overlap : Overlap
        Whether annotators have seen the same classes.
    class_distances : ndarray of shape (n_classes, n_classes)
        How differently labels fall for every two classes, 0 to 1.
    smallest_singular_value : float
        Of all matrices side by side; 1 is best, 0 is singular.
    names : ndarray of shape (n_classes,), int
        The name that fits each class best; anything but its own is a permuted solution.
    copies : Copies
        Annotators who do not answer independently.
    flags : tuple of tuple of str
        What there is to say of each annotator.
    crowd : CrowdPosterior
        Intervals of skills and cells.
    labels_alone : bool
        Whether no classifier ties the items together.
    n_compared : int
        Labels that say something of who gave them: all, but for the only label of an item where
        neither a classifier nor the known class of the item is there to hold it against.
    table : LabelTable
    """

    margins: Estimate
    rivals: NDArray[np.int64]
    labels_behind: NDArray[np.float64]
    information: Estimate
    pairs: tuple[PairInformation, ...]
    groups: NDArray[np.int64]
    overlap: Overlap
    class_distances: NDArray[np.float64]
    smallest_singular_value: float
    names: NDArray[np.int64]
    copies: Copies
    flags: tuple[tuple[str, ...], ...]
    crowd: CrowdPosterior
    labels_alone: bool
    n_compared: int
    table: LabelTable


def examine(
    table: LabelTable,
    posterior: NDArray[Any],
    confusion: NDArray[Any],
    prior: NDArray[Any] | None = None,
    gold: NDArray[Any] | None = None,
    seed: int = 0,
) -> Findings:
    """Measure all that can be said of a crowd; parameters as in `diagnose`."""
    gold = np.full(table.n_items, -1) if gold is None else gold
    _check(table, posterior, confusion, gold)
    compared, log_prior = _what_is_compared(table, posterior, confusion, prior, gold)
    crowd = crowd_posterior(compared, log_prior, confusion, seed=seed)
    mean = crowd.mean_draws.mean(axis=0)
    matrices, n_labels = crowd.moments.cell_mean, table.labels_per_annotator()
    rivals = (mean - np.eye(len(mean))).argmax(axis=0)
    seen = crowd.counts.sum(axis=2), seen_by_others(table)
    distances = class_distances(matrices, n_labels)
    copies = find_copies(compared, log_prior, matrices)
    overlap = max(map(class_overlap, seen), key=lambda each: each.separation)
    prediction = LabelPrediction(compared, log_prior, matrices)
    return Findings(
        margins=margins(crowd.mean_draws),
        rivals=rivals,
        labels_behind=crowd.counts.sum(axis=(0, 2)),
        information=prediction.information(),
        pairs=tuple(prediction.pair_information(_most_alike(distances, rivals))),
        groups=groups_of_annotators(table, gold >= 0),
        overlap=overlap,
        class_distances=distances,
        smallest_singular_value=smallest_singular_value(matrices, n_labels),
        names=best_names(mean),
        copies=copies,
        flags=flag_annotators(crowd, copies, overlap, table),
        crowd=crowd,
        labels_alone=prior is not None and prior.ndim == 1,
        n_compared=compared.n_labels,
        table=table,
    )


def _most_alike(distances: NDArray[Any], rivals: NDArray[np.int64]) -> list[tuple[int, int]]:
    """List each class with its rival, and with the class whose labels fall most like its own."""
    nearest = (distances + np.eye(len(distances))).argmin(axis=0)
    pairs = [(k, int(other)) for others in (nearest, rivals) for k, other in enumerate(others)]
    return sorted({(min(pair), max(pair)) for pair in pairs})


def _what_is_compared(
    table: LabelTable,
    posterior: NDArray[Any],
    confusion: NDArray[Any],
    prior: NDArray[Any] | None,
    gold: NDArray[Any],
) -> tuple[LabelTable, NDArray[np.float64]]:
    """Give the labels that say something of annotators, and what is known without them.

    From labels alone, the only label of an item is right as far as anybody knows: it says nothing
    of its annotator, and counting it as right would. It does where the class is known.
    """
    if prior is None:
        log_prior = without_labels(posterior, report_matrix(table), confusion)
    elif prior.ndim == 2:
        log_prior = np.log(np.maximum(prior, 1e-12))
    else:
        log_prior = np.tile(np.log(np.maximum(prior, 1e-9)), (table.n_items, 1))
    known = np.flatnonzero(gold >= 0)
    log_prior[known] = _IMPOSSIBLE
    log_prior[known, gold[known]] = 0
    if prior is None or prior.ndim == 2:
        return table, log_prior
    compares = (table.labels_per_item() > 1) | (gold >= 0)
    return table.select_items(compares), log_prior[compares]


def _check(
    table: LabelTable, posterior: NDArray[Any], confusion: NDArray[Any], gold: NDArray[Any]
) -> None:
    n = table.n_classes
    if n < 2:
        raise InputError("The labels have one class only, and there is nothing to diagnose.")
    if posterior.shape != (table.n_items, n):
        raise InputError(
            f"Expected `posterior` of shape {(table.n_items, n)}, but got {posterior.shape}."
        )
    if confusion.shape != (table.n_annotators, n, n):
        raise InputError(
            f"Expected `confusion` of shape {(table.n_annotators, n, n)}, "
            f"but got {confusion.shape}."
        )
    check_truth(gold, table.n_items, n)
