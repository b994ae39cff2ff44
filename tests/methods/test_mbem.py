import numpy as np
import torch
from crowds import blobs, built

import annotrace as at


def test_matrices_are_counted_from_predictions_and_so_is_the_prior():
    _, _, table, _ = blobs(n_items=20, labels_per_item=3)
    model = built("mbem", table)
    log_p = torch.log(torch.tensor([[0.6, 0.3, 0.1]] * 15 + [[0.1, 0.2, 0.7]] * 5))
    counted = model._counted(torch.zeros(20, 3), log_p)
    np.testing.assert_array_equal(counted.sum(0), [15, 0, 5])
    np.testing.assert_allclose(model._log_prior(log_p).exp(), [0.75, 0, 0.25], atol=1e-9)


def test_one_label_per_item_is_enough_to_overrule_it():
    X, truth, table, _ = blobs(n_items=400, labels_per_item=1, skill=0.7)
    model = at.ModelBootstrappedEM(epochs=20, lr=1e-2, random_state=0).fit(X, table)
    voted = np.mean(table.label == truth[table.item])
    assert np.mean(model.posterior_.argmax(1) == truth) > voted + 0.1
