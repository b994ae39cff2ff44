"""Flags of single annotators: likely spammers, adversaries, confused classes, few labels.

Flags are data; `annotrace.diagnosis.wording` turns them into words. A flag is raised where the
interval says so, not the estimate: annotators with few labels are flagged for nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.result import CrowdResult
from annotrace.crowd.skills import AnnotatorPosterior
from annotrace.labels.table import LabelTable

FlagKind: TypeAlias = Literal["spammer", "adversarial", "confuses", "few-labels", "no-labels"]

# With fewer labels per class a row of the matrix is hardly known, and the skill of two or three
# classes is known to .1 or .2 either way.
FEW_LABELS_PER_CLASS = 4
# A spammer's chance-corrected accuracy is significantly within .3 of zero. On 12 public crowds (by
# three aggregations) 249 of the 250 annotators flagged so, with ten items or more of known truth,
# are truly below .3; benchmarks/flags.py scores it on simulated crowds.
MAX_ACCURACY = 0.3
# Annotators who swap two classes are correct as often as by chance, but their answers depend on the
# item: by .8 if they swap two of three classes and err once in five.
MIN_DEPENDENCE, SPAMMER_DEPENDENCE = 0.3, 0.5
# Confusing one item in four of a class with the same other class is systematic.
SYSTEMATIC = 0.25


class Flag(NamedTuple):
    """One remark about one annotator.

    Attributes
    ----------
    kind : {"spammer", "adversarial", "confuses", "few-labels", "no-labels"}
    classes : tuple of int
        The true and the reported class, for "confuses"; empty otherwise.
    """

    kind: FlagKind
    classes: tuple[int, ...] = ()

    @property
    def needs_attention(self) -> bool:
        """Whether the flag says more than that there are few labels."""
        return self.kind not in ("few-labels", "no-labels")


Flags: TypeAlias = tuple[Flag, ...]


def flag_annotators(result: CrowdResult, *, comparable: bool = True) -> tuple[Flags, ...]:
    """Return the flags of each annotator.

    Parameters
    ----------
    result : CrowdResult
    comparable : bool
        Whether labels depend on the items, and annotators have labelled items of the same classes.
        If not, nobody is flagged for their answers: an annotator who sees one class, and reports
        it, looks like a spammer who always reports it.

    Returns
    -------
    tuple of length n_annotators
    """
    flags: dict[int, list[Flag]] = defaultdict(list)
    if comparable:
        _flag_answers(result.annotators, flags)
    own = _flag_few_labels(result.table)
    for who, answers in flags.items():
        own[who] = (*answers, *own[who])
    return tuple(own)


def _flag_few_labels(table: LabelTable) -> list[Flags]:
    n_labels = table.labels_per_annotator()
    kinds: tuple[Flags, ...] = ((), (Flag("few-labels"),), (Flag("no-labels"),))
    kind = np.where(n_labels < FEW_LABELS_PER_CLASS * table.n_classes, 1, 0) + (n_labels == 0)
    return [kinds[k] for k in kind.tolist()]


def _flag_answers(annotators: AnnotatorPosterior, flags: dict[int, list[Flag]]) -> None:
    shares = annotators.counts.sum(axis=(0, 2)) + 1
    shares /= shares.sum()
    dependence = answer_dependence(annotators.mean, shares)
    adversarial = annotators.skill_interval()[1] < 1 / len(shares)
    adversarial &= dependence >= MIN_DEPENDENCE
    low, high = annotators.chance_corrected_interval(shares)
    spammer = (low > -MAX_ACCURACY) & (high < MAX_ACCURACY)
    spammer &= (dependence < SPAMMER_DEPENDENCE) & ~adversarial
    for who in np.flatnonzero(spammer).tolist():
        flags[who].append(Flag("spammer"))
    for who in np.flatnonzero(adversarial).tolist():
        flags[who].append(Flag("adversarial"))
    for who, true, reported in _systematic_errors(annotators, ~spammer):
        flags[who].append(Flag("confuses", (true, reported)))


def _systematic_errors(
    annotators: AnnotatorPosterior, judged: NDArray[np.bool_]
) -> list[tuple[int, int, int]]:
    """List (annotator, true, reported) of systematic errors, the most frequent first."""
    errors = annotators.mean * ~np.eye(annotators.mean.shape[1], dtype=bool)
    frequent = np.flatnonzero((errors > SYSTEMATIC).any(axis=(1, 2)) & judged)
    low = annotators.cell_interval(annotators=frequent)[0] * (errors[frequent] > 0)
    place, true, reported = np.nonzero(low > SYSTEMATIC)
    order = np.argsort(-low[place, true, reported], kind="stable")
    cells = zip(frequent[place[order]], true[order], reported[order], strict=True)
    return [(int(who), int(k), int(j)) for who, k, j in cells]


def answer_dependence(matrices: NDArray[Any], class_shares: NDArray[Any]) -> NDArray[np.float64]:
    """Return how much the answers of annotators depend on the true class, (n_annotators,).

    The root of the mean squared distance of the rows from their mean, divided by its maximum: 0
    where all rows are equal, 1 for the identity and every other permutation, and q for q times the
    identity plus a random answer.

    Parameters
    ----------
    matrices : ndarray of shape (n_annotators, n_classes, n_classes)
    class_shares : ndarray of shape (n_classes,)
        Weights of the rows: little is known about rare classes.
    """
    from_mean = matrices - np.einsum("i,rij->rj", class_shares, matrices)[:, None]
    spread = np.einsum("i,rij,rij->r", class_shares, from_mean, from_mean, optimize=True)
    largest = 1 - np.square(class_shares).sum()
    dependence: NDArray[np.float64] = np.sqrt(spread / max(largest, 1e-9))
    return dependence
