"""The ways to learn that a search on folds tries, one after the other."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from annotrace.data.augmentation import KINDS
from annotrace.distributed import current
from annotrace.methods.distilled_folds import DistilledFolds
from annotrace.methods.fold_networks import MAX_EPOCHS, Round
from annotrace.methods.fold_trace import fits
from annotrace.methods.held_out_em import HeldOutEM
from annotrace.methods.neighbours import neighbour_loss
from annotrace.methods.search import Candidate, Tried, choose, neighbours
from annotrace.methods.warm_start import Previous
from annotrace.networks.inputs import Scaling, fit_standardize
from annotrace.parameters import NotNegative, Positive
from annotrace.training import CrowdData, Settings, expect_trainings

PILOT = 10
"""Epochs after which the scaling of features is chosen; the better one then has all epochs."""

UNMIXED = 20
"""Epochs that the best candidate is trained for without mixup, if it took more with it. On none of
28 crowds was that the best, and averaged with the best it is worth .001, which long trainings are
not. On a line, where mixtures lie among other classes, it is worth .12, and seen by then."""

MAX_NEIGHBOURS = 1500
"""Items among which nearest neighbours are looked for."""

FAST_BATCH, FAST_LR = 128, 2e-3
"""Of `effort="fast"`, where an epoch still has `FAST_STEPS` steps."""

FAST_STEPS = 5

MAX_PIXELS = 4096
"""Values of an image up to which a perceptron on pixels is tried."""

Effort: TypeAlias = Literal["fast", "default", "thorough"]


@dataclass(kw_only=True, eq=False, repr=False)
class FoldCandidates(DistilledFolds):
    """Networks on folds, and the ways in which the first of them may learn.

    Parameters
    ----------
    effort : {"fast", "default", "thorough"} or float
        How much is tried: one way to learn and one iteration; a few ways and two iterations; or
        other widths, weight decays and mixtures too, and four iterations. A number is the seconds
        after which the default starts no further training that it can do without; the result then
        depends on the speed of the machine.
    mixup : float or "auto"
        Learn from mixtures of two items, weighted by Beta(mixup, mixup); 0 for none. "auto" tries 1
        and 0: mixtures of few features lie where other classes are.
    init : {"auto", "labels", "trace", "votes"}
        What the networks learn first: the default aggregation of labels alone, the
        trace-regularised model, or the shares of votes. "auto" tries the first two.
    **others
        See `DistilledFolds`, `FoldNetworks` and `CrowdEstimator`.
    """

    effort: Effort | Positive = "default"
    mixup: NotNegative | Literal["auto"] = "auto"
    init: Literal["auto", "labels", "trace", "votes"] = "auto"

    @abstractmethod
    def _n_iterations(self) -> int:
        """Return how many iterations follow the search at most."""

    def _set_augmentation(self, data: CrowdData, previous: Previous | None) -> None:
        # Whether the first networks learn what labels alone say, as far as is known.
        self._trusted = False
        # If no augmentation is to be chosen, the next number is announced before any training.
        expect_trainings(len(KINDS) + self._max_candidates() + self._n_iterations() + self.distill)
        super()._set_augmentation(data, previous)

    def _expect_trainings(self, n_left: int) -> None:
        """Announce how many trainings on folds follow at most."""
        by = None if isinstance(self.effort, str) else self._started + float(self.effort)
        expect_trainings(n_left + self.distill, by)

    def _candidates(
        self,
        tried: Sequence[tuple[Tried, Round]],
        inner: HeldOutEM,
        alone: Tensor,
        scaling: Scaling,
    ) -> Iterator[tuple[Candidate, int]]:
        """Yield candidates and their epochs at most, each given those tried so far."""

        def best() -> int:
            return choose([each for each, _ in tried], self.table_)[0]

        def better(**changes: Any) -> Candidate:
            return replace(tried[best()][0].candidate, **changes)

        def in_full(**changes: Any) -> tuple[Candidate, int]:
            return better(**changes), MAX_EPOCHS

        mixup = 1.0 if self.mixup == "auto" else float(self.mixup)
        if self._trusted:
            yield Candidate("labels", mixup, scaling), MAX_EPOCHS
            if self._tries_scalings():
                yield in_full(scaling="common")
            inner.set_posterior(alone)
            inner.count_matrices(inner.posterior)
            if self.init == "labels" or inner.labels_outweigh(tried[best()][1].logits):
                return
            self._trusted = False
            if "trace" in self._learners():
                yield Candidate("trace", mixup, better().scaling), MAX_EPOCHS
        else:
            first = Candidate(self._learners()[0], mixup, scaling)
            has_pilots = self._has_pilots() and self._has_time()
            yield first, PILOT if has_pilots else MAX_EPOCHS
            if self._tries_scalings() and self._has_time():
                yield replace(first, scaling="common"), PILOT if has_pilots else MAX_EPOCHS
            if has_pilots and len(tried[best()][1].history) == PILOT:
                yield in_full()
        if self._is_small_image():
            yield in_full(backbone="mlp")
            if self.mixup == "auto":
                yield in_full(backbone="mlp", mixup=0.0)
        if self.effort == "fast" or (self._is_slow() and self.effort != "thorough"):
            return
        if self.mixup == "auto" and self._has_time():
            is_short = tried[best()][0].epochs <= UNMIXED or self.effort == "thorough"
            yield better(mixup=0.0), MAX_EPOCHS if is_short else UNMIXED
        has_labels = any(each.candidate.learner == "labels" for each, _ in tried)
        if "labels" in self._learners() and not has_labels and self._has_time():
            yield in_full(learner="labels")
        if self.effort == "thorough":
            yield Candidate("votes", 0.0 if self.mixup == "auto" else mixup), MAX_EPOCHS
            for candidate in neighbours(better(), has_hidden=self._has_hidden()):
                yield candidate, MAX_EPOCHS

    def _learners(self) -> tuple[Literal["trace", "labels"], ...]:
        if self.init in ("labels", "votes") or not fits(self.table_, self._n_folds):
            return ("labels",)
        return ("trace",) if self.init == "trace" else ("trace", "labels")

    def _scales_features(self) -> bool:
        """Whether the networks are perceptrons on rows of features, of whatever units."""
        is_rows = self.input_kind_ == "array" and len(self.input_shape_) == 1
        return is_rows and self.backbone in ("auto", "mlp", "linear")

    def _tries_scalings(self) -> bool:
        """Whether networks are trained on features of both scalings."""
        return self._scales_features() and self.effort != "fast"

    def _has_pilots(self) -> bool:
        """Whether both scalings of features are tried for a few epochs first."""
        return self._tries_scalings() and self.epochs is None

    def _first_scaling(self, data: CrowdData, inner: HeldOutEM, seed: int) -> Scaling:
        """Return the scaling to try first: by nearest neighbours, if it is to be the only one."""
        if self._tries_scalings() or not self._scales_features():
            return "feature"
        drawn = np.random.default_rng(seed).permutation(self._labelled())[:MAX_NEIGHBOURS]
        item = torch.from_numpy(drawn)
        rows, votes = data.inputs(item.to(data.device)).cpu(), inner.problem.votes()[item]
        assert isinstance(rows, Tensor)

        def loss(scaling: Scaling) -> float:
            return neighbour_loss(fit_standardize(rows, scaling)(rows), votes)

        return "common" if loss("common") < loss("feature") else "feature"

    def _has_hidden(self) -> bool:
        """Whether the networks have a hidden layer that candidates may change."""
        # Batch normalisation needs two rows to learn from.
        return self._scales_features() and self.backbone != "linear" and len(self._labelled()) > 1

    def _is_small_image(self) -> bool:
        size = int(np.prod(self.input_shape_))
        return self.backbone == "auto" and len(self.input_shape_) > 1 and size <= MAX_PIXELS

    def _is_slow(self) -> bool:
        """Whether networks train one after the other, so that each candidate costs as much."""
        return not self._are_perceptrons()

    def _has_time(self) -> bool:
        if isinstance(self.effort, str):
            return True
        last = self._started + float(self.effort)
        # All processes of a run have to try the same.
        return bool(current().from_first(lambda: time.monotonic() < last))

    def _settings(self, seed: int) -> Settings:
        """Return the settings of every training: fewer and longer steps if it is to be fast."""
        settings = super()._settings(seed)
        is_long = len(self._labelled()) >= FAST_STEPS * FAST_BATCH
        if self.effort != "fast" or not (self._are_perceptrons() and is_long):
            return settings
        return replace(settings, batch_size=self.batch_size or FAST_BATCH, lr=self.lr or FAST_LR)

    def _max_candidates(self) -> int:
        """Return how many candidates there are at most."""
        if self.init == "labels":
            return 1 + self._tries_scalings()
        mixups = 1 + (self.mixup == "auto")
        number = 1 + (self._trusted or self._has_pilots()) + self._tries_scalings()
        number += self._is_small_image() * mixups
        if self.effort == "fast" or (self._is_slow() and self.effort != "thorough"):
            return number
        number += mixups - 1 + (len(self._learners()) - 1) * (not self._trusted)
        if self.effort == "thorough":
            number += 1 + len([*neighbours(Candidate(), has_hidden=self._has_hidden())])
        return number
