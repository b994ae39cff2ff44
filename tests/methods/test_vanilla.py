import numpy as np
import pytest
from crowds import blobs

import annotrace as at


@pytest.mark.parametrize("targets", ["majority", "every"])
def test_what_the_network_learns(targets):
    X, truth, table, _ = blobs(n_items=60, labels_per_item=3)
    gold = {4: int(truth[4])}
    model = at.Vanilla(targets=targets, epochs=1, random_state=0).fit(X, table, gold=gold)
    votes = table.votes()
    learned = model._targets.numpy()
    if targets == "every":
        np.testing.assert_array_equal(learned[5:], votes[5:])
    else:
        np.testing.assert_array_equal(learned[5:].sum(1), 1)
        assert np.all(votes[learned == 1] == votes.max(1))
    np.testing.assert_array_equal(learned[4], np.eye(3)[truth[4]])


def test_annotators_are_not_modelled():
    X, _, table, _ = blobs(n_items=60)
    model = at.Vanilla(epochs=1, random_state=0).fit(X, table)
    assert model.annotator_model_ is None
    assert not hasattr(model, "confusion_")
    assert not model.result_.models_annotators
    np.testing.assert_allclose(model.posterior_, model.predict_proba(X), atol=1e-6)
