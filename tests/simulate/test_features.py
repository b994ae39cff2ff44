import numpy as np
import pytest

from annotrace.errors import InputError
from annotrace.simulate import gaussian_features


@pytest.mark.parametrize(("n_classes", "accuracy"), [(2, 0.7), (5, 0.8), (10, 0.5)])
def test_the_best_classifier_has_the_accuracy_asked_for(n_classes, accuracy):
    truth = np.random.default_rng(0).integers(0, n_classes, 40_000)
    X = gaussian_features(truth, n_classes, accuracy=accuracy, random_state=1)
    # Gaussians with equal covariance: the nearest mean, here the largest feature, is optimal.
    assert np.mean(X.argmax(axis=1) == truth) == pytest.approx(accuracy, abs=0.008)


def test_an_accuracy_below_chance_is_rejected():
    with pytest.raises(InputError, match=r"above chance, 1 / 4, and below 1, but got 0.2"):
        gaussian_features([0, 1], 4, accuracy=0.2)
