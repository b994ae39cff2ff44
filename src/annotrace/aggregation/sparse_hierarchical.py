"""`hierarchical` by the cells that labels touch: the same model for many annotators or classes.

An annotator with ten labels touches ten columns of a matrix, and of these the cells of classes that
the items may have (`annotrace.crowd.report_cells`). All other cells are at their prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from annotrace.aggregation.em_model import EMModel
from annotrace.crowd.cell_counts import CellCounts, ReportColumns
from annotrace.crowd.digamma import digamma
from annotrace.crowd.dirichlet import (
    LARGEST,
    SMALLEST,
    VAGUE,
    divergence,
    expected_log,
    log_vague,
)
from annotrace.crowd.em import clamp_to_gold, matrices_from_counts, normalize_joint
from annotrace.crowd.item_difficulty import MAX_GUESSED, cap_doubtful, margin
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.report_cells import ReportCells, Support
from annotrace.crowd.skill_prior import SkillPrior
from annotrace.errors import InputError

N_LEVELS = 2
# Iterations after which the classes that items may have are found anew.
REFRESH = (3, 10)
# Entries of arrays (n_labels, n_classes) that are made at a time.
BLOCK = 2**21


class SparseHierarchicalModel(EMModel):
    """As `HierarchicalModel`, with counts of the cells that labels touch.

    The state of `e_step` has a row for each pair of an item and a class that it may have, and a
    column for clear and one for doubtful.
    """

    code: Tensor
    count: Tensor
    marginal: Tensor
    guesses: Tensor
    guess_rate: Tensor
    classes: Tensor
    levels: Tensor

    def __init__(self, problem: CrowdProblem) -> None:
        problem.check_whole(
            "Crowds whose confusion matrices have more cells than there are labels are fitted by "
            "`hierarchical` and `ensemble`"
        )
        super().__init__(problem)
        n_annotators, n, _ = problem.shape
        blank = torch.empty(0, dtype=problem.dtype)
        self.annotators = SkillPrior(n_annotators, n, _agreement(problem), problem.dtype)
        self.register_buffer("code", torch.empty(0, dtype=torch.int64))
        self.register_buffer("count", blank)
        self.register_buffer("marginal", blank.new_full((1, 1, n), 4 / n))
        self.register_buffer("guesses", blank.new_full((n_annotators, 1, n), 4 / n))
        self.register_buffer("guess_rate", blank.new_tensor(0.5))
        self.register_buffer("classes", torch.ones(1, 1, n, dtype=torch.float64))
        self.register_buffer("levels", torch.ones(1, 1, 2, dtype=torch.float64))
        self._cells: ReportCells | None = None
        self._seen = blank.new_tensor(0.5)
        self._n_steps = 0

    def initial_state(self, problem: CrowdProblem) -> Tensor:
        """Return the votes, split into clear and doubtful by the lead of the first class."""
        votes = problem.votes()
        clear = 0.1 + 0.8 * margin(votes)
        return torch.cat([votes * clear, votes * (1 - clear)], 1)

    def prepare_for(self, saved: Mapping[str, Tensor]) -> None:
        """Make room for the counts that a run has saved."""
        code = saved.get("code", self.code)
        n_cells = self.n_annotators * self.n_classes**2
        if code.dim() != 1 or bool((code.diff() <= 0).any() | (code < 0).any()):
            raise InputError("Expected `annotators.code` to be ascending and not negative.")
        if len(code) and int(code[-1]) >= n_cells:
            raise InputError(f"Expected `annotators.code` to be below {n_cells}.")
        self.code, self.count = self.code.new_zeros(len(code)), self.count.new_zeros(len(code))

    def warm_start(self, previous: EMModel) -> None:
        """Copy what was learned from fewer annotators, items or classes; counts follow."""
        super().warm_start(previous)
        self.annotators.normalize_pattern()

    def m_step(self, problem: CrowdProblem, state: Tensor) -> None:
        """Update counts and their prior, guesses, class shares and the share of doubt."""
        if state.shape[1] > N_LEVELS:
            self._cells = self._find_cells(problem, state)
            self._seen = self._seen_in(self._cells)
            state = self._cells.select(state)
        cells = self._known_cells()
        clear, doubtful = cells.counts(state).unbind(1)
        guessed = doubtful * (1 - self._seen)
        rate = (guessed.sum() + 1) / (doubtful.sum() + 2)
        self.guess_rate = rate.clamp(max=MAX_GUESSED)
        self.code, self.count = cells.code, clear + doubtful - guessed
        self._n_row = cells.sum_rows(self.count)
        alpha = cells.derived.pop("alpha", None)
        self.annotators.update_from_cells(cells, self.count, self._n_row, alpha)
        counted = cells.sum_columns(guessed)[:, None]
        self.marginal = _update_marginal(counted, self.marginal)
        self.guesses = counted + self.marginal
        self.classes = 1 + cells.sum_classes(state.sum(1))[None, None]
        self.levels = cap_doubtful(1 + state.sum(0, dtype=torch.float64))[None, None]
        self.prior = (self.classes / self.classes.sum()).flatten().to(problem.dtype)

    def e_step(self, problem: CrowdProblem) -> tuple[Tensor, float]:
        """Return states and the evidence lower bound.

        The states are those of pairs, (n_pairs, 2), or after some iterations of all classes,
        (n_items, 2 * n_classes), in which the next M-step looks for the classes that items may
        have.
        """
        if self._cells is None:
            self.m_step(problem, self.all_states(problem))
        cells = self._known_cells()
        alpha, logs, log_guesses = self._expected_logs(cells)
        by_level = self._by_level(logs, log_guesses.flatten().index_select(0, cells.column))
        self._seen = self._seen_given(by_level)
        log_joint = cells.sum_by_pair(by_level)
        log_joint += self._log_prior().t().contiguous().index_select(0, cells.pair_true)
        state, log_evidence = cells.normalize(log_joint)
        bound = log_evidence - float(self._lost(cells, alpha, logs, log_guesses))
        self._n_steps += 1
        return (self.all_states(problem) if self._n_steps in REFRESH else state), bound

    def all_states(self, problem: CrowdProblem, state: Tensor | None = None) -> Tensor:
        """Return the states of items for all classes, shape (n_items, 2 * n_classes)."""
        if state is not None:
            # The iterations have ended: the cells would take as much memory as the labels.
            self._cells = None
        log_joint = self._sum_states(problem.labels).add_(self._log_prior().flatten())
        clamp_to_gold(log_joint, problem.gold, self.n_classes)
        return normalize_joint(log_joint)[0]

    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices averaged over clear and doubtful items."""
        who = torch.arange(self.n_annotators) if annotators is None else annotators
        counts = self._counts().dense(who)
        seen = matrices_from_counts(counts + self.annotators.alpha(who))
        by_guess = self._share_guessed()
        return seen.mul_(1 - by_guess).add_(matrices_from_counts(self.guesses[who]) * by_guess)

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator), averaged over items."""
        columns = self._counts().columns()
        row_logs = self._row_logs(columns, at_means=True)
        seen = self._seen_logs(columns, row_logs, annotator, label, at_means=True)
        guesses = matrices_from_counts(self.guesses[:, 0])[annotator, label]
        by_guess = self._share_guessed()
        return torch.logaddexp(seen + torch.log1p(-by_guess), (guesses * by_guess).log()[:, None])

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, summed over clear and doubtful."""
        by_state = self._sum_states(labels, at_means=True)
        levels = (self.levels.flatten() / self.levels.sum()).log().to(by_state)
        by_state.view(-1, N_LEVELS, self.n_classes).add_(levels[:, None])
        return torch.logsumexp(by_state.view(-1, N_LEVELS, self.n_classes), 1)

    def learned(self) -> dict[str, Any]:
        """Return what the aggregation shows of the model, by attribute name."""
        strength = self.annotators.strength
        return {"guess_rate_": float(self.guess_rate), "strength_": float(strength)}

    # Cells that labels touch

    def _find_cells(self, problem: CrowdProblem, state: Tensor) -> ReportCells:
        posterior = state.view(len(state), N_LEVELS, -1).sum(1)
        support = Support.from_posterior(posterior, problem.uninformed)
        return ReportCells(problem.table, support, problem.dtype)

    def _known_cells(self) -> ReportCells:
        assert self._cells is not None
        return self._cells

    def _seen_in(self, cells: ReportCells) -> Tensor:
        """Return how probable it is that a doubtful label of each cell is not a guess."""
        if len(self.code) == 0:
            return torch.tensor(0.5, dtype=self.count.dtype)
        self.count = self._counts().of_cells(cells.code)
        self._n_row = cells.sum_rows(self.count)
        _, logs, log_guesses = self._expected_logs(cells)
        return self._seen_given(self._by_level(logs, log_guesses.flatten()[cells.column]))

    def _expected_logs(self, cells: ReportCells) -> tuple[Tensor, Tensor, Tensor]:
        """Return parameters of the prior, log p of cells and of guesses, as expected."""
        alpha = self.annotators.alpha_of_cells(cells)
        # The next M-step starts from the same prior.
        cells.derived["alpha"] = alpha
        total = digamma(self._n_row + self.annotators.strength)
        logs = digamma(self.count + alpha).sub_(total.index_select(0, cells.row))
        return alpha, logs, expected_log(self.guesses)

    def _lost(self, cells: ReportCells, alpha: Tensor, logs: Tensor, log_guesses: Tensor) -> Tensor:
        """Return what the lower bound is below the log evidence at the expected logs."""
        prior = self.annotators.strength
        lost = _divergence(self.count, alpha, logs, self._n_row, prior)
        guessed, marginal = self.guesses - self.marginal, self.marginal
        lost += _divergence(guessed, marginal, log_guesses, guessed.sum(2), marginal.sum())
        for counts in (self.classes, self.levels):
            lost += divergence(counts, torch.ones_like(counts), expected_log(counts))
        lost -= self.annotators.log_density() + log_vague(self.marginal)
        return lost - (self.guess_rate * (1 - self.guess_rate)).log()

    # Labels in each state

    def _by_level(self, logs: Tensor, log_guesses: Tensor) -> Tensor:
        """Return log p(label | clear) and log p(label | doubtful), shape (n_cells, 2)."""
        return torch.stack([logs, self._doubtful(logs, log_guesses)], 1)

    def _doubtful(self, logs: Tensor, log_guesses: Tensor) -> Tensor:
        """Return log p(label | doubtful) from those of what is seen and of guesses."""
        seen, guessed = logs + torch.log1p(-self.guess_rate), log_guesses + self.guess_rate.log()
        return torch.logaddexp(seen, guessed)

    def _seen_given(self, by_level: Tensor) -> Tensor:
        return (by_level[:, 0] + torch.log1p(-self.guess_rate) - by_level[:, 1]).exp_()

    def _log_prior(self) -> Tensor:
        """Return the expected log-probability of each level and class, (2, n_classes)."""
        levels, classes = expected_log(self.levels), expected_log(self.classes)
        return (levels.view(N_LEVELS, 1) + classes.view(1, -1)).to(self.count.dtype)

    def _share_guessed(self) -> Tensor:
        return (self.guess_rate * self.levels[0, 0, 1] / self.levels.sum()).to(self.count.dtype)

    def _counts(self) -> CellCounts:
        return CellCounts(self.code, self.count, self.n_annotators, self.n_classes)

    def _sum_states(self, labels: LabelIndex, *, at_means: bool = False) -> Tensor:
        """Return the log-likelihood of each item's labels by state, (n_items, 2 * n_classes)."""
        columns = self._counts().columns()
        guesses = self.guesses[:, 0]
        log_guesses = matrices_from_counts(guesses).log() if at_means else expected_log(guesses)
        row_logs = self._row_logs(columns, at_means=at_means)
        total = self.count.new_zeros(labels.n_rows, N_LEVELS * self.n_classes)
        size = max(BLOCK // self.n_classes, 1)
        parts = (part.split(size) for part in (labels.row, labels.annotator, labels.label))
        for row, annotator, label in zip(*parts, strict=True):
            logs = self._seen_logs(columns, row_logs, annotator, label, at_means=at_means)
            guessed = log_guesses[annotator, label][:, None].expand_as(logs)
            # torch is several times slower with a column that is repeated in place.
            doubtful = self._doubtful(logs, guessed.contiguous())
            total.index_add_(0, row, torch.cat([logs, doubtful], 1))
        return total

    def _row_logs(self, columns: ReportColumns, *, at_means: bool) -> Tensor:
        """Return what the logarithms of each row are normalised by, (n_annotators, n_classes)."""
        total = columns.rows + self.annotators.strength
        return total.log() if at_means else digamma(total)

    def _seen_logs(
        self,
        columns: ReportColumns,
        row_logs: Tensor,
        annotator: Tensor,
        label: Tensor,
        *,
        at_means: bool,
    ) -> Tensor:
        """Return log p(label | class) of what is seen, expected or at the posterior means."""
        own = columns.of(annotator, label) + self.annotators.alpha_of_labels(annotator, label)
        logs = own.log() if at_means else digamma(own)
        return logs.sub_(row_logs.index_select(0, annotator))


def _agreement(problem: CrowdProblem) -> float:
    """Return how often a label agrees with the others of its item, itself included."""
    votes, table = problem.votes(), problem.table
    item, label = (torch.from_numpy(part.astype(np.int64)) for part in (table.item, table.label))
    return float(votes[item, label].mean(dtype=torch.float64))


def _update_marginal(guessed: Tensor, alpha: Tensor) -> Tensor:
    """Return the shared prior of guesses after one fixed-point step; see `update_pool`."""
    weighted = (digamma(guessed + alpha) - digamma(alpha)).sum((0, 1), dtype=torch.float64) * alpha
    total = alpha.sum()
    rate = (digamma(guessed.sum(2) + total) - digamma(total)).sum(dtype=torch.float64)
    return ((weighted + VAGUE) / (rate + VAGUE)).clamp(SMALLEST, LARGEST).to(alpha.dtype)


def _divergence(
    counts: Tensor, alpha: Tensor, logs: Tensor, n_row: Tensor, strength: Tensor
) -> Tensor:
    """Return the divergence of Dirichlet posteriors from their priors; see `divergence`.

    Of the posterior counts, prior parameters and expected logarithms of cells, and the sums of
    counts and of prior parameters of rows.
    """
    lost = (counts * logs).sub_(torch.lgamma(counts + alpha)).add_(torch.lgamma(alpha))
    rows = torch.lgamma(n_row + strength) - torch.lgamma(strength)
    return lost.sum(dtype=torch.float64) + rows.sum(dtype=torch.float64)
