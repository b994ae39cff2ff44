import numpy as np
from crowds import blobs

import annotrace as at


def test_gold_items_without_labels_are_not_votes():
    X, truth, table, _ = blobs(n_items=240, labels_per_item=6, skill=0.95)
    some = table.select_items(np.arange(60)).with_items(np.arange(240))
    model = at.make("single-cm", epochs=30, random_state=0)
    model.fit(X, some, gold=dict(enumerate(truth)))
    assert np.diag(model.vote_confusion_).min() > 0.9


def test_the_posterior_is_classifier_times_vote():
    X, _, table, _ = blobs(n_items=80, labels_per_item=1)
    some = table.select_items(np.arange(60)).with_items(np.arange(80))
    model = at.SingleConfusion(epochs=4, random_state=0).fit(X, some)
    expected = model.predict_proba(X)
    expected[some.item] *= model.vote_confusion_[:, some.label].T
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(model.posterior_, expected, atol=1e-6)
    assert not hasattr(model, "confusion_")
    assert model.annotator_model_ is None
