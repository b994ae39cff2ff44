r"""EM over labels whose annotator model has not seen the item it is applied to.

Items are in folds. The posterior of an item of fold k uses matrices counted on the other folds and
a prior of its own, p(class | features), from a classifier trained on the other folds. Nothing that
judges an item has learned from its labels, so nothing returns an item's labels to it::

    E: q_n(i, level) ~ p_n(i)^(1/T) p(level) prod_r p^(-k(n))(label | i, r, level)
    M: A^(-k)[r, i]  = (alpha_i + sum over items not in fold k) normalised

An item is clear or doubtful, and labels of doubtful items may be guesses
(`annotrace.crowd.item_difficulty`), if that explains the labels significantly better; otherwise all
items are clear. Matrices and guesses have Dirichlet priors that all annotators share; their centres
and strengths are learned (`annotrace.crowd.dirichlet`). The temperature T makes the labels most
likely: it corrects a classifier that is overconfident or underconfident.

At the end the correlation of errors that remains is estimated, and the evidence of labels is
divided by its design effect; that of the classifier is not. Nothing learns from that posterior:
matrices counted from it look worse than they are, from which more shared errors follow, and on
sentiment sentences, with a weak classifier, its accuracy may fall from .918 to .79.
"""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.crowd.dependence import predict_dependence
from annotrace.crowd.dependent_annotators import DependentAnnotators
from annotrace.crowd.dirichlet import initial_pool, update_pool
from annotrace.crowd.em import matrices_from_counts, posterior
from annotrace.crowd.evidence import loss_given_features, loss_given_other_labels
from annotrace.crowd.item_difficulty import cap_doubtful, split_counts
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.temperature import fit_temperature, match_temperature, tempered_e_step
from annotrace.labels.table import LabelTable
from annotrace.methods.class_repair import minimum_gain

N_ITER = 20
CALIBRATE_EVERY = SHORT = 5
# Beside a classifier fewer items need to be doubtful than without. Accuracy of the posterior, given
# the classifier, on three simulated panels with shared errors and on sentiment sentences: .851,
# .803, .885 and .918 if all items are clear; .876, .817, .906 and .917 with .05; .892, .817, .897
# and .914 with .1. If one of the four is left out, .05 or .1 has the highest mean of the others;
# .05 costs the last next to nothing.
MAX_DOUBTFUL = 0.05


class HeldOutEM:
    """The EM of cross-fitting: an annotator model for each fold, counted on all others.

    Parameters
    ----------
    table : LabelTable
    fold : ndarray of shape (n_items,)
        From 0.
    gold : ndarray of shape (n_items,)
        The class of each gold item, -1 elsewhere.

    Attributes
    ----------
    posterior : Tensor of shape (n_items, n_classes)
    temperature : float
    label_loss : float
        Negative log-likelihood per label.
    """

    _marginal: Tensor
    _doubtful: Tensor

    def __init__(self, table: LabelTable, fold: NDArray[np.int64], gold: NDArray[np.int32]) -> None:
        self.n_folds = int(fold.max()) + 1
        self.shape = (table.n_annotators, table.n_classes, table.n_classes)
        self.table = table
        # One annotator per fold and annotator: then one pass counts, and one infers, for all folds.
        self.problem = CrowdProblem(_annotators_by_fold(table, fold, self.n_folds), gold)
        self.temperature = 1.0
        self.label_loss = float("inf")
        self.posterior = self.problem.votes()
        self._target: Tensor | None = None
        self._assume_clear()

    def set_posterior(self, posterior: Tensor) -> None:
        """Set the posterior that a classifier is to learn from; gold items stay certain."""
        self.posterior = self.problem.set_gold(posterior.to(self.problem.dtype))

    def count_matrices(self, truth: Tensor) -> None:
        """Start with matrices counted from class probabilities, (n_items, n_classes)."""
        self._seen = self._by_fold(self.problem.labels.counts(truth.to(self.problem.dtype)))
        self._prior = initial_pool(self._seen.sum((0, 1))[None] + 0.1)
        self._hold_out()

    def set_matrices(self, matrices: Tensor) -> None:
        """Start with given matrices, (n_annotators, n_classes, n_classes), for every fold."""
        matrices = matrices.to(self.problem.dtype).clamp(min=1e-4)
        self._prior = initial_pool(matrices)
        self._held_out = matrices.repeat(self.n_folds, 1, 1)

    def run(self, logits: Tensor) -> None:
        """Alternate between posterior and annotator model, given out-of-fold logits.

        Parameters
        ----------
        logits : Tensor of shape (n_items, n_classes)
        """
        logits = logits.to(self.problem.dtype)
        self._assume_clear()
        with_doubt = copy.copy(self)
        with_doubt._doubtful = self.posterior.new_tensor(MAX_DOUBTFUL)
        self._iterate(logits)
        with_doubt._iterate(logits)
        if self.label_loss - with_doubt.label_loss > minimum_gain(self.table.n_labels):
            vars(self).update(vars(with_doubt))

    def restart(self, logits: Tensor) -> None:
        """Start from a classifier's predictions, whatever came before, and run."""
        logits = logits.to(self.problem.dtype)
        self.set_posterior(torch.softmax(logits, 1))
        self.count_matrices(self.posterior)
        self.run(logits)

    def evaluate(self, logits: Tensor) -> float:
        """Return the loss per label after a short restart from a classifier's predictions."""
        short = copy.copy(self)
        logits = logits.to(self.problem.dtype)
        short.count_matrices(torch.softmax(logits, 1))
        short._assume_clear()
        short._iterate(logits, SHORT)
        return short.label_loss

    def _iterate(self, logits: Tensor, n_iter: int | None = None) -> None:
        for step in range(N_ITER if n_iter is None else n_iter):
            likelihood = self._likelihood()
            if step % CALIBRATE_EVERY == 0:
                self.temperature = self._best_temperature(logits, likelihood)
            state, log_evidence = tempered_e_step(
                self.problem, logits, likelihood, self.temperature
            )
            self._m_step(state)
        self.set_posterior(self._sum_levels(state))
        self.label_loss = -log_evidence / self.problem.table.n_labels

    def calibrate_to(self, target: Tensor) -> None:
        """Calibrate the classifier to class probabilities too, from now on.

        The temperature at which labels are most likely is too low: annotators are wrong where a
        classifier is that learned from them. The one at which a posterior by labels alone has the
        least cross-entropy is too high, because of its own errors. The temperature by the truth was
        between them on all of ten sets of texts; their geometric mean is taken.

        Parameters
        ----------
        target : Tensor of shape (n_items, n_classes)
        """
        self._target = target.to(self.problem.dtype)

    def _best_temperature(self, logits: Tensor, likelihood: Tensor) -> float:
        by_labels, _ = fit_temperature(self.problem, logits, likelihood)
        if self._target is None:
            return by_labels
        return math.sqrt(by_labels * match_temperature(self.problem, logits, self._target))

    def without_gold(self, logits: Tensor) -> Tensor:
        """Return the posterior of all items by their labels and features, gold or not."""
        log_prior = torch.log_softmax(logits.to(self.problem.dtype) / self.temperature, 1)
        likelihood = self.held_out_model().item_log_likelihood(self.problem.labels)
        return posterior(log_prior, likelihood)

    def score(self, logits: Tensor) -> float:
        """Return the loss per label of a classifier at its best temperature, all else fixed."""
        logits = logits.to(self.problem.dtype)
        loss = fit_temperature(self.problem, logits, self._likelihood())[1]
        return loss / self.problem.table.n_labels

    def labels_outweigh(self, logits: Tensor) -> bool:
        """Whether a label is predicted better by its item's other labels than by a classifier.

        To be called after `count_matrices` of the posterior that the classifier has learned.
        """
        table, log = self.problem.table, self._held_out.log()
        annotator, label = (torch.tensor(each).long() for each in (table.annotator, table.label))
        likelihood = log[annotator, :, label]
        log_prior = self.posterior.mean(0).clamp_min(1e-6).log()
        by_labels = loss_given_other_labels(table, likelihood, log_prior)
        return by_labels < loss_given_features(table, likelihood, logits.to(log.dtype))

    def matrices(self) -> Tensor:
        """Return the matrices by all labels, (n_annotators, n_classes, n_classes)."""
        return self._model(*self._means()).matrices()

    def discount(self, logits: Tensor) -> DependentAnnotators:
        """Discount the posterior by the correlation of errors; return the model by all labels."""
        matrices, guesses = self._means()
        clear, posterior = (each.double().numpy() for each in (matrices, self.posterior))
        found = predict_dependence(self.table, clear, posterior, self.problem.gold)
        likelihood = self._likelihood(found.expected)
        logits = logits.to(self.problem.dtype)
        state, _ = tempered_e_step(self.problem, logits, likelihood, self.temperature)
        self.set_posterior(self._sum_levels(state))
        return self._model(matrices, guesses, found.expected)

    def held_out_model(self, correlation: float = 0.0) -> DependentAnnotators:
        """Return the models of all folds: of n_folds * n_annotators annotators, fold 0 first."""
        return self._model(self._held_out, self._held_out_guesses, correlation)

    def _likelihood(self, correlation: float = 0.0) -> Tensor:
        """Return log p(labels, clear or doubtful | class), (n_items, 2 * n_classes).

        If all items are clear and no errors are shared, shape (n_items, n_classes).
        """
        if not self._doubtful and correlation == 0:
            return self.problem.labels.sum_matrices(self._held_out.log())
        return self.held_out_model(correlation).state_log_likelihood(self.problem.labels)

    def _m_step(self, state: Tensor) -> None:
        counts = self.problem.labels.counts(state)
        if not self._doubtful:
            self._seen = self._by_fold(counts)
            self._prior = update_pool(self._seen.sum(0), self._prior)
            self._held_out = _mean_of_others(self._seen, self._prior)
            return
        was_seen = self.held_out_model().state_logs().seen
        seen, guessed, self._guess_rate = split_counts(counts, was_seen)
        self._seen, self._guessed = self._by_fold(seen), self._by_fold(guessed)
        self._prior = update_pool(self._seen.sum(0), self._prior)
        self._marginal = update_pool(self._guessed.sum(0), self._marginal)
        n_items = cap_doubtful(1 + self.problem.total(state).view(2, -1).sum(1), MAX_DOUBTFUL)
        self._doubtful = n_items[1] / n_items.sum()
        self._hold_out()

    def _sum_levels(self, state: Tensor) -> Tensor:
        """Sum clear and doubtful, (n_items, n_classes)."""
        return state.view(len(state), -1, self.shape[1]).sum(1)

    def _assume_clear(self) -> None:
        """Assume that no item is doubtful, and know nothing about guesses."""
        n_annotators, n, _ = self.shape
        self._guessed = self.posterior.new_zeros(self.n_folds, n_annotators, 1, n)
        self._marginal = self.posterior.new_full((1, 1, n), 4 / n)
        self._held_out_guesses = _mean_of_others(self._guessed, self._marginal)
        self._guess_rate, self._doubtful = self.posterior.new_tensor([0.5, 0.0])

    def _hold_out(self) -> None:
        """Set the matrices and guesses of each fold, counted on the others."""
        self._held_out = _mean_of_others(self._seen, self._prior)
        self._held_out_guesses = _mean_of_others(self._guessed, self._marginal)

    def _means(self) -> tuple[Tensor, Tensor]:
        """Return matrices of clear items and guesses by all labels."""
        matrices = matrices_from_counts(self._seen.sum(0), self._prior).contiguous()
        return matrices, matrices_from_counts(self._guessed.sum(0), self._marginal)

    def _model(
        self, matrices: Tensor, guesses: Tensor, correlation: float = 0.0
    ) -> DependentAnnotators:
        difficulty = self._guess_rate, self._doubtful
        return DependentAnnotators(matrices, guesses, *difficulty, correlation)

    def _by_fold(self, counts: Tensor) -> Tensor:
        """View counts by fold, (n_folds, n_annotators, n_states, n_classes)."""
        return counts.reshape(self.n_folds, self.shape[0], -1, self.shape[2])


def _mean_of_others(counts: Tensor, prior: Tensor) -> Tensor:
    """Return distributions by the counts of all other folds, (n_folds * n_annotators, ...)."""
    others = (counts.sum(0) - counts).clamp_(min=0)
    return matrices_from_counts(others, prior).flatten(0, 1)


def _annotators_by_fold(table: LabelTable, fold: NDArray[np.int64], n_folds: int) -> LabelTable:
    return LabelTable.from_codes(
        table.item,
        fold[table.item] * table.n_annotators + table.annotator,
        table.label,
        n_items=table.n_items,
        n_annotators=n_folds * table.n_annotators,
        n_classes=table.n_classes,
    )
