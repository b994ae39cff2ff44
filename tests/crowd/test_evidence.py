"""Losses of labels against sums over classes, label by label."""

import numpy as np
import pytest
import torch

import annotrace as at
from annotrace.crowd.evidence import loss_given_features, loss_given_other_labels

ITEM, ANNOTATOR, LABEL = [0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [0, 1, 0, 1, 1]
A = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.3, 0.7]], [[0.8, 0.2], [0.1, 0.9]]])
TABLE = at.LabelTable.from_codes(ITEM, ANNOTATOR, LABEL, n_items=2, n_annotators=3, n_classes=2)
LIKELIHOOD = torch.from_numpy(np.log(A[ANNOTATOR, :, LABEL]))
PRIOR = np.array([0.3, 0.7])


def test_a_label_is_predicted_from_the_others_of_its_item():
    losses = []
    for k in range(5):
        p = PRIOR.copy()
        for j in range(5):
            if j != k and ITEM[j] == ITEM[k]:
                p = p * A[ANNOTATOR[j], :, LABEL[j]]
        losses.append(-np.log((p / p.sum()) @ A[ANNOTATOR[k], :, LABEL[k]]))
    found = loss_given_other_labels(TABLE, LIKELIHOOD, torch.from_numpy(np.log(PRIOR)))
    assert found == pytest.approx(np.mean(losses))


def test_a_label_is_predicted_from_features_at_the_best_temperature():
    right = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    sharp = loss_given_features(TABLE, LIKELIHOOD, right)
    assert sharp == pytest.approx(loss_given_features(TABLE, LIKELIHOOD, 2 * right), abs=0.05)
    even = loss_given_features(TABLE, LIKELIHOOD, 0 * right)
    by_hand = -np.mean(
        [np.log(0.5 * A[a, :, y].sum()) for a, y in zip(ANNOTATOR, LABEL, strict=True)]
    )
    assert even == pytest.approx(by_hand)
    assert sharp < even
