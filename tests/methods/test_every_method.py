"""Every method on one footing: digits, five pairwise flippers at skill .5."""

import numpy as np
import pytest
from crowds import blobs, digits, dominant_flippers
from sklearn.utils.estimator_checks import check_estimator

import annotrace as at
from annotrace.errors import InputError
from annotrace.methods.registry import METHODS
from annotrace.simulate import simulate_labels

# What a method reaches at the least: (five labels an item, one label an item). The annotators are
# right half of the time; chance is .1.
AT_LEAST = {
    "trace": (0.95, 0.93),
    "gem": (0.95, 0.75),
    "mbem": (0.95, 0.75),
    "single-cm": (0.92, 0.75),
    "wdn": (0.85, 0.75),
    "soft-bootstrap": (0.88, 0.7),
    "vanilla": (0.88, 0.7),
    "two-stage": (0.93, 0.7),
    "oracle": (0.95, 0.93),
}


@pytest.mark.parametrize("labels_per_item", [None, 1], ids=["dense", "one"])
@pytest.mark.parametrize("name", METHODS)
def test_learns_digits(name, labels_per_item):
    train, test = digits()
    seed, crowd = dominant_flippers(0.5, 1)[0]
    table = simulate_labels(train.y, crowd, labels_per_item=labels_per_item, random_state=seed)
    settings = {"confusion": crowd} if name == "oracle" else {}
    model = at.make(name, random_state=0, **settings).fit(train.X, table)
    accuracy = model.score(test.X, test.y)
    assert accuracy >= AT_LEAST[name][0 if labels_per_item is None else 1]
    assert model.posterior_.shape == (1400, 10)
    np.testing.assert_allclose(model.posterior_.sum(axis=1), 1, atol=1e-6)
    if hasattr(model, "confusion_"):
        assert model.confusion_.shape == (5, 10, 10)
        np.testing.assert_allclose(model.confusion_.sum(axis=2), 1, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "oracle"])
def test_is_a_scikit_learn_estimator(name):
    check_estimator(at.make(name, epochs=30), on_skip=None)


@pytest.mark.parametrize("name", METHODS)
def test_two_runs_with_one_seed_are_equal_and_survive_saving(name, tmp_path):
    X, _, table, confusion = blobs()
    settings = {"confusion": confusion} if name == "oracle" else {}
    runs = [at.make(name, epochs=4, random_state=3, **settings).fit(X, table) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].predict_proba(X), runs[1].predict_proba(X))
    np.testing.assert_array_equal(runs[0].posterior_, runs[1].posterior_)
    runs[0].save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert type(loaded) is METHODS[name]
    np.testing.assert_array_equal(loaded.predict_proba(X), runs[0].predict_proba(X))
    np.testing.assert_array_equal(loaded.posterior_, runs[0].posterior_)
    assert loaded.table_ == table


@pytest.mark.parametrize("name", METHODS)
def test_items_and_annotators_without_labels_are_allowed(name):
    X, truth, table, confusion = blobs(n_annotators=4)
    kept = np.flatnonzero((table.annotator != 3) & (table.item < 200))
    sparse = at.LabelTable.from_codes(
        table.item[kept],
        table.annotator[kept],
        table.label[kept],
        n_items=len(X),
        n_annotators=4,
        n_classes=3,
    )
    settings = {"confusion": confusion} if name == "oracle" else {}
    model = at.make(name, epochs=20, lr=1e-2, random_state=0, **settings).fit(X, sparse)
    predicted = model.predict(X[200:])
    assert np.mean(predicted == truth[200:]) > 0.8
    assert np.all(np.isfinite(model.posterior_))


def test_methods_are_listed_with_paper_year_and_a_line():
    listed = at.list_methods()
    assert [entry.name for entry in listed] == list(METHODS)
    assert all(entry.summary and entry.paper for entry in listed)
    with pytest.raises(InputError, match="no method 'majik'; there are trace, gem"):
        at.make("majik")
