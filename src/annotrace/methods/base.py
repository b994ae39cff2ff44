"""What every method that learns truth and classifier together has in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annotrace.crowd.em import clamp_posterior, item_log_likelihood, posterior
from annotrace.crowd.result import CrowdResult
from annotrace.data import ItemSource, TextSource
from annotrace.data.augmentation import KINDS, Kind, OwnFunction, make_augmentation
from annotrace.distributed import current
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.gold import Gold, known_classes
from annotrace.labels.vocabulary import plain_names
from annotrace.methods.augmentation_choice import choose_augmentation
from annotrace.methods.fitted_classifier import FittedClassifier
from annotrace.methods.inputs import (
    Items,
    check_learnable,
    decode_images,
    encoder_of,
    input_kind,
    match,
)
from annotrace.methods.protocols import PROTOCOLS
from annotrace.methods.warm_start import Previous
from annotrace.networks import Backbone, Bags, build_backbone
from annotrace.parameters import (
    Count,
    NotNegative,
    Positive,
    ProperFraction,
    Seed,
    check_parameters,
)
from annotrace.training import (
    Batch,
    Callback,
    CheckpointSeries,
    CrowdData,
    Epoch,
    Precision,
    Randomness,
    Schedule,
    Settings,
    deterministic,
    fingerprint,
    pick_device,
    train,
)
from annotrace.undo import unchanged_unless_done, weights_unchanged_unless_done
from annotrace.version import versions

SAMPLE = 10_000
"""Rows from which input stages estimate mean and deviation."""


@dataclass(kw_only=True, eq=False, repr=False)
class CrowdEstimator(FittedClassifier):
    """A classifier that learns from labels by many annotators.

    Parameters
    ----------
    backbone : str or nn.Module
        The network: "mlp", "linear", "cnn", "cnn-wide", "resnet9", "resnet50", your own module from
        a batch to logits, or "auto" for "mlp" on features, "cnn" on images and "linear" on texts,
        for which there is "mlp" too. Your own module starts every training of a fit with its
        present weights: initialisations then differ only in the order of batches.
    epochs, batch_size, lr, weight_decay, schedule : optional
        How the network is trained; see `annotrace.training.Settings`.
    validation_fraction : float
        The fraction of items whose labels are held out, to keep the best epoch by their likelihood;
        no truth is needed. 0 holds out none and keeps the last epoch.
    augment : {"auto", "none", "crop", "crop+flip"} or callable
        Random changes of images in training: none; shifts by up to an eighth of the size; these and
        mirror images; or your own function from a batch, float32 of shape (n, channels, height,
        width), to one of the same shape. "auto" chooses by held-out labels, and is none by the
        paper's protocol. See `augment_`.
    average_flips : bool
        Predict from each image and its mirror image, averaged.
    precision : {"float32", "bf16", "fp16"}
    cuda_graphs : bool
        Replay recorded training steps on a GPU; see `annotrace.training.Settings`.
    device : str
        "auto", "cpu", "cuda", "cuda:1", "mps".
    random_state : int, Generator or None
        Two fits with the same integer are bitwise equal on one machine with the same number of
        threads, also if they run at the same time; on a GPU too, unless your own module adds in an
        arbitrary order there (`scatter_add_`, for example).
    verbose : bool
        Show a progress bar.
    callbacks : sequence of callable
        Called with every `Epoch`; training stops when one returns True.
    checkpoint : path-like, optional
        A file that an interrupted `fit` leaves behind, and from which the same `fit` resumes: what
        finished trainings have learned. The state of the training in progress is in a second
        file, with ".training" appended to the name.
    warm_start : bool
        Continue from the previous `fit`, as when labels were added: the network keeps its weights,
        annotators keep their matrices by name, and new ones start with the pool's.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
        confusion[annotator, true, reported], rows sum to one.
    posterior_ : ndarray of shape (n_items, n_classes)
        Class probabilities of each row of X: classifier and labels combined.
    confidence_ : ndarray of shape (n_items,)
        Probability that the most probable class is correct, allowing for errors that annotators
        share.
    annotators_ : frame
        annotator, n_labels, skill, low and high (its 90 % interval), flags.
    skill_ : ndarray of shape (n_annotators,)
        Mean over classes of the probability of a correct label.
    confusion_low_, confusion_high_ : ndarray of shape (n_annotators, n_classes, n_classes)
        90 % intervals of the cells.
    diagnosis_ : Diagnosis
        Whether the labels identify the truth, and what would help.
    annotator_model_ : AnnotatorModel or None
    result_ : CrowdResult
        The result as one object, for everything downstream.
    table_ : LabelTable
        The labels; item k is row k of X.
    feature_names_in_ : ndarray of shape (n_features,)
        The columns of X, if they have names; later calls must use the same, in the same order.
    encoder_ : EncoderRecord or None
        The encoder that computed the features, if X is from `annotrace.data.encode`.
    network_ : nn.Module
        From stored rows to logits.
    history_ : list of Epoch
    augment_ : str
        The augmentation that was given or chosen; "own" is a function.
    """

    backbone: Backbone = "auto"
    epochs: Count | None = None
    batch_size: Count | None = None
    lr: Positive | None = None
    weight_decay: NotNegative | None = None
    schedule: Schedule | None = None
    validation_fraction: ProperFraction = 0.1
    augment: Literal["auto", "none", "crop", "crop+flip"] | OwnFunction = "auto"
    average_flips: bool = False
    precision: Precision = "float32"
    cuda_graphs: bool = True
    device: str = "auto"
    random_state: Seed = None
    verbose: bool = False
    callbacks: Sequence[Callback] = ()
    checkpoint: str | PathLike[str] | None = None
    warm_start: bool = False

    saved_attributes: ClassVar[Mapping[str, Any]] = {
        **FittedClassifier.saved_attributes,
        "augment_": str,
    }

    def fit(self, X: Any, y: Any, items: Items = None, gold: Gold = None) -> CrowdEstimator:
        """Learn the classifier and, where the method models them, the annotators.

        Parameters
        ----------
        X : array of shape (n_items, ...), texts, frame, or ItemSource
            Rows of features, images (n, height, width[, channels]), or texts: a sequence or column
            of str, or of pairs of them.
        y : LabelTable, array of shape (n_items,) or array of shape (n_items, n_annotators)
            A vector is one annotator's labels, every value a class. In an array of several
            annotators -1 (integers), NaN or None is missing.
        items : array-like of shape (n_items,), optional
            The item of each row of X; required if the table has names and X has none.
        gold : mapping from item to class, or array-like of shape (n_items,), optional
            Classes that are known for certain, by name; None, NaN or -1 in an array is unknown.
        """
        self.fit_with_checkpoints(X, y, items, gold).clear()
        return self

    def fit_with_checkpoints(
        self, X: Any, y: Any, items: Items = None, gold: Gold = None
    ) -> CheckpointSeries:
        """Fit, and return the checkpoints for the caller to clear once the model is saved."""
        check_parameters(self)
        previous = Previous.of(self) if self.warm_start and self.__sklearn_is_fitted__() else None
        modules = () if previous is None else previous.modules.values()
        with unchanged_unless_done(self), weights_unchanged_unless_done(modules):
            source, table = match(self, X, y, items)
            known = known_classes(table, gold)
            source, table, known = decode_images(source, table, known, self.verbose)
            check_learnable(table)
            if previous is not None:
                previous.check(self, table, encoder_of(source))
            checkpoints = CheckpointSeries(self.checkpoint)
            self.fit_matched(source, table, known, checkpoints, previous)
        return checkpoints

    def fit_matched(
        self,
        source: ItemSource,
        table: LabelTable,
        gold: NDArray[np.int32],
        checkpoints: CheckpointSeries,
        previous: Previous | None = None,
    ) -> None:
        """Fit to items and labels whose rows match already.

        Parameters
        ----------
        source : ItemSource
        table : LabelTable
            Item k is row k of the source.
        gold : ndarray of int, shape (n_items,)
            The class of each gold item, -1 elsewhere.
        checkpoints : CheckpointSeries
        previous : Previous, optional
            The fit to continue from.
        """
        self.table_, self.gold_, self._checkpoints = table, gold, checkpoints
        self.classes_, self.versions_ = plain_names(table.classes), versions()
        self.input_kind_ = input_kind(source)
        self.input_shape_: tuple[int, ...] = tuple(source.shape)
        self.encoder_ = encoder_of(source)
        self._set_groups()
        device = pick_device(self.device)
        self._seed = current().from_first(lambda: checkpoints.seed(self.random_state))
        # The user's own module and function may draw from torch's global generators.
        lends = isinstance(self.backbone, nn.Module) or callable(self.augment)
        random = Randomness(self._seed, device, lends=lends)
        with deterministic():
            data = CrowdData(source, table, device, random)
            self._set_augmentation(data, previous)
            if previous is None:
                self.network_: nn.Module = self._build_network(data)
            with random.initial_weights():
                self._build_modules(device)
            if previous is not None:
                self._initialize_from(previous)
            self.history_ = self._learn(data, self._settings(self._seed))
            self.network_.eval()
            self._set_result(self._make_result(data))

    def _set_groups(self) -> None:
        """Set what groups of classes there are, for methods that know of any."""

    def _set_augmentation(self, data: CrowdData, previous: Previous | None) -> None:
        """Set the augmentation of training batches, as given or chosen."""
        is_images = self.input_kind_ == "array" and len(self.input_shape_) > 1
        if not is_images and self.augment not in ("auto", "none"):
            raise InputError("`augment` is for images, but the items are not: leave it out.")
        kind = self.augment if is_images else "none"
        if kind == "auto":
            kind = self._choose_augmentation(data, previous)
        data.augment = make_augmentation(kind, self.input_shape_)
        self.augment_ = "own" if callable(kind) else kind

    def _choose_augmentation(self, data: CrowdData, previous: Previous | None) -> Kind:
        """Choose by held-out labels, or as the previous fit, or as the paper, which uses none."""
        if previous is not None and self.augment_ in KINDS:
            return self.augment_
        if getattr(self, "protocol", "default") == "paper" or self.validation_fraction == 0:
            return "none"
        network = partial(build_backbone, self.backbone, n_classes=self.table_.n_classes)
        build = partial(self._new_network, data, network)
        return choose_augmentation(data, self._settings(self._seed), build, self._run)

    # What a method defines

    @abstractmethod
    def _learn(self, data: CrowdData, settings: Settings) -> list[Epoch]:
        """Train `network_`; set whatever else the method learns."""

    def _initialize_from(self, previous: Previous) -> None:
        """Initialise what `_build_modules` built from a previous fit."""

    def _make_result(self, data: CrowdData) -> CrowdResult:
        """Combine the classifier's probabilities with the labels."""
        log_p = self._log_proba(data)
        combined = log_p.exp()
        if self.annotator_model_ is not None:
            likelihood = item_log_likelihood(self.annotator_model_, self.table_)
            combined = posterior(log_p, torch.from_numpy(likelihood))
        return self._result(combined.numpy(), log_p.exp().numpy())

    def _result(self, probabilities: NDArray[Any], prior: NDArray[Any]) -> CrowdResult:
        posterior = clamp_posterior(probabilities, self.gold_)
        estimate, model = posterior.argmax(axis=1), self.annotator_model_
        return CrowdResult(self.table_, posterior, estimate, model, prior, self.gold_)

    # Steps that methods share

    def _settings(self, seed: int) -> Settings:
        defaults = PROTOCOLS[getattr(self, "protocol", "default")].training
        names = ("epochs", "batch_size", "lr", "weight_decay", "schedule", "patience")
        given = {name: getattr(self, name, None) for name in names}
        given = {name: value for name, value in given.items() if value is not None}
        given |= {"precision": self.precision, "cuda_graphs": self.cuda_graphs, "seed": seed}
        return Settings(**(defaults | given))

    def _build_network(self, data: CrowdData) -> nn.Module:
        return self._new_network(data, self._network_for)

    def _new_network(
        self, data: CrowdData, build: Callable[[Tensor | Bags], nn.Module]
    ) -> nn.Module:
        """Build a network for rows like those of a sample of the data."""
        n_items = len(data.source)
        # Texts give their vocabulary, to which every text contributes.
        size = n_items if isinstance(data.source, TextSource) else min(SAMPLE, n_items)
        some = np.linspace(0, n_items - 1, size).astype(np.int64)
        sample = data.inputs(torch.from_numpy(some).to(data.device)).cpu()
        with data.random.lent(), data.random.initial_weights():
            return build(sample).to(data.device)

    def _labelled(self) -> NDArray[np.intp]:
        """Return the items to learn from: those with labels or a gold class."""
        return np.flatnonzero((self.table_.labels_per_item() > 0) | (self.gold_ >= 0))

    def _run(
        self,
        learned: nn.Module,
        objective: Callable[[Batch], Tensor],
        data: CrowdData,
        items: NDArray[np.intp],
        settings: Settings,
        score: Callable[[], float] | None = None,
    ) -> list[Epoch]:
        """Train on some items, as the next training of this fit."""
        has_path = self._checkpoints.path is not None
        identity = fingerprint(self, settings, data, self.gold_) if has_path else ""
        return train(
            learned,
            objective,
            data,
            torch.from_numpy(items).to(data.device),
            settings,
            score=score,
            callbacks=self.callbacks,
            verbose=self.verbose,
            checkpoint=self._checkpoints.next(identity, settings.seed),
        )
