import numpy as np
import pytest
from crowds import blobs

import annotrace as at
from annotrace.errors import InputError


def fitted():
    X, truth, table, _ = blobs(n_items=200)
    return (
        at.TraceRegularized(epochs=10, recipe=at.Recipe(n_init=1), random_state=0).fit(X, table),
        X,
        truth,
    )


def test_the_posterior_of_new_items_is_classifier_times_labels_of_annotators_by_name():
    model, X, _ = fitted()
    table = at.LabelTable.from_codes(
        [0, 0, 2], [5, 1, 5], [2, 2, 0], n_items=3, n_annotators=6, n_classes=3
    )
    expected = model.predict_proba(X[:3])
    expected[0] *= model.confusion_[5, :, 2] * model.confusion_[1, :, 2]
    expected[2] *= model.confusion_[5, :, 0]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.posterior(X[:3], table), expected, rtol=1e-6)


def test_an_annotator_unknown_to_fit_has_the_pools_matrix():
    model, X, _ = fitted()
    table = at.LabelTable.from_codes([0], [9], [2], n_items=1, n_annotators=10, n_classes=3)
    pool = np.average(model.confusion_, axis=0, weights=model.table_.labels_per_annotator())
    expected = model.predict_proba(X[:1]) * pool[:, 2]
    np.testing.assert_allclose(model.posterior(X[:1], table), expected / expected.sum(), rtol=1e-6)


@pytest.mark.parametrize("y", [[[2, 2, -1], [2, -1, 2]], [2, 2]], ids=["several", "one"])
def test_new_labels_may_be_all_alike(y):
    model, X, _ = fitted()
    expected = model.predict_proba(X[:2])
    for row, labels in enumerate(np.reshape(y, (2, -1))):
        for annotator in np.flatnonzero(labels >= 0):
            expected[row] *= model.confusion_[annotator, :, 2]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.posterior(X[:2], y), expected, rtol=1e-6)


def test_a_class_unknown_to_fit_is_rejected():
    model, X, _ = fitted()
    table = at.LabelTable.from_codes([0], [0], [3], n_items=1, n_annotators=1, n_classes=4)
    with pytest.raises(InputError, match="classes '3' that were not in `fit`"):
        model.posterior(X[:1], table)
    with pytest.raises(InputError, match="classes '3' that were not in `fit`"):
        model.posterior(X[:1], [[3, 1]])


def test_a_method_without_annotators_says_what_to_use():
    X, _, table, _ = blobs(n_items=60)
    model = at.Vanilla(epochs=2, random_state=0).fit(X, table)
    with pytest.raises(InputError, match="Vanilla does not model annotators"):
        model.posterior(X, table)


def test_computing_a_posterior_changes_nothing():
    model, X, _ = fitted()
    before = vars(model).copy()
    model.posterior(X[:2], np.array([[0, -1], [1, 2]]))
    assert all(vars(model)[name] is before[name] for name in before)
