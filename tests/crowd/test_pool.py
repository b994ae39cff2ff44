import numpy as np
import torch

from annotrace.crowd import FixedMatrices, annotator_model
from annotrace.crowd.pool import fill_unlabelled, pooled_confusion, pooled_matrix

MATRICES = np.array([np.eye(2), [[0.5, 0.5], [0.2, 0.8]], [[0.1, 0.9], [0.9, 0.1]]])


def test_the_pool_weights_annotators_by_their_labels():
    expected = (3 * MATRICES[0] + MATRICES[1]) / 4
    np.testing.assert_allclose(pooled_confusion(MATRICES, np.array([3, 1, 0])), expected)


def test_annotators_without_labels_have_the_pool():
    n_labels = np.array([3, 1, 0])
    filled = fill_unlabelled(MATRICES, n_labels)
    np.testing.assert_array_equal(filled[:2], MATRICES[:2])
    np.testing.assert_allclose(filled[2], pooled_confusion(MATRICES, n_labels))
    assert fill_unlabelled(MATRICES, np.ones(3)) is MATRICES


def test_the_pool_of_a_model_is_made_by_blocks(monkeypatch):
    monkeypatch.setattr(annotator_model, "BLOCK", 8)
    n_labels = np.array([3, 1, 2])
    pool = pooled_matrix(FixedMatrices(torch.from_numpy(MATRICES)), n_labels)
    np.testing.assert_allclose(pool, pooled_confusion(MATRICES, n_labels), atol=1e-9)
