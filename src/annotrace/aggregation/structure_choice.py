"""Choose the structure of confusion matrices by the likelihood of held-out labels.

One label of every tenth item with three or more is held out. A structure is fitted to the rest for
a few iterations, and predicts each of them from its item's other labels and its annotator's matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from annotrace.aggregation.em_model import EMModel
from annotrace.crowd.problem import CrowdProblem
from annotrace.labels.table import LabelTable

MIN_LABELS = 3
SHARE = 0.1
N_ITER = 8
# Labels that are scored at most, and entries (n_labels, n_classes) at a time.
MAX_HELD_OUT, BLOCK = 20_000, 2**22


def held_out_loss(
    problem: CrowdProblem, make: Callable[[str, CrowdProblem], EMModel], names: Iterable[str]
) -> dict[str, float]:
    """Return the negative log-likelihood per held-out label of each structure.

    Parameters
    ----------
    problem : CrowdProblem
    make : callable
        Returns the model of a structure for a problem.
    names : iterable of str

    Returns
    -------
    dict from name to float
        Empty if no item has three labels.
    """
    problem.check_whole("`structure='auto'` compares structures")
    table = problem.table
    held_out = _hold_out(table)
    if len(held_out) == 0:
        return {}
    rest = np.ones(table.n_labels, bool)
    rest[held_out] = False
    sizes = table.n_items, table.n_annotators, table.n_classes
    codes = (part[rest] for part in (table.item, table.annotator, table.label))
    named = dict(zip(("n_items", "n_annotators", "n_classes"), sizes, strict=True))
    kept = CrowdProblem(LabelTable.from_codes(*codes, **named), problem.gold)
    codes = (part[held_out] for part in (table.item, table.annotator, table.label))
    labels = [torch.from_numpy(part.astype(np.int64)) for part in codes]
    return {name: _loss(make(name, kept), kept, labels) for name in names}


def _hold_out(table: LabelTable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the rows of the labels that are held out, always the same."""
    rng = np.random.default_rng(0)
    n_labels = table.labels_per_item()
    item = np.flatnonzero(n_labels >= MIN_LABELS)
    size = min(int(np.ceil(SHARE * len(item))), MAX_HELD_OUT)
    chosen = rng.choice(item, size, replace=False) if size else item
    return table.offsets[chosen] + rng.integers(np.maximum(n_labels[chosen], 1))


def _loss(model: EMModel, problem: CrowdProblem, labels: list[Tensor]) -> float:
    state = model.initial_state(problem)
    for _ in range(N_ITER):
        model.m_step(problem, state)
        state = model.e_step(problem)[0]
    log_posterior = model.all_states(problem, state).clamp(min=1e-12).log()
    total = 0.0
    for parts in zip(*(part.split(BLOCK // problem.shape[1]) for part in labels), strict=True):
        item, annotator, label = parts
        logs = model.log_likelihood(annotator, label) + log_posterior[item]
        total -= float(logs.logsumexp(1).sum(dtype=torch.float64))
    return total / len(labels[0])
