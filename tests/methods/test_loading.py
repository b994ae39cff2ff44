"""A loaded run has everything that the documentation says a fitted model has."""

import re

import numpy as np
import pytest
from crowds import NAMES, blobs, quick_params

import annotrace as at
from annotrace.methods.registry import METHODS


def documented(method):
    """Names of learned attributes, from the docstrings of a class and its bases."""
    sections = [
        (kind.__doc__ or "").partition("Attributes\n")[2]
        for kind in METHODS[method].factory.__mro__
    ]
    return set(re.findall(r"\b([a-z]\w*_)\b(?=[^\n]* : )", "\n".join(sections)))


@pytest.mark.parametrize("name", NAMES)
def test_documented_attributes_survive_saving(name, tmp_path):
    X, _, table, confusion = blobs(n_items=80)
    settings = quick_params(name, confusion)
    model = at.make(name, epochs=np.int64(4), random_state=3, **settings).fit(X, table)
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    learned = {attribute for attribute in documented(name) if hasattr(model, attribute)}
    assert {"posterior_", "network_", "history_", "table_"} <= learned
    assert {attribute for attribute in learned if not hasattr(loaded, attribute)} == set()
    for attribute in set(vars(model)) & learned:
        before, after = getattr(model, attribute), getattr(loaded, attribute)
        if isinstance(before, dict | int | float | list | np.ndarray):
            np.testing.assert_array_equal(after, before)
            assert np.asarray(after).dtype.kind == np.asarray(before).dtype.kind


@pytest.mark.parametrize("kind", [bool, float, str, int])
def test_classes_come_back_as_they_were(kind, tmp_path):
    X, truth, _, _ = blobs(n_items=60)
    model = at.Vanilla(epochs=1, random_state=0).fit(X, (truth > 0).astype(kind))
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_numpy_parameters_are_kept(tmp_path):
    X, _, table, _ = blobs(n_items=30)
    at.Vanilla(epochs=np.int64(2), lr=np.float32(0.5), random_state=0).fit(X, table).save(tmp_path)
    loaded = at.load(tmp_path)
    assert (loaded.epochs, loaded.lr) == (2, 0.5)


@pytest.mark.parametrize("recipe", [at.Recipe(n_init=1, mixup=0.0, repair=False), "default", None])
def test_the_recipe_is_kept(recipe, tmp_path):
    X, _, table, _ = blobs(n_items=30)
    at.TraceRegularized(epochs=1, recipe=recipe, random_state=0).fit(X, table).save(tmp_path)
    assert at.load(tmp_path).recipe == recipe


def test_a_method_without_annotators_leaves_no_confusion_of_an_earlier_run(tmp_path):
    X, _, table, _ = blobs(n_items=30)
    at.GeneralizedEM(epochs=4, random_state=0).fit(X, table).save(tmp_path)
    assert (tmp_path / "confusion.npz").exists()
    at.Vanilla(epochs=1, random_state=0).fit(X, table).save(tmp_path)
    assert not (tmp_path / "confusion.npz").exists()
    assert not hasattr(at.load(tmp_path), "confusion_")


def test_a_loaded_classifier_can_be_fitted_again(tmp_path):
    X, _, table, _ = blobs(n_items=60)
    at.GeneralizedEM(epochs=4, random_state=0).fit(X, table).save(tmp_path)
    loaded = at.load(tmp_path)
    network = loaded.network_
    loaded.set_params(warm_start=True).fit(X, table)
    assert loaded.network_ is network
