r"""The default: annotators of their own skill with the pool's errors, items clear or doubtful.

No known method is best everywhere: some crowds want one number an annotator, some the full
matrix, and where annotators err *together*, on items that are hard for all, a full matrix
explains the hard items in place of the classes. This model contains the others.

* *Annotators.* Row k of the matrix of annotator r is drawn from a Dirichlet distribution whose
  mean is right with the annotator's own skill, :math:`d_r`, and errs as the pool does,
  :math:`q_{kj}`, and whose strength s is shared:
  :math:`\pi^{(r)}_k \sim Dir(s\,[d_r \delta_{kj} + (1 - d_r) q_{kj}])`. A large s is one coin,
  a small s is the full matrix, and s is learned.
* *Items.* An item is clear or doubtful. On a clear item annotators report by their matrix; on a
  doubtful one each label is, with probability lambda, a guess by the annotator's own habit
  :math:`g_r`, which says nothing of the truth (as in MACE, but by item). How many items are
  doubtful and how much is guessed is learned.

Variational Bayes; s, d and q maximise the evidence lower bound (`dirichlet`), which no iteration
lowers. `docs/aggregation.md` has what was tried and what each part gives.
"""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.aggregation.base import Aggregation, log_past
from annotrace.aggregation.dirichlet import (
    LARGEST,
    SMALLEST,
    VAGUE,
    divergence,
    expected_log,
    log_vague,
    pool,
    weighed_counts,
)
from annotrace.aggregation.evidence import Evidence

# Labels' worth of prior on an annotator's own skill; 2, 4 and 10 gave the same.
SKILL_WEIGHT = 2.0
PATTERN_WEIGHT = 1e-2


class SkillPrior:
    """The prior of all matrices: own skill, shared pattern of errors, shared strength.

    Parameters
    ----------
    evidence : Evidence
    typical : float
        The skill to begin with, and of an annotator of whom nothing is known.
    """

    def __init__(self, evidence: Evidence, typical: float) -> None:
        n_annotators, n, _ = evidence.shape
        self.typical = min(max(typical, 0.01), 0.99)
        self.strength = torch.tensor(4.0, dtype=evidence.dtype)
        self.skill = torch.full((n_annotators,), self.typical, dtype=evidence.dtype)
        self.wrong = ~torch.eye(n, dtype=torch.bool)
        self.pattern = self.wrong.to(evidence.dtype) / max(n - 1, 1)

    def keep(self, before: SkillPrior) -> None:
        """Take over what was learned from fewer annotators or classes."""
        n = len(before.pattern)
        self.skill[: len(before.skill)] = before.skill
        self.pattern[:n, :n] = before.pattern * self.pattern[:n, :n].sum(0)
        self.strength = before.strength

    def alpha(self) -> Tensor:
        """Give the parameters, shape (n_annotators, n_classes, n_classes)."""
        skill = self.skill[:, None, None]
        mean = torch.where(self.wrong, (1 - skill) * self.pattern, skill)
        return (self.strength * mean).clamp_(min=SMALLEST)

    def learn(self, counts: Tensor) -> None:
        """Take one step towards the skills, pattern and strength that make counts most probable.

        Parameters
        ----------
        counts : Tensor of shape (n_annotators, n_classes, n_classes)
        """
        weighed, rate = weighed_counts(counts, self.alpha())
        right = weighed.diagonal(dim1=1, dim2=2).sum(1) + SKILL_WEIGHT * self.typical
        total = weighed.sum((1, 2)) + SKILL_WEIGHT
        self.skill = (right / total).clamp(1e-3, 1 - 1e-3)
        pattern = (weighed.sum(0) + PATTERN_WEIGHT) * self.wrong
        self.pattern = pattern / pattern.sum(0).clamp(min=PATTERN_WEIGHT)
        strength = (weighed.sum() + VAGUE) / (rate.sum() + VAGUE)
        self.strength = strength.clamp(1e-2, LARGEST)

    def log_density(self) -> Tensor:
        """Log density of skills, pattern and strength, without its constant."""
        right, wrong = self.skill.log().sum(), (1 - self.skill).log().sum()
        skill = SKILL_WEIGHT * (self.typical * right + (1 - self.typical) * wrong)
        pattern = PATTERN_WEIGHT * self.pattern[self.wrong].log().sum()
        return (skill + pattern).double() + log_vague(self.strength)


class Hierarchical(Aggregation):
    """Own skill, the pool's pattern of errors, and items that are clear or doubtful.

    Parameters
    ----------
    max_iter, tol, warm_iter, random_state
        As in `Aggregation`.

    Attributes
    ----------
    doubt_ : ndarray of shape (n_items,)
        Probability that an item is doubtful.
    guess_rate_ : float
        How often a label of a doubtful item is a guess.
    strength_ : float
        How alike the rows of an annotator are to skill and pattern, in labels.
    """

    doubt_: NDArray[Any]
    guess_rate_: float
    strength_: float

    def _start(self, evidence: Evidence) -> Tensor:
        votes = evidence.votes()
        counts = evidence.count(votes)
        agreement = counts.diagonal(dim1=1, dim2=2).sum() / counts.sum()
        self._annotators = SkillPrior(evidence, float(agreement))
        self._habit = votes.new_full((1, votes.shape[1], 1), 4 / votes.shape[1])
        self._seen = votes.new_full(evidence.shape, 0.5)
        clear = 0.1 + 0.8 * _margin(votes)
        return torch.cat([votes * clear, votes * (1 - clear)], 1)

    def _keep(self, before: Hierarchical) -> None:
        n_annotators, n, _ = before._seen.shape
        self._annotators.keep(before._annotators)
        self._habit[:, :n] = before._habit
        self._seen[:n_annotators, :n, :n] = before._seen

    def _learn(self, evidence: Evidence, state: Tensor) -> None:
        clear, doubtful = evidence.count(state).tensor_split(2, dim=2)
        seen, guessed = doubtful * self._seen, doubtful * (1 - self._seen)
        self._guess_rate = (guessed.sum() + 1) / (doubtful.sum() + 2)
        self._learn_matrices(evidence, clear + seen)
        self._learn_guesses(guessed.sum(2, keepdim=True))
        total = evidence.total(state).view(2, -1)
        self._classes = 1 + total.sum(0)[None, :, None]
        self._levels = 1 + total.sum(1)[None, :, None]

    def _learn_matrices(self, evidence: Evidence, counts: Tensor) -> None:
        if evidence.past is not None:
            counts = counts + evidence.past
        self._annotators.learn(counts)
        self._alpha = self._annotators.alpha()
        self._matrices = counts + self._alpha
        self._log_matrices = expected_log(self._matrices)

    def _learn_guesses(self, counts: Tensor) -> None:
        self._habit = pool(counts, self._habit)
        self._guesses = counts + self._habit
        self._log_guesses = expected_log(self._guesses)

    def _infer(self, evidence: Evidence) -> tuple[Tensor, float]:
        seen = self._log_matrices + torch.log1p(-self._guess_rate)
        either = torch.logaddexp(seen, self._log_guesses + self._guess_rate.log())
        self._seen = (seen - either).exp_()
        log_classes, log_levels = expected_log(self._classes), expected_log(self._levels)
        log_prior = (log_levels.view(2, 1) + log_classes.view(1, -1)).flatten().to(evidence.dtype)
        columns = torch.cat([self._log_matrices, either], 2)
        state, log_evidence = evidence.infer(columns, log_prior)
        return state, log_evidence + self._log_density(evidence, log_classes, log_levels)

    def _log_density(self, evidence: Evidence, log_classes: Tensor, log_levels: Tensor) -> float:
        """Give what the bound has besides the evidence: densities, less what posteriors cost."""
        lost = divergence(self._matrices, self._alpha, self._log_matrices)
        lost += divergence(self._guesses, self._habit, self._log_guesses)
        lost += divergence(self._classes, torch.ones_like(self._classes), log_classes)
        lost += divergence(self._levels, torch.ones_like(self._levels), log_levels)
        gained = self._annotators.log_density() + log_vague(self._habit)
        gained += (self._guess_rate * (1 - self._guess_rate)).log()
        return float(gained + log_past(evidence, self._log_matrices) - lost)

    def _describe(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        doubtful = self._levels[0, 1, 0] / self._levels.sum()
        by_habit = (doubtful * self._guess_rate).to(evidence.dtype)
        matrices = self._matrices / self._matrices.sum(1, keepdim=True)
        guesses = self._guesses / self._guesses.sum(1, keepdim=True)
        prior = self._classes.flatten() / self._classes.sum()
        return torch.lerp(matrices, guesses.expand_as(matrices), by_habit), prior

    def _finish(self, evidence: Evidence, state: Tensor) -> None:
        super()._finish(evidence, state)
        self.doubt_ = state[:, evidence.shape[1] :].sum(1).numpy()
        self.guess_rate_ = float(self._guess_rate)
        self.strength_ = float(self._annotators.strength)


def _margin(votes: Tensor) -> Tensor:
    """How far the first class is ahead of the second, shape (n_items, 1)."""
    if votes.shape[1] == 1:
        return torch.ones_like(votes)
    highest = votes.topk(2, dim=1).values
    return highest[:, :1] - highest[:, 1:]
