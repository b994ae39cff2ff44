import numpy as np
import pytest
import torch
from crowds import NAMES, QUICK, blobs, quick_params

import annotrace as at
from annotrace.errors import InputError
from annotrace.methods.warm_start import Previous, matrices_by_name


@pytest.mark.parametrize("name", NAMES)
def test_a_warm_start_continues_from_the_last_fit(name):
    X, truth, table, confusion = blobs(n_items=150)
    settings = quick_params(name, confusion)
    model = at.make(name, epochs=20, lr=1e-2, random_state=0, **settings).fit(X, table)
    learned = model.network_
    model.set_params(warm_start=True, epochs=4, lr=1e-6).fit(X, table)
    # Cross-fitted EM continues from its predictions, which new networks learn.
    if name not in ("auto", "crossfit", "item-dependent"):
        assert model.network_ is learned
        assert np.mean(model.predict(X) == truth) > 0.8


def test_a_warm_start_keeps_what_was_chosen_unless_the_parameter_was_set_since():
    X, _, table, _ = blobs(n_items=60)
    recipe = at.Recipe(n_init=1, mixup=0.0)
    model = at.TraceRegularized(epochs=2, lam="auto", recipe=recipe, random_state=0).fit(X, table)
    chosen = model.chosen_
    model.set_params(warm_start=True).fit(X, table)
    assert model.chosen_ == chosen | {"init": 0}
    model.set_params(lam=0.3).fit(X, table)
    assert model.chosen_ == chosen | {"init": 0, "lam": 0.3}


@pytest.mark.parametrize("name", ["trace", "gem", "wdn", "vanilla", "crossfit"])
def test_a_warm_start_that_is_interrupted_keeps_what_was_learned(name):
    X, _, table, _ = blobs(n_items=60)
    model = at.make(name, epochs=4, random_state=0, **QUICK.get(name, {})).fit(X, table)
    before = model.predict_proba(X)

    def stop(epoch):
        raise KeyboardInterrupt

    model.set_params(warm_start=True, callbacks=[stop], lr=0.1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, table)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert not model.network_.training


def test_annotators_keep_their_matrices_by_name():
    known = at.LabelTable.from_long(
        {"item": list("abc"), "annotator": ["kim", "lee", "kim"], "label": [0, 1, 0]}
    )
    matrices = np.array([np.eye(2), [[0.5, 0.5], [0.5, 0.5]]])
    table = at.LabelTable.from_long(
        {"item": list("ab"), "annotator": ["lee", "mia"], "label": [0, 1]}
    )
    found = matrices_by_name(known, matrices, table)
    np.testing.assert_allclose(found[0], matrices[1])
    np.testing.assert_allclose(found[1], (2 * matrices[0] + matrices[1]) / 3)


def test_items_keep_their_folds_by_name():
    table = at.LabelTable.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 0])
    previous = Previous(table, "array", (2,), None, None, None, np.array([1, 0, 1]), None, {})
    more = at.LabelTable.from_codes([0, 3], [0, 0], [0, 1])
    assert previous.folds(more).tolist() == [1, 0, 1, -1]


def test_items_keep_their_out_of_fold_predictions_by_name():
    table = at.LabelTable.from_codes([0, 1], [0, 0], [0, 1])
    proba, fold = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1])
    previous = Previous(table, "array", (2,), None, None, None, fold, proba, {})
    more = at.LabelTable.from_codes([1, 2], [0, 0], [0, 1], n_items=3)
    new = np.full((3, 2), 0.5)
    found = previous.out_of_fold(more, torch.from_numpy(new).log()).exp()
    np.testing.assert_allclose(found, [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("X_change", "classes", "said"),
    [(slice(0, 1), 3, "items of shape"), (slice(None), 4, "the classes of the last fit")],
    ids=["shape", "classes"],
)
def test_data_that_the_network_does_not_fit_is_rejected(X_change, classes, said):
    X, _, table, _ = blobs(n_items=30)
    model = at.Vanilla(epochs=1, random_state=0, warm_start=True).fit(X, table)
    before = model.predict_proba(X)
    other = at.LabelTable.from_codes(
        table.item, table.annotator, table.label, n_items=30, n_classes=classes
    )
    with pytest.raises(InputError, match=said):
        model.fit(X[:, X_change], other)
    np.testing.assert_array_equal(model.predict_proba(X), before)
