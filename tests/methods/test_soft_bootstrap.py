import numpy as np
import pytest
import torch
from crowds import blobs

import annotrace as at
from annotrace.training import Batch


@pytest.mark.parametrize("beta", [1.0, 0.8])
def test_the_target_is_the_vote_mixed_with_the_networks_own_prediction(beta):
    X, _, table, _ = blobs(n_items=40, labels_per_item=3)
    model = at.SoftBootstrap(beta=beta, epochs=1, random_state=0).fit(X, table)
    torch.manual_seed(0)
    logits, item = torch.randn(5, 3), torch.arange(5)
    none = torch.zeros(0, dtype=torch.long)
    loss = model._loss(Batch(torch.from_numpy(X[:5]), item, none, none, none), logits)
    p, votes = torch.softmax(logits, 1).numpy(), model._targets[:5].numpy()
    expected = -((beta * votes + (1 - beta) * p) * np.log(p)).sum(1).mean()
    assert loss.item() == pytest.approx(expected, rel=1e-5)
