"""Choice of constants and models without scoring them on what they were chosen by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

Candidate = TypeVar("Candidate")


@dataclass(frozen=True)
class LeftOut(Generic[Candidate]):
    """What is chosen without one family, and how it does there.

    Attributes
    ----------
    family : str
        The family left out.
    chosen : Candidate
        The best in the mean over all other families.
    score : float
        Its score on the family left out.
    best : float
        The highest score of any candidate on the family left out.
    """

    family: str
    chosen: Candidate
    score: float
    best: float


def choose_leaving_one_out(
    candidates: Sequence[Candidate],
    families: Sequence[str],
    score: Callable[[Candidate, str], float],
) -> list[LeftOut[Candidate]]:
    """Choose for each family the candidate with the highest mean score over all others.

    A family is a kind of simulated crowds or a real data set, left out as a whole. The first of
    equally good candidates is chosen, so list the simplest first.

    Parameters
    ----------
    candidates : sequence
        Models or values of a constant.
    families : sequence of str
        At least two.
    score : callable
        From a candidate and a family to its score, higher is better; called once for each pair.
    """
    if len(families) < 2:
        raise ValueError(f"Expected two or more families to leave one out, but got {families}.")
    scores = np.array([[score(each, family) for family in families] for each in candidates])
    chosen = [int(np.delete(scores, k, axis=1).mean(axis=1).argmax()) for k in range(len(families))]
    return [
        LeftOut(family, candidates[c], float(scores[c, k]), float(scores[:, k].max()))
        for k, (family, c) in enumerate(zip(families, chosen, strict=True))
    ]
