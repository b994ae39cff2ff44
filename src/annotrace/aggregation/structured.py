"""EM with a structure of confusion matrices that has few parameters, by the cells of labels."""

from __future__ import annotations

from torch import Tensor

from annotrace.aggregation.em_model import SMALLEST, EMModel
from annotrace.crowd.cell_structures import CellStructure
from annotrace.crowd.em import clamp_to_gold, normalize_joint
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.report_cells import ReportCells, Support
from annotrace.errors import InputError

# Labels times classes up to which all classes of an item are possible, and EM is exact.
FULL_SUPPORT = 2**21
# Iterations after which the classes that items may have are found anew.
REFRESH = (3, 10)


class StructuredModel(EMModel):
    """A `CellStructure` and class shares, learned from labels alone.

    The state of `e_step` is the posterior of pairs of an item and a class that it may have,
    (n_pairs, 1); the last E-step is over all classes.

    Parameters
    ----------
    problem : CrowdProblem
    structure : CellStructure
    """

    def __init__(self, problem: CrowdProblem, structure: CellStructure) -> None:
        super().__init__(problem)
        problem.check_whole("Structures other than 'full' and 'pooled' are fitted")
        if problem.prior_counts is not None:
            raise InputError("`prior_counts` need `structure='full'` or `structure='pooled'`.")
        self.structure = structure
        self._cells: ReportCells | None = None
        self._n_steps = 0

    def m_step(self, problem: CrowdProblem, state: Tensor) -> None:
        """Learn the structure and class shares from expected counts."""
        if self._cells is None or state.shape[1] > 1:
            self._cells = self._find_cells(problem, state)
            state = self._cells.select(state)
        self.structure.update(self._cells, self._cells.counts(state)[:, 0])
        total = 1 + self._cells.sum_classes(state[:, 0])
        self.prior = (total / total.sum()).to(problem.dtype)

    def e_step(self, problem: CrowdProblem) -> tuple[Tensor, float]:
        """Return the posterior and the log-likelihood plus the log prior of parameters."""
        if self._cells is None:
            self.m_step(problem, self.all_states(problem))
        cells = self._cells
        assert cells is not None
        logs, log_density = self.structure.expect(cells)
        log_joint = cells.sum_by_pair(logs[:, None])
        log_joint += self.prior.log().index_select(0, cells.pair_true)[:, None]
        state, log_evidence = cells.normalize(log_joint)
        objective = log_evidence + float(log_density + self.prior.log().sum())
        self._n_steps += 1
        refresh = self._n_steps in REFRESH and not self._is_exact(problem)
        return (self.all_states(problem) if refresh else state), objective

    def all_states(self, problem: CrowdProblem, state: Tensor | None = None) -> Tensor:
        """Return the posterior of items, shape (n_items, n_classes), at posterior means."""
        if state is not None:
            # The iterations have ended: the cells would take as much memory as the labels.
            self._cells = None
        log_joint = self.item_log_likelihood(problem.labels)
        log_joint += self.prior.clamp(min=SMALLEST).log()
        return normalize_joint(clamp_to_gold(log_joint, problem.gold, self.n_classes))[0]

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator), shape (n_labels, n_classes)."""
        return self.structure.log_likelihood(annotator, label, item)

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, shape (n_items, n_classes)."""
        return self.structure.item_log_likelihood(labels).to(self.prior.dtype)

    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices [annotator, true, reported]."""
        return self.structure.matrices(annotators, items)

    def _is_exact(self, problem: CrowdProblem) -> bool:
        return problem.table.n_labels * self.n_classes <= FULL_SUPPORT

    def _find_cells(self, problem: CrowdProblem, state: Tensor) -> ReportCells:
        if self._is_exact(problem):
            support = Support.of_all_classes(problem.table, problem.gold)
        else:
            support = Support.from_posterior(state, problem.uninformed)
        return ReportCells(problem.table, support, problem.dtype)
