import numpy as np
import pytest

from annotrace.diagnosis.counting import label_scores, normalised, report_matrix
from annotrace.simulate import gaussian_features, simulate_labels
from annotrace.simulate.features import bayes_accuracy


@pytest.fixture
def learned():
    """Give what a method that knows everything would learn: table, posterior."""

    def make(confusion, n_items=900, labels_per_item=3, distance=2.5, seed=0, truth=None):
        rng = np.random.default_rng(seed)
        n_classes = confusion.shape[1]
        truth = rng.integers(0, n_classes, n_items) if truth is None else truth
        accuracy = bayes_accuracy(distance, n_classes)
        X = gaussian_features(truth, n_classes, accuracy=accuracy, random_state=rng)
        table = simulate_labels(truth, confusion, labels_per_item=labels_per_item, random_state=rng)
        scores = distance * X + label_scores(report_matrix(table), confusion)
        return table, normalised(scores)

    return make
