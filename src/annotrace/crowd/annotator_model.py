"""The interface of annotator models: p(label | true class, annotator[, item])."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain

import torch
from torch import Tensor, nn

from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.sums import add_to_groups
from annotrace.errors import InputError

# Entries of arrays (n_labels, n_classes), and cells of matrices, that are made at a time.
BLOCK = 2**22


class AnnotatorModel(nn.Module, ABC):
    """How annotators report the true class of an item.

    Subclasses differ in structure: full matrices, matrices pooled towards a shared one, one skill
    per annotator, errors that depend on the item. `log_likelihood` and `matrices` are all that a
    structure must define; aggregation, training, diagnosis, allocation and the report use nothing
    else. A structure that learns by gradient descent also has an `lr_scale`, the learning rate of
    its parameters as a multiple of the network's.
    """

    n_annotators: int
    n_classes: int

    @property
    def correlation(self) -> float | None:
        """Correlation of errors that `item_log_likelihood` allows for, None if it does not."""
        return None

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(chain(self.parameters(), self.buffers())).device

    @abstractmethod
    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator[, item]), shape (n_labels, n_classes).

        Parameters
        ----------
        annotator, label : LongTensor of shape (n_labels,)
        item : LongTensor of shape (n_labels,), optional
            The item of each label, for models whose errors depend on it. Without it, such a model
            averages over items.
        """

    @abstractmethod
    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices [annotator, true, reported] without gradient.

        Parameters
        ----------
        annotators : LongTensor of shape (n,), optional
            All annotators by default.
        items : LongTensor, optional
            Average over these items instead of all; ignored by models that do not depend on them.

        Returns
        -------
        Tensor of shape (n, n_classes, n_classes)
            Rows sum to one.
        """

    def set_matrices(self, matrices: Tensor) -> None:
        """Start from matrices (n_annotators, n_classes, n_classes), if the structure can.

        The default keeps the initial parameters.
        """

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, shape (n_items, n_classes).

        The labels of an item are independent given its class unless a subclass says otherwise.
        """
        item = labels.item[labels.row]
        return labels.sum_by_item(self.log_likelihood(labels.annotator, labels.label, item))

    def blocks(self) -> Iterator[Tensor]:
        """Yield the numbers of all annotators by parts whose matrices fit into memory."""
        everyone = torch.arange(self.n_annotators, device=self.device)
        yield from everyone.split(max(BLOCK // self.n_classes**2, 1))

    def mean_trace(self, annotator: Tensor | None = None, n_rows: int | None = None) -> Tensor:
        """Return the mean trace of the confusion matrices, differentiable, shape ().

        Parameters
        ----------
        annotator, n_rows
            The annotators of a batch's labels and its number of items, for models that estimate the
            mean from a batch.
        """
        everyone = torch.arange(self.n_annotators, device=self.device)
        label = torch.arange(self.n_classes, device=self.device).repeat(self.n_annotators)
        log_rows = self.log_likelihood(everyone.repeat_interleave(self.n_classes), label)
        return log_rows.gather(1, label[:, None]).exp().sum() / self.n_annotators


class MatrixModel(AnnotatorModel):
    """An annotator model with one confusion matrix per annotator, whatever the item."""

    @abstractmethod
    def log_matrices(self) -> Tensor:
        """Return the logarithms of all matrices, shape (n_annotators, n_classes, n_classes)."""

    @torch.no_grad()
    def matrices(self, annotators: Tensor | None = None, items: Tensor | None = None) -> Tensor:
        """Return confusion matrices [annotator, true, reported] without gradient."""
        matrices = self.log_matrices().exp()
        return matrices if annotators is None else matrices[annotators]

    def log_likelihood(
        self, annotator: Tensor, label: Tensor, item: Tensor | None = None
    ) -> Tensor:
        """Return log p(label | true class, annotator), shape (n_labels, n_classes)."""
        check_integers(annotator=annotator, label=label)
        return self.log_matrices()[annotator, :, label]

    def item_log_likelihood(self, labels: LabelIndex) -> Tensor:
        """Return the log-likelihood of each item's labels, shape (n_items, n_classes)."""
        return labels.sum_matrices(self.log_matrices())


class FixedMatrices(MatrixModel):
    """Confusion matrices that are given or counted, not learned by gradient descent.

    Parameters
    ----------
    matrices : Tensor of shape (n_annotators, n_classes, n_classes)
    """

    SMALLEST = 1e-12

    log: Tensor

    def __init__(self, matrices: Tensor) -> None:
        super().__init__()
        self.n_annotators, self.n_classes = matrices.shape[:2]
        self.register_buffer("log", matrices.clamp_min(self.SMALLEST).log())

    @classmethod
    def uniform(cls, n_annotators: int, n_classes: int) -> FixedMatrices:
        """Return a model in which every report is equally likely."""
        return cls(torch.full((n_annotators, n_classes, n_classes), 1 / n_classes))

    def log_matrices(self) -> Tensor:
        """Return the logarithms of all matrices, shape (n_annotators, n_classes, n_classes)."""
        return self.log

    def set_matrices(self, matrices: Tensor) -> None:
        """Replace all matrices, shape (n_annotators, n_classes, n_classes)."""
        check_shape("matrices", matrices, self.log_matrices().shape)
        self.log = matrices.to(self.log_matrices()).clamp_min(self.SMALLEST).log()


def check_shape(name: str, given: Tensor, expected: tuple[int, ...]) -> None:
    """Raise an `InputError` if a tensor is not of the shape expected."""
    if given.shape != expected:
        shapes = f"{tuple(expected)}, but got {tuple(given.shape)}"
        raise InputError(f"Expected `{name}` to be of shape {shapes}.")


def check_integers(**parts: Tensor) -> None:
    """Raise an `InputError` for index tensors that are not int64 or int32: uint8 is a mask."""
    for name, part in parts.items():
        if part.dtype not in (torch.int64, torch.int32):
            raise InputError(f"Expected {name} to be of int64 or int32, but got {part.dtype}.")


def check_diagonal(diagonal: float, n_classes: int) -> None:
    """Raise an `InputError` unless an initial probability of a correct label is above chance."""
    if not 1 / n_classes <= diagonal < 1:
        raise InputError(
            f"Expected `diagonal` to be at least 1 / n_classes and below 1, but got {diagonal} "
            f"with {n_classes} classes."
        )


def sum_by_blocks(model: AnnotatorModel, labels: LabelIndex) -> Tensor:
    """Return the log-likelihood of each item's labels, (n_items, n_classes), by blocks of labels.

    Not for autograd. It is the same sum as that of `AnnotatorModel.item_log_likelihood`, without an
    array (n_labels, n_classes).
    """
    size = max(BLOCK // model.n_classes, 1)
    total: Tensor | None = None
    parts = (part.split(size) for part in (labels.row, labels.annotator, labels.label))
    for row, annotator, label in zip(*parts, strict=True):
        logs = model.log_likelihood(annotator, label)
        if total is None:
            total = logs.new_zeros(labels.n_rows, model.n_classes)
        add_to_groups(total, logs, row)
    return torch.zeros(labels.n_rows, model.n_classes) if total is None else total
