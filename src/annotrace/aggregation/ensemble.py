"""The default: two methods that fail on different crowds, and a head count where both may.

No single method is safe on every crowd. `hierarchical` learns the most from labels, but takes a
rare class for noise and few experts for outliers; `weighted-vote` has one number per annotator and
a blunt posterior, and is hard to mislead. Their mean is better than either, with two safeguards.

* *Rare classes.* No class counts as rarer than an equal share. A class of 2 % is otherwise reported
  only where the evidence is fifty to one.
* *Shared errors.* If annotators whom the solution doubts agree with each other more than it
  explains (`annotrace.aggregation.second_opinion`), the crowd is divided, and weights by agreement
  favour those who share their errors. Then each annotator has one vote; and if about as many agree
  with what the doubted annotators say by themselves, that solution counts as much as the votes.

Constants were chosen by leaving one family of simulated crowds out, or one real crowd; what each
part gives is in `docs/aggregation.md`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from annotrace.aggregation.em_model import EMModel, by_class
from annotrace.aggregation.hierarchical import Hierarchical
from annotrace.aggregation.second_opinion import Solution, followers
from annotrace.aggregation.weighted_vote import vote_until_stable
from annotrace.crowd.label_pairs import labels_of
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.result import CrowdResult
from annotrace.parameters import Fraction, Number

# Of 45 settings, VOTE_WEIGHT .7 to 1.4, MIN_SHARE 0 to 1 and EXCESS .03 to .05, these were chosen
# in 27 of 30 cases with a family or a crowd left out, and are 0.8 points or more above majority
# vote in every family left out. Mean accuracies of the 45 differ by 0.3 points at most.
VOTE_WEIGHT = 0.7
# A class is at least so frequent, in equal shares, and its probability is raised so much at most.
MIN_SHARE, MAX_RAISE = 1.0, 50.0
# The excess agreement of doubted annotators at which votes count as much as the two methods, and
# how gradually they take over.
EXCESS, GRADUAL = 0.03, 0.008
# A smaller weight changes next to nothing, and costs half as much as the rest.
NEGLIGIBLE = 0.05
N_EQUAL_SKILL = 20
# The share of annotators at which what the doubted say begins to count, and counts in full.
FEW_HEADS, HALF_HEADS = 0.4, 0.5


@dataclass(kw_only=True, eq=False, repr=False)
class Ensemble(Hierarchical):
    """The mean of `Hierarchical` and a weighted vote; a head count if annotators share errors.

    Parameters
    ----------
    max_iter, tol, warm_iter, random_state
        As in `IterativeAggregation`, for each part.

    Attributes
    ----------
    excess_agreement_ : float
        How much more often annotators with low skill agree with each other than the model predicts;
        near 0 if annotators err independently.
    head_count_ : float
        How far the result is a vote in which annotators count alike, 0 to 1.
    """

    method: ClassVar[str] = "ensemble"
    chooses_by_gold: ClassVar[bool] = True
    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **Hierarchical.saved_attributes,
        "excess_agreement_": Number,
        "head_count_": Fraction,
    }

    def _conclude(
        self, problem: CrowdProblem, model: EMModel, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        self.excess_agreement_, self.head_count_ = 0.0, 0.0
        if not problem.is_comparable:
            return super()._conclude(problem, model, state)
        posterior = problem.set_gold(self._combine(problem, state))
        # The annotators of a solution are those that it implies.
        model.m_step(problem, _with_posterior(state, posterior, self._distrust))
        return posterior, model.all_states(problem)

    def _take(self, result: CrowdResult) -> None:
        by_gold = result.held_out is not None
        super()._take(replace(result, model_weight=1 if by_gold else 1 - self._distrust))

    def _use_gold(self, problem: CrowdProblem) -> None:
        super()._use_gold(problem)
        self.__dict__.pop("_both", None)

    def _evidence(self) -> NDArray[Any]:
        # The posterior is nearly certain of most items, where votes still differ.
        both = torch.stack([self._both, torch.from_numpy(self.posterior_)])
        return torch.softmax(both.clamp(min=1e-6).log().mean(0), 1).numpy()

    @property
    def _distrust(self) -> float:
        """How far the annotator model is not to be trusted, even where it names the same class."""
        return max(2 * self.head_count_ - 1, 0.0)

    def _combine(self, problem: CrowdProblem, state: Tensor) -> Tensor:
        """Return the posterior of the ensemble, shape (n_items, n_classes)."""
        alone = by_class(state, problem.shape[1]).sum(1)
        by_model = _raise_rare_classes(problem, alone)
        both = vote_until_stable(problem).mul_(VOTE_WEIGHT).add_(by_model).div_(1 + VOTE_WEIGHT)
        solution = Solution(problem, alone, dense=self._has_matrices(problem))
        self.excess_agreement_ = solution.excess_agreement(solution.doubted())
        weight = float(expit((self.excess_agreement_ - EXCESS) / GRADUAL))
        self.head_count_ = weight if weight > NEGLIGIBLE else 0.0
        if self.head_count_:
            votes, by_heads = self._count_heads(problem, solution)
            both = both.lerp(votes.to(both.dtype), self.head_count_)
            by_model = by_model.lerp(by_heads.to(both.dtype), self._distrust)
        # Shares of votes are blunt: they choose the class, and the model says how certain it is.
        self._both = both
        same = by_model.argmax(1, keepdim=True) == both.argmax(1, keepdim=True)
        return torch.where(same, by_model, both)

    def _count_heads(self, problem: CrowdProblem, solution: Solution) -> tuple[Tensor, Tensor]:
        """Return votes and posterior if annotators count alike, (n_items, n_classes) each.

        Both include what the doubted annotators say by themselves if as many agree with that.
        """
        own = CrowdProblem(
            labels_of(problem.table, solution.doubted()), problem.gold, problem.prior_counts
        )
        fitted = Hierarchical(max_iter=self.max_iter, tol=self.tol).fit_problem(own)
        apart = torch.from_numpy(fitted.result_.posterior)
        others = Solution(problem, apart, dense=self._has_matrices(problem))
        share = followers(problem.table, others.agreement(), solution.agreement())
        weight = min(max((share - FEW_HEADS) / (HALF_HEADS - FEW_HEADS), 0), 1)
        alike = (problem.votes(), equal_skill_posterior(problem))
        votes, by_heads = ((part + weight * apart) / (1 + weight) for part in alike)
        return votes, by_heads


def equal_skill_posterior(problem: CrowdProblem) -> Tensor:
    """Return the posterior if all annotators were equally often correct, (n_items, n_classes).

    The most probable class is that of the majority vote; how often labels are correct is found by
    EM.
    """
    votes, n_classes = problem.tensor(problem.table.votes()), problem.shape[1]
    posterior = problem.votes()
    for _ in range(N_EQUAL_SKILL):
        right = float((posterior * votes).sum() / votes.sum())
        odds = right * (n_classes - 1) / max(1 - right, 1e-3)
        posterior = problem.set_gold(torch.softmax(votes * math.log(max(odds, 1.0)), dim=1))
    return posterior


def _raise_rare_classes(problem: CrowdProblem, posterior: Tensor) -> Tensor:
    """Return the posterior under class shares of at least an equal share."""
    share = problem.total(posterior)
    share = share / share.sum()
    least = MIN_SHARE / len(share)
    raise_by = share.clamp(min=least) / share.clamp(min=least / MAX_RAISE)
    raised = posterior * raise_by.to(posterior.dtype)
    return raised.div_(raised.sum(1, keepdim=True))


def _with_posterior(state: Tensor, posterior: Tensor, distrust: float) -> Tensor:
    """Return states (n_items, n_states) of another posterior, as clear or doubtful as before.

    As far as the model is not trusted all items are clear: it calls those doubtful on which a crowd
    divides.
    """
    shares = by_class(state, posterior.shape[1]) + 1e-12
    total = shares.sum(1, keepdim=True)
    shares.mul_(1 - distrust).div_(total)
    shares[:, 0] += distrust
    return shares.mul_(posterior[:, None]).reshape(state.shape)
