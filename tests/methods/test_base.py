"""What holds for every method; accuracies are on digits with five pairwise flippers at .5."""

import numpy as np
import pytest
from crowds import NAMES, QUICK, blobs, digits, dominant_flippers, quick_params
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import annotrace as at
from annotrace.errors import InputError
from annotrace.methods.registry import METHODS
from annotrace.simulate import simulate_labels

# The least accuracy of a method: (five labels per item, one label per item). Annotators are correct
# half of the time; chance is .1.
AT_LEAST = {
    "auto": (0.96, 0.95),
    "crossfit": (0.96, 0.92),
    "item-dependent": (0.96, 0.92),
    "trace": (0.95, 0.93),
    "geo-crowd-layer": (0.9, 0.75),
    "crowd-layer": (0.95, 0.85),
    "union-net": (0.95, 0.85),
    "conal": (0.95, 0.8),
    "madl": (0.93, 0.75),
    "annot-mix": (0.93, 0.9),
    "coin-net": (0.93, 0.9),
    "gem": (0.93, 0.75),
    "mbem": (0.95, 0.75),
    "single-cm": (0.92, 0.75),
    "wdn": (0.85, 0.75),
    "soft-bootstrap": (0.88, 0.7),
    "vanilla": (0.88, 0.7),
    "two-stage": (0.93, 0.7),
    "oracle": (0.95, 0.93),
}

CROSS_FITTED = ("auto", "crossfit", "item-dependent")
# Enough on digits; per iteration for those that iterate.
EPOCHS = {name: 15 if name in CROSS_FITTED else 30 for name in NAMES}
# Scikit-learn fits easy data some sixty times.
ONE_ITERATION = {"init": "votes", "n_iter": 1, "n_folds": 2, "epochs": 4}
EASY = dict.fromkeys(CROSS_FITTED, ONE_ITERATION) | {"trace": QUICK["trace"]}
# Scikit-learn asks for seven digits; `test_rows_are_predicted_alike_in_any_batch` for fewer.
ROUNDED = dict.fromkeys(
    ("check_methods_subset_invariance", "check_methods_sample_order_invariance"),
    "how float32 rounds depends on the processor and on the other rows of a batch",
)
# `auto` is crossfit, `oracle` knows its annotators, and the heads of `wdn` predict labels.
GOLD = [name for name in NAMES if name not in ("auto", "oracle", "wdn")]


@pytest.mark.parametrize("labels_per_item", [None, 1], ids=["dense", "one"])
@pytest.mark.parametrize("name", NAMES)
def test_learns_digits(name, labels_per_item):
    train, test = digits()
    seed, crowd = dominant_flippers(0.5, 1)[0]
    table = simulate_labels(train.y, crowd, labels_per_item=labels_per_item, random_state=seed)
    settings = quick_params(name, crowd)
    model = at.make(name, epochs=EPOCHS[name], random_state=0, **settings).fit(train.X, table)
    accuracy = model.score(test.X, test.y)
    assert accuracy >= AT_LEAST[name][0 if labels_per_item is None else 1]
    assert model.posterior_.shape == (1400, 10)
    np.testing.assert_allclose(model.posterior_.sum(axis=1), 1, atol=1e-6)
    if hasattr(model, "confusion_"):
        assert model.confusion_.shape == (5, 10, 10)
        np.testing.assert_allclose(model.confusion_.sum(axis=2), 1, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "oracle"])
def test_is_a_scikit_learn_estimator(name):
    settings = {"epochs": 8, "lr": 1e-2} | EASY.get(name, {})
    model = at.make(name, **settings)
    check_estimator(model, on_skip=None, expected_failed_checks=ROUNDED)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_predicted_alike_in_any_batch(name):
    X, _, table, confusion = blobs()
    settings = quick_params(name, confusion)
    model = at.make(name, epochs=4, random_state=0, **settings).fit(X, table)
    together = model.predict_proba(X)
    for rows in (range(1), range(7, 20), range(len(X))[::-1]):
        some = list(rows)
        np.testing.assert_allclose(model.predict_proba(X[some]), together[some], atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_two_runs_with_one_seed_are_equal_and_survive_saving(name, tmp_path):
    X, _, table, confusion = blobs()
    settings = quick_params(name, confusion)
    runs = [at.make(name, epochs=4, random_state=3, **settings).fit(X, table) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].predict_proba(X), runs[1].predict_proba(X))
    np.testing.assert_array_equal(runs[0].posterior_, runs[1].posterior_)
    runs[0].save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert type(loaded) is METHODS[name].factory
    np.testing.assert_array_equal(loaded.predict_proba(X), runs[0].predict_proba(X))
    np.testing.assert_array_equal(loaded.posterior_, runs[0].posterior_)
    assert loaded.table_ == table


@pytest.mark.parametrize("name", NAMES)
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
    settings = quick_params(name, confusion)
    model = at.make(name, epochs=20, lr=1e-2, random_state=0, **settings).fit(X, sparse)
    predicted = model.predict(X[200:])
    assert np.mean(predicted == truth[200:]) > 0.8
    assert np.all(np.isfinite(model.posterior_))
    if hasattr(model, "confusion_") and name != "oracle":
        # An annotator without labels has the pool's matrix, not the initial one.
        pool = np.average(model.confusion_[:3], axis=0, weights=sparse.labels_per_annotator()[:3])
        np.testing.assert_allclose(model.confusion_[3], pool, atol=2e-3)


@pytest.mark.parametrize("name", GOLD)
def test_gold_items_are_learned_and_kept(name):
    X, truth, table, _ = blobs(n_items=200, n_annotators=3, skill=0.8)
    # All annotators swap classes 0 and 1: only gold items can show it.
    swapped = at.LabelTable.from_codes(
        table.item,
        table.annotator,
        np.array([1, 0, 2])[table.label],
        n_items=200,
        n_annotators=3,
        n_classes=3,
    )
    gold = {item: int(truth[item]) for item in range(100)}
    model = at.make(name, epochs=20, lr=1e-2, random_state=0, **QUICK.get(name, {}))
    without = np.mean(model.fit(X, swapped).predict(X) == truth)
    model.fit(X, swapped, gold=gold)
    assert without < 0.5
    assert np.mean(model.predict(X[:100]) == truth[:100]) > without + 0.1
    np.testing.assert_array_equal(model.posterior_[:100].argmax(1), truth[:100])
    np.testing.assert_array_equal(model.confidence_[:100], 1)


def test_a_fit_that_raises_at_once_keeps_the_previous_one():
    X, _, table, _ = blobs(n_items=60)
    model = at.Vanilla(epochs=1, random_state=0).fit(X, table)
    before = model.predict(X)
    with pytest.raises(InputError, match="one class only"):
        model.fit(X, at.LabelTable.from_codes([0], [0], [0], n_items=60, n_classes=1))
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("settings", "error"),
    [({"device": "cuda:99"}, InputError), ({"n_steps": 9}, InputError), ({"lr": 1e30}, Exception)],
    ids=["device", "n_steps", "diverging"],
)
def test_a_fit_that_fails_keeps_the_previous_state(settings, error):
    X, _, table, _ = blobs(n_items=60)
    model = at.GeneralizedEM(epochs=4, random_state=0, **settings)
    with pytest.raises(error):
        model.fit(X, table)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.set_params(device="cpu", n_steps=2, lr=1e-3).fit(X, table)
    before = model.predict_proba(X), model.confusion_, model.table_
    model.set_params(**settings)
    with pytest.raises(error):
        model.fit(X[:40], table.select_items(np.arange(40)))
    np.testing.assert_array_equal(model.predict_proba(X), before[0])
    assert model.confusion_ is before[1]
    assert model.table_ is before[2]


@pytest.mark.parametrize("name", ["vanilla", "gem", "crossfit"])
def test_a_seed_may_be_of_any_size(name):
    X, _, table, _ = blobs(n_items=60)
    seeds = (2**45, 2**45, 2**70)
    one, same, other = (
        at.make(name, epochs=4, random_state=seed, **QUICK.get(name, {})).fit(X, table).posterior_
        for seed in seeds
    )
    np.testing.assert_array_equal(one, same)
    assert np.any(one != other)
