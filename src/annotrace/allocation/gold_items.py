"""Which items an expert should check, and how many are needed to measure accuracy.

Two kinds of items are worth checking. A *random* sample measures: what share of it is correct is
that of all items, within an interval, whatever the model believes. The most *doubtful* items
improve: there the votes or the model are least sure of the estimated class, so that a check
corrects most. Doubtful items are harder than others and must not be part of a measurement, so the
frame says which item belongs to which part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from annotrace.allocation.next_labels import Fitted
from annotrace.crowd.gold_accuracy import gold_accuracy
from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis.confidence import calibrated_posterior, confidence
from annotrace.errors import InputError
from annotrace.estimators import check_fitted
from annotrace.labels.frames import convert_frame, named_series
from annotrace.parameters import Count, ProperFraction, Seed, check_value
from annotrace.seeds import seed_of

Array = NDArray[np.float64]

RANDOM, DOUBTFUL = "random", "doubtful"
RANDOM_SHARE = 0.5
# An accuracy near 1 may be an error of the model: the sample is as large as for this one at least.
HIGHEST = 0.95


def gold_items(
    model: Fitted,
    n_items: int | None = None,
    *,
    width: float | None = None,
    random_state: Seed = None,
) -> Any:
    """Choose the items that an expert should check, and say why.

    Parameters
    ----------
    model : fitted CrowdEstimator or Aggregation
    n_items : int, optional
        How many to check; by default as many random ones as `width` needs.
    width : float, optional
        Of the 90 % interval of the share of correct estimates. Random items come first, as many as
        it needs; by default half of the items are random.
    random_state : int, Generator, RandomState or None
        Draws the random part.

    Returns
    -------
    frame
        item, priority (1 is the first), part ("random" or "doubtful"), reason. Items that are gold
        already or have no labels are left out.

    Examples
    --------
    >>> import annotrace as at
    >>> table = at.LabelTable.from_wide([[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 1, 1]])
    >>> model = at.aggregation.make("dawid-skene").fit(table)
    >>> gold_items(model, 2, random_state=0).select("item", "part").rows()
    [(2, 'random'), (3, 'doubtful')]
    """
    check_fitted(model)
    result = model.result_
    if n_items is None and width is None:
        raise InputError("Expected `n_items` or `width`, but got neither.")
    if n_items is not None:
        check_value("n_items", n_items, Count)
    free = np.flatnonzero((result.gold < 0) & (result.table.labels_per_item() > 0))
    n_random = _n_random(result, n_items, width)
    shuffled = np.random.default_rng(seed_of(random_state)).permutation(free)
    random = shuffled[:n_random]
    rest = np.setdiff1d(free, random)
    doubt = _doubt(result)[rest]
    n_doubtful = 0 if n_items is None else n_items - len(random)
    doubtful = rest[np.argsort(-doubt, kind="stable")[:n_doubtful]]
    return convert_frame(_as_frame(result, random, doubtful), result.table.frame_library)


def gold_needed(model: Fitted, width: float) -> Any:
    """Return how many gold items 90 % intervals of a given width need.

    Parameters
    ----------
    model : fitted CrowdEstimator or Aggregation
    width : float
        Of the interval, from its lower to its upper end.

    Returns
    -------
    frame
        of ("estimates", then each annotator), accuracy (as estimated now), n_gold (gold items that
        count for it already), n_needed (items in all, chosen at random: an annotator who labelled
        a tenth of the items needs ten times as many as there are labels to check).
    """
    import polars as pl

    check_fitted(model)
    result = model.result_
    table = result.table
    accuracy, own_gold = _annotator_accuracies(result)
    labelled = int(np.sum(table.labels_per_item() > 0))
    n_labels = table.labels_per_annotator()
    of_labels = sample_size(accuracy, width, n_labels)
    needed = np.minimum(np.ceil(of_labels * labelled / np.maximum(n_labels, 1)), labelled)
    frame = pl.DataFrame(
        {
            "of": ["estimates", *(str(name) for name in table.annotators.tolist())],
            "accuracy": [_estimate_accuracy(result), *accuracy.tolist()],
            "n_gold": [_n_gold(result), *own_gold.tolist()],
            "n_needed": [estimates_needed(result, width), *needed.astype(np.int64).tolist()],
        }
    )
    return convert_frame(frame, table.frame_library)


def estimates_needed(result: CrowdResult, width: float) -> int:
    """Return the number of random gold items for an interval of the share of correct estimates."""
    labelled = int(np.sum(result.table.labels_per_item() > 0))
    return int(sample_size(np.array(_estimate_accuracy(result)), width, np.array(labelled)))


def sample_size(share: Array, width: float, population: NDArray[Any], level: float = 0.9) -> Array:
    """Return the size of a random sample that estimates a share with an interval of some width.

    Parameters
    ----------
    share : ndarray
        As expected.
    width : float
        Of the interval, from its lower to its upper end.
    population : ndarray
        What is sampled from, without replacement.
    level : float

    Examples
    --------
    >>> sample_size(np.array(0.8), 0.1, np.array([100, 10**6]))
    array([ 64., 174.])
    """
    check_value("width", width, ProperFraction)
    likely = np.clip(share, 1 - HIGHEST, HIGHEST)
    infinite = likely * (1 - likely) * np.square(2 * ndtri((1 + level) / 2) / width)
    size: Array = np.ceil(infinite / (1 + infinite / np.maximum(population, 1)))
    return size


def _n_random(result: CrowdResult, n_items: int | None, width: float | None) -> int:
    if width is None:
        assert n_items is not None
        return int(np.ceil(RANDOM_SHARE * n_items))
    missing = max(estimates_needed(result, width) - _n_gold(result), 0)
    return missing if n_items is None else min(missing, n_items)


def _n_gold(result: CrowdResult) -> int:
    return int(np.sum((result.gold >= 0) & (result.table.labels_per_item() > 0)))


def _estimate_accuracy(result: CrowdResult) -> float:
    """Return the share of correct estimates, by gold items predicted without their class."""
    labelled = result.table.labels_per_item() > 0
    known = (result.gold >= 0) & labelled
    if result.held_out is None:
        unknown = labelled & ~known
        return float(confidence(result)[unknown].mean()) if unknown.any() else 1.0
    return float(np.mean(result.held_out[known].argmax(axis=1) == result.gold[known]))


def _annotator_accuracies(result: CrowdResult) -> tuple[Array, NDArray[np.int64]]:
    """Return the accuracy of each annotator as estimated now, and their gold labels."""
    table = result.table
    if result.held_out is not None:
        found = gold_accuracy(table, result.gold, result.held_out)
        return found.value, found.n_gold
    is_gold = result.gold[table.item] >= 0
    correct = calibrated_posterior(result)[table.item, table.label]
    total = np.bincount(table.annotator, correct, table.n_annotators)
    n_gold = np.bincount(table.annotator[is_gold], minlength=table.n_annotators)
    return total / np.maximum(table.labels_per_annotator(), 1), n_gold


def _vote_shares(result: CrowdResult) -> Array:
    """Return the share of labels that report each item's estimated class, shape (n_items,)."""
    table = result.table
    agrees = table.label == result.estimate[table.item]
    n_agree = np.bincount(table.item[agrees], minlength=table.n_items)
    shares: Array = n_agree / np.maximum(table.labels_per_item(), 1)
    return shares


def _doubt(result: CrowdResult) -> Array:
    """Return how far an item is in doubt, by its votes or by the model, shape (n_items,)."""
    doubt: Array = 1 - np.minimum(_vote_shares(result), confidence(result))
    return doubt


def _as_frame(result: CrowdResult, random: NDArray[Any], doubtful: NDArray[Any]) -> Any:
    import polars as pl

    items = np.concatenate([random, doubtful])
    parts = [RANDOM] * len(random) + [DOUBTFUL] * len(doubtful)
    trust = confidence(result)
    reasons = ["random: measures the accuracy of all items"] * len(random)
    reasons += [_reason(result, item, trust[item]) for item in doubtful.tolist()]
    return pl.DataFrame(
        {
            "item": named_series(result.table.items, items),
            "priority": np.arange(1, len(items) + 1),
            "part": parts,
            "reason": reasons,
        },
        schema_overrides={"part": pl.String, "reason": pl.String},
    )


def _reason(result: CrowdResult, item: int, trust: float) -> str:
    table = result.table
    labels = table.label[table.offsets[item] : table.offsets[item + 1]]
    votes = np.bincount(labels, minlength=table.n_classes)
    estimate = result.estimate[item]
    against = votes[estimate] < votes.max()
    by = f"but {votes.max()} of" if against else f"by {votes[estimate]} of"
    says = f" say {table.classes[votes.argmax()]}" if against else ""
    return f"now {table.classes[estimate]} ({trust:.0%}), {by} {len(labels)} labels{says}"
