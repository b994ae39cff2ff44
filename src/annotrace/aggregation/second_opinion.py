"""Whether annotators whom a solution doubts know something that it does not explain.

Annotators who share wrong answers agree with each other, so that every method that weights
annotators by agreement takes them for experts, and all others for poor. The poor then give it away:
annotators who merely guess agree no more than the solution predicts, but annotators who are right
where the solution is wrong agree with *each other*. Nothing in the labels shows which of two camps
is right; only that the crowd is divided, and how many annotators are on each side.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from annotrace.aggregation.solution_matrices import (
    MAX_CELLS,
    MatrixArray,
    MatrixCells,
    SolutionMatrices,
)
from annotrace.crowd.em import posterior
from annotrace.crowd.label_pairs import MAX_PAIRS, labels_of, pair_labels
from annotrace.crowd.problem import CrowdProblem
from annotrace.labels.table import LabelTable

Array = NDArray[np.float64]

# Labels by which an annotator has a full vote in a head count.
FULL_VOTE = 50


class Solution:
    """A solution, that is a posterior of the items, and the matrices that follow from it.

    Parameters
    ----------
    problem : CrowdProblem
    posterior : Tensor of shape (n_items, n_classes)
    dense : bool
        Whether to make an array of all matrices.
    """

    def __init__(
        self, problem: CrowdProblem, posterior: torch.Tensor, *, dense: bool = True
    ) -> None:
        self.table = problem.table
        self.posterior = posterior.numpy()
        make = MatrixArray if dense else MatrixCells
        self.matrices: SolutionMatrices = make(problem, posterior)
        self.accuracy = self.matrices.accuracy

    def doubted(self) -> NDArray[np.bool_]:
        """Whether each annotator is among the less accurate who gave half of the labels."""
        order = np.argsort(self.accuracy, kind="stable")
        n_labels = np.cumsum(self.table.labels_per_annotator()[order])
        median = self.accuracy[order[np.searchsorted(n_labels, n_labels[-1] / 2)]]
        doubted: NDArray[np.bool_] = self.accuracy <= median
        return doubted

    def excess_agreement(self, annotators: NDArray[np.bool_]) -> float:
        """Return how much more often two of these annotators agree than the solution predicts.

        Parameters
        ----------
        annotators : ndarray of bool, shape (n_annotators,)
        """
        table = labels_of(self.table, annotators)
        pairs = pair_labels(table, min(MAX_PAIRS, self.matrices.max_pairs))
        if len(pairs.first) == 0:
            return 0.0
        agree = table.label[pairs.first] == table.label[pairs.second]
        one, other = (table.annotator[part] for part in pairs)
        truth = self.posterior[table.item[pairs.first]]
        return float(np.mean(agree) - self.matrices.predict_agreement(one, other, truth).mean())

    def agreement(self) -> Array:
        """Return each annotator's agreement with what the others' labels say, (n_annotators,)."""
        table = self.table
        step = max(int(table.n_labels * table.n_classes / MAX_CELLS), 1)
        item, annotator, label = (
            codes[::step] for codes in (table.item, table.annotator, table.label)
        )
        own = torch.from_numpy(self.matrices.of_labels(annotator, label)).clamp(min=1e-6).log()
        both = torch.from_numpy(self.posterior[item]).clamp(min=1e-12).log()
        by_others = posterior(both, -own).numpy()[np.arange(len(label)), label]
        n_labels = np.bincount(annotator, minlength=table.n_annotators)
        return np.bincount(annotator, by_others, table.n_annotators) / np.maximum(n_labels, 1)


def followers(table: LabelTable, one: Array, other: Array) -> float:
    """Return the share of annotators who agree more with one solution than with another.

    Parameters
    ----------
    table : LabelTable
    one, other : ndarray of shape (n_annotators,)
        Agreement of each annotator, see `Solution.agreement`.
    """
    heads = np.minimum(table.labels_per_annotator(), FULL_VOTE)
    return float(np.average(one > other, weights=heads))
