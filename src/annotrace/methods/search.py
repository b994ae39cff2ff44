"""How networks on folds may learn, and the choice among candidates without the truth.

No single criterion is safe, so several are used together, all of out-of-fold predictions: how
likely the labels are by them (`label_loss`), how often they equal a label (`agreement`), and the
probability that they give the classes of the posterior of the most likely candidate
(`consensus`). Candidates are in order of preference. A later one replaces those before it if labels
are significantly more likely by it, and not both other criteria are worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from annotrace.labels import LabelTable
from annotrace.methods.class_repair import minimum_gain
from annotrace.networks.backbones import WIDTH
from annotrace.networks.inputs import Scaling
from annotrace.parameters import Count, Fraction, NotNegative, Number

Learner: TypeAlias = Literal["trace", "labels", "votes"]


class Chosen(TypedDict):
    """The fields of `Candidate`, as a run stores them."""

    learner: Learner
    mixup: NotNegative
    scaling: Scaling
    width: Count
    weight_decay: NotNegative
    batch_norm: bool
    backbone: Literal["own", "mlp"]


class Trial(TypedDict):
    """A candidate that was tried and its criteria."""

    learner: Learner
    mixup: NotNegative
    scaling: Scaling
    width: Count
    weight_decay: NotNegative
    batch_norm: bool
    backbone: Literal["own", "mlp"]
    epochs: Count
    label_loss: Number
    agreement: Fraction
    consensus: Fraction
    chosen: bool


@dataclass(frozen=True)
class Candidate:
    """A way to train the first networks.

    Attributes
    ----------
    learner : {"trace", "labels", "votes"}
        The trace-regularised model, the cross-entropy of a posterior by labels alone, or that of
        majority votes: the last, without mixup, is the method `vanilla` on folds.
    mixup : float
    scaling : {"feature", "common"}
        Of features; see `annotrace.networks.inputs.fit_standardize`.
    width : int
        Of the hidden layer.
    weight_decay : float
    batch_norm : bool
        Whether the hidden layer has batch normalisation.
    backbone : {"own", "mlp"}
        The network of the estimator, or a perceptron on the pixels of small images, which is found
        in a fraction of the time. Only the first networks may be such perceptrons.
    """

    learner: Learner = "trace"
    mixup: float = 1.0
    scaling: Scaling = "feature"
    width: int = WIDTH
    weight_decay: float = 0.0
    batch_norm: bool = False
    backbone: Literal["own", "mlp"] = "own"

    def to_dict(self) -> Chosen:
        """Return the fields as a run stores them."""
        return Chosen(
            learner=self.learner,
            mixup=self.mixup,
            scaling=self.scaling,
            width=self.width,
            weight_decay=self.weight_decay,
            batch_norm=self.batch_norm,
            backbone=self.backbone,
        )


def neighbours(best: Candidate, *, has_hidden: bool) -> Iterator[Candidate]:
    """Yield candidates that differ from the best so far in one of the settings of a network.

    These are width and batch normalisation of the hidden layer, weight decay, and mixup.
    """
    if has_hidden:
        yield replace(best, width=WIDTH // 4)
        yield replace(best, width=4 * WIDTH)
        yield replace(best, batch_norm=True)
    yield replace(best, weight_decay=1e-3)
    yield replace(best, weight_decay=1e-2)
    yield replace(best, mixup=0.4)


class Tried:
    """A candidate with its out-of-fold predictions.

    Parameters
    ----------
    candidate : Candidate
    epochs : int
    label_loss : float
        Negative log-likelihood per label.
    proba : ndarray of shape (n_items, n_classes)
        Out-of-fold predictions.
    posterior : ndarray of shape (n_items, n_classes)
        Predictions and labels combined.
    """

    def __init__(
        self,
        candidate: Candidate,
        epochs: int,
        label_loss: float,
        proba: NDArray[np.float64],
        posterior: NDArray[np.float64],
    ) -> None:
        self.candidate, self.epochs, self.label_loss = candidate, epochs, label_loss
        self.proba, self.posterior = proba, posterior


def choose(tried: Sequence[Tried], table: LabelTable) -> tuple[int, list[Trial]]:
    """Choose a candidate by several criteria; return its position and all criteria."""
    reference = min(tried, key=lambda each: each.label_loss).posterior
    agreement = [_agreement(each.proba, table) for each in tried]
    consensus = [float((each.proba * reference).sum(1).mean()) for each in tried]
    needed, best = minimum_gain(table.n_labels), 0
    for number, each in enumerate(tried):
        is_likelier = each.label_loss < tried[best].label_loss - needed
        agrees_less = agreement[number] < agreement[best] and consensus[number] < consensus[best]
        if is_likelier and not agrees_less:
            best = number
    trials = [
        Trial(
            **each.candidate.to_dict(),
            epochs=each.epochs,
            label_loss=each.label_loss,
            agreement=agreement[number],
            consensus=min(consensus[number], 1.0),
            chosen=number == best,
        )
        for number, each in enumerate(tried)
    ]
    return best, trials


def near_best(tried: Sequence[Tried], best: int, table: LabelTable) -> list[int]:
    """Return the positions of candidates that explain labels no worse than the chosen one.

    In a prototype on 17 crowds the mean of six starts gave a posterior of .888, and the chosen one
    .883; but .878 and .908 where some of the starts were poor. So only those near the best count.
    """
    most = tried[best].label_loss + minimum_gain(table.n_labels)
    learner = tried[best].candidate.learner
    return [
        number
        for number, each in enumerate(tried)
        if each.label_loss <= most and each.candidate.learner == learner
    ]


def _agreement(proba: NDArray[np.float64], table: LabelTable) -> float:
    """Return how often predictions equal a label of their item."""
    if table.n_labels == 0:
        return 0.0
    return float(np.mean(proba.argmax(1)[table.item] == table.label))
