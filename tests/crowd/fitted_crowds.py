"""Fitted crowds made from arrays, for tests of what is computed from a `CrowdResult`."""

import numpy as np
import torch

from annotrace.crowd.annotator_model import FixedMatrices
from annotrace.crowd.em import item_log_likelihood, posterior
from annotrace.crowd.result import CrowdResult
from annotrace.simulate import gaussian_features, simulate_labels
from annotrace.simulate.features import bayes_accuracy


def crowd_result(table, prior, confusion, *, gold=None, is_vote=False, **parts):
    """Return what a method would learn that knows the matrices (n_annotators, ...) and the prior.

    Pass `posterior` or `estimate` to replace what follows from these.
    """
    model = FixedMatrices(torch.from_numpy(np.ascontiguousarray(confusion, np.float64)))
    gold = np.full(table.n_items, -1, np.int32) if gold is None else gold.astype(np.int32)
    prior = np.asarray(prior, np.float64)
    if "posterior" not in parts:
        log_prior = torch.from_numpy(np.log(np.maximum(prior, 1e-30)))
        likelihood = torch.from_numpy(item_log_likelihood(model, table))
        parts["posterior"] = posterior(log_prior, likelihood).numpy()
        parts["posterior"][gold >= 0] = np.eye(table.n_classes)[gold[gold >= 0]]
    parts.setdefault("estimate", parts["posterior"].argmax(axis=1))
    return CrowdResult(
        table, annotator_model=model, prior=prior, gold=gold, is_vote=is_vote, **parts
    )


def with_classifier(
    confusion, n_items=900, labels_per_item=3, distance=2.5, seed=0, truth=None, **parts
):
    """Return the result of a method with the best classifier on Gaussian features."""
    rng = np.random.default_rng(seed)
    n_classes = confusion.shape[1]
    truth = rng.integers(0, n_classes, n_items) if truth is None else truth
    accuracy = bayes_accuracy(distance, n_classes)
    X = gaussian_features(truth, n_classes, accuracy=accuracy, random_state=rng)
    table = simulate_labels(truth, confusion, labels_per_item=labels_per_item, random_state=rng)
    scores = distance * X
    prior = np.exp(scores - scores.max(axis=1, keepdims=True))
    return crowd_result(table, prior / prior.sum(axis=1, keepdims=True), confusion, **parts)


def from_labels(confusion, n_items=900, labels_per_item=3, seed=0, shares=None, **parts):
    """Return the result of a method on labels alone."""
    rng = np.random.default_rng(seed)
    n_classes = confusion.shape[1]
    shares = np.full(n_classes, 1 / n_classes) if shares is None else np.asarray(shares)
    truth = rng.choice(n_classes, n_items, p=shares)
    table = simulate_labels(truth, confusion, labels_per_item=labels_per_item, random_state=rng)
    return crowd_result(table, shares, confusion, **parts)
