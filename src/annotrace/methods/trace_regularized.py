"""Regularised estimation of annotator confusion (Tanno et al., CVPR 2019).

Each annotator r has a confusion matrix A^(r), A[i, j] = p(reports j | true class i), and a network
gives p(i | x). Both are learned by gradient descent on the cross-entropy of the labels plus the
trace of the matrices (the paper's eq. 4, scaled as in its listing)::

    1/N sum_n sum_{r labelled n} -log (sum_i p(i | x_n) A^(r)[i, label]) + lam 1/R sum_r tr A^(r)

That takes the labels of an item one by one, as if each were of another item. By default they are
taken together, -log sum_i p(i | x_n) prod_r A^(r)[i, label], which is the model's own likelihood.

The likelihood alone cannot tell confusion from a confused classifier; the trace asks for the most
confused annotators that explain the labels. Where the mean matrix is diagonally dominant (class by
class, items of it are called by its name more often than items of any other class), the smallest
trace is the true one.

Use it where annotators err in ways of their own and labels are few, one an item even. Do not
expect it to work where most annotators are wrong about a class in the same way.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from annotrace.aggregation.evidence import Evidence
from annotrace.aggregation.temperature import held_out_temperature
from annotrace.diagnosis import is_permuted, pooled_confusion
from annotrace.diagnosis.metrics import with_pool
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.continuing import Before
from annotrace.methods.lost_classes import TRIALS, LostClasses, worth_it
from annotrace.models import Confusion, label_log_likelihood, trace_regularized_nll
from annotrace.models.confusion import Parametrization
from annotrace.parameters import Count, NotNegative, Positive
from annotrace.training import (
    Batch,
    CrowdData,
    Epoch,
    Settings,
    draw_mixture,
    held_out_loss,
    mixed_logits,
    seeded,
)

SPARSE_ABOVE = 50_000
"""Weights from which stepping all matrices costs more than finding those of the batch, one a label.

Only where annotators outnumber the labels of a batch: few of many classes are stepped faster.
"""


AUTO_LAM = (0.01, 0.1)
"""What `lam="auto"` tries: the paper's, and what did best on LabelMe at a low rate."""

MIXUPS = (1.0, 0.0)
"""What `mixup="auto"` tries: the second is taken if it explains held-out labels surely better."""

TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Held-out labels are judged at the best of these: mixup leaves a network too unsure, and without
it a network is too sure, which says nothing of its choice of classes."""


class _Choice(NamedTuple):
    """What sets one training apart from the others."""

    lam: float
    pool: bool
    mixup: float
    restart: int


class _Run(NamedTuple):
    """A training and what came of it."""

    choice: _Choice
    network: nn.Module
    matrices: Tensor
    history: list[Epoch]
    permuted: bool

    @property
    def rank(self) -> tuple[bool, float]:
        """Order runs, the best first: classes in place, then the loss of the held-out labels."""
        return self.permuted, self.loss

    @property
    def loss(self) -> float:
        """The loss of the held-out labels, if there were any."""
        return held_out_loss(self.history)


@dataclass(kw_only=True, eq=False, repr=False)
class TraceRegularized(CrowdEstimator):
    """The paper's model: a network and a confusion matrix an annotator, the trace as a penalty.

    Parameters
    ----------
    lam : float or "auto"
        Scale of the mean trace; 0 is the paper's ablation. "auto" tries several, each in a
        training of its own.
    confusion_lr : float, optional
        How many times the network's rate the matrices learn at: 30 by default, 1 by the paper's
        protocol. At one rate for both, the network has memorised the noise of a small set before
        the matrices have moved.
    parametrization : {"softplus", "softmax"}
    diagonal : float, optional
        Starting probability of a right label: .7 by default, the paper's weights 6I - 5 (.956 at
        ten classes) by its protocol.
    pool : bool or "auto", optional
        Learn a matrix that annotators share, and how each deviates from it. "auto", the default,
        tries both; the paper's protocol does not pool.
    joint : bool, optional
        Take the likelihood of an item's labels together, as the model has it, and not of each by
        itself, as the paper's loss does. The same where items have one label. True by default,
        False by the paper's protocol.
    mixup : float or "auto", optional
        Learn from mixtures of two items, by weights from Beta(mixup, mixup); 0 for none. "auto",
        the default, takes 1, then trains the best choice once more with 0, and keeps that if it
        explains held-out labels surely better: mixtures of few features lie where other classes
        are. Without a held-out part it is 1; a warm start keeps what was chosen before, or takes 1
        in a run that was loaded. The paper's protocol has 0.
    restarts : int, optional
        Trainings from different starts, and with different choices where these are "auto": the
        one is kept that explains held-out labels best. 2 by default, 1 by the paper's protocol;
        without a held-out part there is one.
    mend : bool, optional
        Train again, up to three times, where classes have traded names or one is lost, beginning
        with all else that was learned. True by default, False by the paper's protocol.
    calibrate : bool, optional
        Divide logits by the temperature at which held-out labels are likeliest: a network that was
        stopped early is too unsure, and the posterior would trust the labels too much. True by
        default, False by the paper's protocol; without a held-out part the temperature is 1.
    **others
        See `CrowdEstimator`.

    Attributes
    ----------
    chosen_ : dict
        What was chosen: lam, pool, mixup, restart; restarts after the first trainings left mixup
        out or mended them.
    temperature_ : float
        What the logits of `network_` are divided by.

    Examples
    --------
    >>> from annotrace.data import load_digits
    >>> from annotrace.simulate import hammer_spammers, simulate_labels
    >>> train, test = load_digits().split(600)
    >>> table = simulate_labels(train.y, hammer_spammers(5, 10, 0.5, random_state=0),
    ...                         labels_per_item=1, random_state=0)
    >>> model = TraceRegularized(random_state=0).fit(train.X, table)
    >>> bool(model.score(test.X, test.y) > 0.85)
    True
    """

    lam: NotNegative | Literal["auto"] = 0.01
    confusion_lr: Positive | None = None
    parametrization: Parametrization = "softplus"
    diagonal: float | None = None
    pool: bool | Literal["auto"] | None = None
    joint: bool | None = None
    mixup: NotNegative | Literal["auto"] | None = None
    restarts: Count | None = None
    mend: bool | None = None
    calibrate: bool | None = None

    method: ClassVar[str] = "trace"

    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        choices = self._choices()
        self.temperature_ = 1.0
        best = self._run_choice(data, settings, choices[0], self._begin_at)
        for choice in choices[1:]:
            best = min(best, self._run_choice(data, settings, choice), key=lambda run: run.rank)
        if self._or_protocol("mixup") == "auto" and not self._trains_once:
            best = self._choose_mixup(best, data, settings, restart=len(choices))
        if self._begin_at is None and self._or_protocol("mend"):
            best = self._mend(best, data, settings)
        self.chosen_ = best.choice._asdict()
        self._take(best)
        self.temperature_ = self._calibrate(data)
        return best.history

    def _choose_mixup(self, best: _Run, data: CrowdData, settings: Settings, restart: int) -> _Run:
        """Train once more, without mixup, and take that if it is surely better.

        It begins where the first training did and draws by itself: what comes after is as if it
        had not been.
        """
        choice = best.choice._replace(mixup=MIXUPS[1], restart=restart)
        with seeded(settings.seed, data.device):
            without = self._run_choice(data, settings, choice)
        surely = best.permuted, best.loss - self._by_chance()
        return without if without.rank < surely else best

    def _mend(self, best: _Run, data: CrowdData, settings: Settings) -> _Run:
        """Train again where classes have traded names or are lost, from all else that was learned.

        A penalty that was strong enough to swap classes was too strong. A lost class is founded as
        long as that explains held-out labels better.
        """
        lost = self._lost_classes(best, data)
        by_chance = self._by_chance()
        for trial in range(TRIALS):
            may_found = lost.foundings and self.validation and not best.permuted
            founding = lost.foundings.pop(0) if may_found else None
            if founding is None and not (lost.renamed or best.permuted):
                break
            fresh = self._new_layer(pool=False).matrices().double().numpy()
            matrices = torch.from_numpy(lost.begin_matrices(founding, fresh))
            lam = best.choice.lam if founding else best.choice.lam / 10
            choice = best.choice._replace(lam=lam, restart=best.choice.restart + 1 + trial)
            run = self._run_choice(data, settings, choice, matrices)
            to_gain = by_chance if founding else -by_chance
            if run.rank < (best.permuted, best.loss - to_gain):
                best, lost = run, self._lost_classes(run, data)
        return best

    def _by_chance(self) -> float:
        """Give by how much the losses of two trainings differ that are equally good."""
        return worth_it(self.validation * self.table_.n_labels)

    def _lost_classes(self, run: _Run, data: CrowdData) -> LostClasses:
        """Look for classes amiss in what was learned, with matrices counted anew.

        Those of the training lag behind, and the penalty has taken from their diagonal.
        """
        self._take(run)
        self._read_out(data)
        evidence = Evidence(self.table_, self.gold_)
        counts = evidence.count(evidence.tensor(self.posterior_)).transpose(1, 2).double().numpy()
        counts += 1 / self.table_.n_classes
        confusion = counts / counts.sum(axis=2, keepdims=True)
        return LostClasses(self.table_, self.posterior_, confusion)

    def _calibrate(self, data: CrowdData) -> float:
        """Find the temperature at which held-out labels are likeliest, if asked for, or give 1."""
        if not self._or_protocol("calibrate") or self.validation == 0:
            return 1.0
        _, held_out = self._parted()
        matrices = torch.from_numpy(self.confusion_)
        return held_out_temperature(
            self.table_, self.gold_, self._logits(data).cpu(), matrices, held_out
        )

    def _logits(self, data: CrowdData) -> Tensor:
        return super()._logits(data) / self.temperature_

    def _take(self, run: _Run) -> None:
        self.network_ = run.network
        matrices = run.matrices.cpu().double().numpy()
        self.confusion_ = with_pool(matrices, self.table_.labels_per_annotator())
        self.confusion_layer_.set_matrices(torch.from_numpy(self.confusion_))

    def _choices(self) -> list[_Choice]:
        """Give what to try, as many as there are restarts, and each combination at least once."""
        pool, restarts = self._or_protocol("pool"), self._or_protocol("restarts")
        pools = (False, True) if pool == "auto" else (bool(pool),)
        strengths = AUTO_LAM if self.lam == "auto" else (float(self.lam),)
        combinations = list(itertools.product(strengths, pools))
        n_runs = 1 if self._trains_once else max(restarts, len(combinations))
        turns = itertools.islice(itertools.cycle(combinations), n_runs)
        mixup = self._first_mixup()
        return [_Choice(lam, pool, mixup, number) for number, (lam, pool) in enumerate(turns)]

    @property
    def _trains_once(self) -> bool:
        """Whether there is nothing to choose by, or the choice was made before."""
        return self.validation == 0 or self._begin_at is not None

    def _first_mixup(self) -> float:
        """Give the mixup to begin with: as given, or of the fit that is gone on from."""
        given = self._or_protocol("mixup")
        if given != "auto":
            return float(given)
        before = {} if self._begin_at is None else getattr(self, "chosen_", {})
        return float(before.get("mixup", MIXUPS[0]))

    def _run_choice(
        self,
        data: CrowdData,
        settings: Settings,
        choice: _Choice,
        begin_at: Tensor | None = None,
    ) -> _Run:
        """Train a network, a new one but for the first time, and matrices from where they begin."""
        if choice.restart:
            self.network_ = self._build_network(data).to(data.device)
            if isinstance(self.backbone, nn.Module):
                # It begins with its own weights every time: another order makes the difference.
                settings = replace(settings, seed=settings.seed + 7919 * choice.restart)
        layer = self._new_layer(choice.pool).to(data.device)
        if begin_at is not None:
            layer.set_matrices(begin_at)
        learned = nn.ModuleDict({"network": self.network_, "confusion": layer})
        objective = self._objective(layer, choice)

        def score(batch: Batch) -> tuple[Tensor, int]:
            return calibrated_loss(self.network_(batch.inputs), layer, batch), len(batch.label)

        history = self._train(learned, objective, score, data, settings)
        matrices = layer.matrices()
        crowd = pooled_confusion(
            matrices.cpu().double().numpy(), self.table_.labels_per_annotator()
        )
        return _Run(choice, self.network_, matrices, history, is_permuted(crowd))

    def _objective(self, layer: Confusion, choice: _Choice) -> Callable[[Batch], Tensor]:
        lam, mixup = choice.lam, choice.mixup
        joint = self._or_protocol("joint") and bool((self.table_.labels_per_item() > 1).any())

        def loss(batch: Batch, logits: Tensor) -> Tensor:
            def label_loss(logits: Tensor) -> Tensor:
                labels = (batch.row, batch.annotator, batch.label)
                return trace_regularized_nll(logits, layer, *labels, lam, joint=joint)

            return self._with_gold(batch, logits, label_loss)

        def mixed_loss(batch: Batch) -> Tensor:
            mixture = draw_mixture(mixup, torch.zeros_like(batch.item))
            logits = mixed_logits(self.network_, batch.inputs, mixture)
            own, other = loss(batch, logits), loss(mixture.partners(batch), logits)
            return torch.lerp(other, own, mixture.weight)

        return mixed_loss if mixup else lambda batch: loss(batch, self.network_(batch.inputs))

    def _build_parts(self, device: torch.device) -> None:
        self.confusion_layer_ = self._new_layer(pool=False).to(device)
        self._begin_at: Tensor | None = None

    def _go_on_from(self, before: Before) -> None:
        matrices = before.matrices(self.table_)
        assert matrices is not None
        self._begin_at = torch.from_numpy(matrices)

    def _new_layer(self, pool: bool) -> Confusion:
        table, n_labelled = self.table_, len(self._labelled())
        in_batch = self._settings(0).batch_size * table.n_labels / n_labelled
        return Confusion(
            table.n_annotators,
            table.n_classes,
            parametrization=self.parametrization,
            diagonal=self._or_protocol("diagonal"),
            lr_scale=self._or_protocol("confusion_lr"),
            sparse=table.n_annotators > in_batch
            and table.n_annotators * table.n_classes**2 > SPARSE_ABOVE,
            pool=pool,
            frequency=torch.from_numpy(table.labels_per_annotator() / n_labelled).float(),
        )

    def _parts(self) -> dict[str, nn.Module]:
        return {"network": self.network_, "confusion": self.confusion_layer_}

    def _columns(self) -> Confusion:
        return self.confusion_layer_


def calibrated_loss(logits: Tensor, layer: Confusion, batch: Batch) -> Tensor:
    """Sum the negative log-likelihood of a batch's labels at each of `TEMPERATURES`, (n,)."""
    labels = (batch.row, batch.annotator, batch.label)
    at_each = [label_log_likelihood(logits / t, layer, *labels).sum() for t in TEMPERATURES]
    return -torch.stack(at_each)
