"""Made-up panels of judges, with errors that are shared as far as wanted."""

import numpy as np

import annotrace as at


def draw_panel(accuracies, n_items=400, shared=0.0, n_classes=2, seed=0, names=None):
    """Draw labels of judges who err on an item together with probability `shared`.

    Every judge is correct with its own probability, however much is shared: one uniform number per
    item decides for all judges, or one per judge.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    own, common = rng.random((n_items, len(accuracies))), rng.random((n_items, 1))
    together = rng.random((n_items, 1)) < shared
    wrong = np.where(together, common, own) > np.array(accuracies)
    step = 1 + rng.integers(n_classes - 1, size=(n_items, 1))
    labels = np.where(wrong, (truth[:, None] + step) % n_classes, truth[:, None])
    names = names or [f"judge-{k}" for k in range(len(accuracies))]
    table = at.LabelTable.from_wide(
        labels, items=[f"item-{k}" for k in range(n_items)], annotators=names
    )
    return table, truth


def gold_of(table, truth, n):
    """The first n items by name, with their classes."""
    return {str(table.items[k]): int(truth[k]) for k in range(n)}


def known_codes(truth, n):
    """The codes of the first n items, -1 for the others."""
    return np.where(np.arange(len(truth)) < n, truth, -1).astype(np.int32)
