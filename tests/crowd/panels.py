"""Panels of annotators who label all items and share errors."""

import numpy as np
from scipy.special import ndtri

from annotrace.labels import LabelTable


def shared_error_panel(correlation, n_items=1500, n_annotators=9, accuracy=0.75, seed=0):
    """Return labels with truth; errors follow a Gaussian factor of the item.

    `correlation` is that of the factor: errors themselves correlate by about two thirds of it.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_items)
    own = rng.normal(size=(n_items, n_annotators))
    factor = np.sqrt(correlation) * rng.normal(size=(n_items, 1)) + np.sqrt(1 - correlation) * own
    right = factor < ndtri(np.linspace(accuracy - 0.08, accuracy + 0.08, n_annotators))
    label = np.where(right, truth[:, None], 1 - truth[:, None])
    item, annotator = np.divmod(np.arange(label.size), n_annotators)
    return LabelTable.from_codes(item, annotator, label.ravel(), truth=truth)
