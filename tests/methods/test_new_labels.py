"""The score of labels; `posterior` is tested with what all methods have in common."""

import numpy as np
import pytest
from crowds import NAMES, blobs, quick_params
from sklearn.exceptions import NotFittedError

import annotrace as at
from annotrace.errors import InputError

X, TRUTH, TABLE, CONFUSION = blobs(n_items=60)


def trained(name="trace", table=TABLE, rows=X):
    params = quick_params(name, CONFUSION) | {"epochs": 5, "lr": 1e-2, "random_state": 0}
    return at.make(name, **params).fit(rows, table)


@pytest.fixture(scope="module")
def model():
    return trained()


def codes(item, annotator, label, n_items):
    return at.LabelTable.from_codes(item, annotator, label, n_items=n_items)


@pytest.mark.parametrize("name", NAMES)
def test_every_method_scores_labels(name):
    model = trained(name)
    matrices = getattr(model, "confusion_", np.tile(np.eye(3), (6, 1, 1)))
    p = model.predict_proba(X)[TABLE.item]
    expected = np.log((p * matrices[TABLE.annotator, :, TABLE.label]).sum(axis=1)).mean()
    assert model.score(X, TABLE) == pytest.approx(expected, abs=1e-5)
    again = model.score(X, TABLE.to_wide())
    assert again == pytest.approx(model.score(X, TABLE), rel=1e-12)


def test_a_vector_is_the_truth(model):
    assert model.score(X, TRUTH) == np.mean(model.predict(X) == TRUTH)
    weight = (TRUTH == 0).astype(float)
    assert model.score(X, TRUTH, weight) == np.mean(model.predict(X)[TRUTH == 0] == 0)


def test_an_unknown_annotator_has_the_pools_matrix(model):
    pool = np.average(model.confusion_, axis=0, weights=TABLE.labels_per_annotator())
    expected = np.log(model.predict_proba(X[:1])[0] @ pool[:, 2])
    assert model.score(X[:1], codes([0], [9], [2], 1)) == pytest.approx(expected, abs=1e-6)


def test_rows_are_weighted_with_their_labels(model):
    weight = np.arange(60) % 2
    part = TABLE.select_items(weight == 1)
    expected = model.score(X[weight == 1], part)
    assert model.score(X, TABLE, sample_weight=weight) == pytest.approx(expected, rel=1e-12)


def test_a_class_unknown_to_the_model_is_unlikely_and_finite(model):
    known, unknown = codes([0], [0], [2], 1), codes([0, 0], [0, 0], [2, 3], 1)
    expected = (model.score(X[:1], known) + np.log(1e-12)) / 2
    assert model.score(X[:1], unknown) == pytest.approx(expected, rel=1e-9)


def test_certain_and_wrong_is_finite():
    rows = np.repeat([[-1.0], [1.0]], 30, axis=0)
    model = trained("vanilla", np.repeat([0, 1], 30), rows)
    score = model.score(1e6 * rows, np.repeat([[1, 1], [0, 0]], 30, axis=0))
    assert np.isfinite(score)
    assert score < -20


def test_items_are_matched_by_name(model):
    names = np.array([f"item-{k}" for k in range(60)])
    named = TABLE.replace(items=names, positional=False).select_items(np.arange(60)[::-1])
    assert model.score(X, named, items=names) == pytest.approx(model.score(X, TABLE), rel=1e-12)
    with pytest.raises(InputError, match="rows of X have none"):
        model.score(X, named)


def test_there_must_be_labels_and_a_fit(model):
    with pytest.raises(InputError, match="nothing to score"):
        model.score(X[:1], codes([], [], [], 1))
    with pytest.raises(NotFittedError):
        at.Vanilla().score(X, TABLE)
