"""Small simulated crowds that several tests learn from."""

from functools import partial

import numpy as np
import torch
from sklearn.decomposition import PCA

from annotrace.data import load_digits
from annotrace.diagnosis import dominant_draws
from annotrace.methods import Recipe, list_methods, make
from annotrace.simulate import hammer_spammers, pairwise_flippers, simulate_labels
from annotrace.training import Batch

TRAINED_ONCE = {
    "structure": "full",
    "recipe": Recipe(n_init=1, mixup=0.0, calibrate=False),
}
"""For `trace`: one training, as of the other methods."""

QUICK = {
    "auto": {"n_iter": 1},
    "crossfit": {"init": "votes", "n_iter": 2},
    "item-dependent": {"init": "votes", "n_iter": 2},
    "trace": {"structure": "full", "recipe": Recipe(n_init=1, mixup=1.0)},
}
"""Methods that train several times, in less time."""

NAMES = [entry.name for entry in list_methods()]


def digits():
    return load_digits().split(1400)


def dominant_flippers(skill, n_draws):
    return dominant_draws(partial(pairwise_flippers, 5, 10, skill), n_draws)


def blobs(n_items=240, n_annotators=6, skill=0.8, labels_per_item=2, seed=0):
    """Three well separated classes: X, truth, table, matrices."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    centres = np.array([[0.0, 4.0], [4.0, 0.0], [-4.0, -4.0]])
    X = (centres[truth] + rng.normal(size=(n_items, 2))).astype(np.float32)
    confusion = pairwise_flippers(n_annotators, 3, skill, rng)
    table = simulate_labels(truth, confusion, labels_per_item=labels_per_item, random_state=rng)
    return X, truth, table, confusion


def on_a_line():
    """Six classes on a line, so that between any two of them lie others: X, truth, table."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 6, 600)
    X = (4.0 * truth[:, None] + rng.normal(size=(600, 1))).astype(np.float32)
    crowd = hammer_spammers(6, 6, 0.8, random_state=0)
    return X, truth, simulate_labels(truth, crowd, labels_per_item=2, random_state=0)


def few_features():
    """Digits as five principal components, one label each, twenty annotators: X, truth, table."""
    train, _ = digits()
    X = PCA(5, random_state=0).fit_transform(train.X.reshape(len(train.X), -1))
    skill = np.linspace(0.25, 0.95, 20)[:, None, None]
    confusion = np.where(np.eye(10) > 0, skill, (1 - skill) / 9)
    table = simulate_labels(train.y, confusion, labels_per_item=1, random_state=0)
    return X.astype(np.float32), train.y, table


def quick_params(name, confusion):
    """Parameters with which a method fits in little time."""
    return {"confusion": confusion} if name == "oracle" else QUICK.get(name, {})


def whole_batch(table, inputs=None):
    """All items of a table with their labels, as one batch."""
    codes = (torch.from_numpy(part.astype(np.int64)) for part in (table.annotator, table.label))
    row = torch.from_numpy(table.item.astype(np.int64))
    inputs = torch.zeros(table.n_items, 1) if inputs is None else inputs
    return Batch(inputs, torch.arange(table.n_items), row, *codes)


def built(name, table, **params):
    """An estimator with its modules built, before any training."""
    model = make(name, **params)
    model.table_ = table
    model._build_modules(torch.device("cpu"))
    return model
