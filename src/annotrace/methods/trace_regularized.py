"""Regularised estimation of annotator confusion (Tanno et al., CVPR 2019).

Each annotator r has a confusion matrix A^(r), A[i, j] = p(reports j | true class i), and a network
gives p(i | x). Both are learned by gradient descent on the cross-entropy of the labels plus the
trace of the matrices (the paper's eq. 4, scaled as in its listing)::

    1/N sum_n sum_{r labelled n} -log (sum_i p(i | x_n) A^(r)[i, label]) + lam 1/R sum_r tr A^(r)

The cross-entropy alone cannot tell confused annotators from a confused classifier; the trace asks
for the most confused annotators that explain the labels. Where the mean matrix is diagonally
dominant (items of a class are reported as that class more often than items of any other class are),
the smallest trace is the true one.

Use it where annotators err in their own ways and labels are few, even one per item. It does not
work where most annotators make the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.aggregation.run_schema import NOT_NEGATIVE, Array
from annotrace.crowd.annotator_model import AnnotatorModel
from annotrace.crowd.losses import trace_regularized_nll
from annotrace.crowd.result import fits_array
from annotrace.crowd.sparse_confusion import Parametrization
from annotrace.crowd.structures import STRUCTURES
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.taxonomy import class_groups
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.recipe import Trial
from annotrace.parameters import Natural, NotNegative, Positive
from annotrace.training import Batch, CrowdData, Epoch, Settings

SPARSE_ABOVE = 50_000
"""Weights above which updating all matrices costs more than finding those of the batch, if
annotators outnumber the labels of a batch."""

FEW_CELLS = 2**20
"""Cells of all matrices up to which "auto" tries those with a parameter for each, even if labels
are fewer."""


class Choice(TypedDict):
    """What a fit has chosen."""

    lam: NotNegative
    structure: str
    mixup: NotNegative
    init: Natural


@dataclass(kw_only=True, eq=False, repr=False)
class TraceRegularized(NetworkEstimator):
    """The paper's model: a network and a confusion matrix per annotator, the trace as a penalty.

    Parameters
    ----------
    lam : float or "auto"
        Weight of the mean trace; 0 is the paper's ablation. "auto" lets the recipe choose between
        the paper's .01 and .1.
    confusion_lr : float, optional
        Learning rate of the matrices as a multiple of the network's: 30 by default, 1 by the
        paper's protocol. With one rate for both, the network memorises the noise of a small set
        before the matrices have moved.
    parametrization : {"softplus", "softmax"}
    diagonal : float, optional
        Initial probability of a correct label: .7 by default, the paper's weights 6I - 5 (.956 at
        ten classes) by its protocol.
    structure : str, optional
        Of the annotator model: "full" matrices (the paper's), matrices "pooled" towards a shared
        one, "low-rank" or "per-class" ones for many annotators and classes, "taxonomy" with
        confusion within groups of classes, or another name in `annotrace.crowd.STRUCTURES`. "auto",
        the default, lets the recipe choose between the first two, or between "low-rank" and
        "per-class" if full matrices had more cells than there are labels, and more than a million,
        and "taxonomy" if there is one; above 2e8 cells it takes "low-rank".
    taxonomy : mapping from class to group, or path, optional
        The groups of "taxonomy"; see `annotrace.labels.taxonomy.class_groups`.
    joint : bool, optional
        Use the model's own likelihood of an item's labels taken together, -log sum_i p(i | x)
        prod_r A[i, label], in place of eq. 4's, which takes each label by itself. They are equal
        with one label per item. True by default, False by the paper's protocol.
    **others
        See `NetworkEstimator` and `CrowdEstimator`.

    Attributes
    ----------
    groups_ : ndarray of int, shape (n_classes,)
        The group of each class; without a taxonomy each has its own.

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
    structure: str | None = None
    taxonomy: dict[Any, Any] | str | PathLike[str] | None = None
    joint: bool | None = None

    method: ClassVar[str] = "trace"
    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **NetworkEstimator.saved_attributes,
        "chosen_": Choice,
        "groups_": Array("i", ("classes",), NOT_NEGATIVE),
    }
    recipe_by_default: ClassVar[bool] = True
    repairs_classes: ClassVar[bool] = True

    def train_once(self, data: CrowdData, settings: Settings, trial: Trial) -> list[Epoch]:
        """Minimise eq. 4 over minibatches of items (Algorithm 1)."""
        self._lam = trial.params["lam"]
        several = bool((self.table_.labels_per_item() > 1).any())
        self._joint = bool(self._or_protocol("joint")) and several
        self.annotator_model_ = self._make_annotators(trial.params["structure"]).to(data.device)
        if trial.start is not None:
            self.annotator_model_.set_matrices(torch.from_numpy(trial.start.matrices))
        learned = nn.ModuleDict({"network": self.network_, "annotators": self.annotator_model_})
        return self._train(learned, self._objective(data, trial.mixup), data, settings)

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        model, labels = self.annotator_model_, (batch.row, batch.annotator, batch.label)
        assert model is not None

        def label_loss(logits: Tensor) -> Tensor:
            return trace_regularized_nll(
                logits, model, *labels, self._lam, joint=self._joint, item=batch.item
            )

        return self._with_gold(batch, logits, label_loss)

    def options(self) -> dict[str, Sequence[Any]]:
        """Return the options of each parameter that is "auto"."""
        structure = self._or_protocol("structure")
        return {
            "lam": (0.01, 0.1) if self.lam == "auto" else (float(self.lam),),
            "structure": self._structures() if structure == "auto" else (structure,),
        }

    def _set_groups(self) -> None:
        self.groups_: NDArray[Any] = np.arange(self.table_.n_classes, dtype=np.int32)
        if self.taxonomy is not None or self._or_protocol("structure") == "taxonomy":
            self.groups_ = class_groups(self.taxonomy, self.table_.classes)

    def _structures(self) -> tuple[str, ...]:
        """Return the structures that "auto" compares."""
        names = _structures(self.table_)
        has_groups = self.taxonomy is not None and fits_array(self.table_)
        return (*names, "taxonomy") if has_groups else names

    def _make_annotators(self, structure: str) -> AnnotatorModel:
        if self.groups_.max(initial=0) >= self.table_.n_classes:
            raise InputError(f"Expected `groups_` to be below {self.table_.n_classes}.")
        options: dict[str, Any] = {"structure": structure, "parametrization": self.parametrization}
        if structure == "taxonomy":
            options["group"] = torch.from_numpy(self.groups_)
        return make_annotators(
            self.table_,
            len(self._labelled()),
            self._settings(0).batch_size,
            diagonal=self._or_protocol("diagonal"),
            lr_scale=self._or_protocol("confusion_lr"),
            **options,
        )

    def _build_modules(self, device: torch.device) -> None:
        chosen = getattr(self, "chosen_", None) or {k: v[0] for k, v in self.options().items()}
        self.annotator_model_ = self._make_annotators(chosen["structure"]).to(device)


def _structures(table: LabelTable) -> tuple[str, ...]:
    """Return the structures that "auto" compares without a taxonomy."""
    if not fits_array(table):
        return ("low-rank",)
    n_cells = table.n_annotators * table.n_classes**2
    is_dense = n_cells <= max(table.n_labels, FEW_CELLS)
    return ("full", "pooled") if is_dense else ("low-rank", "per-class")


def make_annotators(
    table: LabelTable, n_labelled: int, batch_size: int, *, n_folds: int = 1, **options: Any
) -> AnnotatorModel:
    """Return an annotator model for the labels of a table, sparse if that is faster.

    Parameters
    ----------
    table : LabelTable
    n_labelled : int
        Items to learn from.
    batch_size : int
    n_folds : int
        If more than one, annotator r of fold k is number k * n_annotators + r and sees the labels
        of all other folds.
    **options
        `structure` and the keywords of `Confusion`.
    """
    # Of the labels of an item, n_folds - 1 of n_folds rows see each.
    seen = (n_folds - 1) / n_folds**2 if n_folds > 1 else 1.0
    frequency = seen * table.labels_per_annotator() / n_labelled
    n_annotators = n_folds * table.n_annotators
    in_batch = batch_size * max(n_folds - 1, 1) * table.n_labels / n_labelled
    n_weights = n_annotators * table.n_classes**2
    return STRUCTURES.make(
        options.pop("structure"),
        n_annotators,
        table.n_classes,
        n_items=table.n_items,
        sparse=n_annotators > in_batch and n_weights > SPARSE_ABOVE,
        frequency=torch.from_numpy(frequency).float().repeat(n_folds),
        **options,
    )
