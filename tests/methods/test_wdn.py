import numpy as np
from crowds import blobs

import annotrace as at


def test_weights_follow_whose_labels_make_the_votes():
    X, truth, _, _ = blobs(n_items=900)
    right = np.eye(3) * 0.9 + 0.1 / 3
    swapped = right[[1, 2, 0]]
    table = at.simulate.simulate_labels(
        truth,
        np.stack([right, swapped]),
        labels_per_item=1,
        activity=[9, 1],
        random_state=0,
    )
    model = at.WeightedDoctorNet(epochs=40, random_state=0).fit(X, table)
    np.testing.assert_allclose(model.weights_.sum(), 1, atol=1e-6)
    assert model.weights_[0] > 0.7
    assert model.score(X, truth) > 0.9


def test_it_scales_to_100_000_annotators():
    X, truth, table, _ = blobs(n_items=2000, n_annotators=100_000, labels_per_item=3)
    model = at.WeightedDoctorNet(epochs=2, width=16, random_state=0).fit(X, table)
    assert model._heads.sparse
    assert model.score(X[:200], truth[:200]) > 0.8
