"""What a run keeps: everything that the documentation says a fitted model has."""

import re

import numpy as np
import pytest
from crowds import blobs

import annotrace as at
from annotrace.methods.registry import METHODS

QUICK = {
    "auto": {"rounds": 1, "start": "votes"},
    "crossfit": {"rounds": 1, "start": "votes"},
    "trace": {"restarts": 1, "pool": False},
}


def documented(method):
    """Names of learned attributes, from the docstrings of a class and those it comes from."""
    sections = [
        (kind.__doc__ or "").partition("Attributes\n")[2] for kind in METHODS[method].__mro__
    ]
    return set(re.findall(r"\b([a-z]\w*_)\b(?=[^\n]* : )", "\n".join(sections)))


@pytest.mark.parametrize("name", METHODS)
def test_documented_attributes_survive_saving(name, tmp_path):
    X, _, table, confusion = blobs(n_items=80)
    settings = {"confusion": confusion} if name == "oracle" else QUICK.get(name, {})
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


def test_an_aggregation_is_made_anew_from_the_labels_of_a_run(tmp_path):
    X, truth, table, _ = blobs(n_items=80)
    gold = {0: int(truth[0]), 5: int(truth[5])}
    model = at.TwoStage(epochs=1, random_state=0).fit(X, table, gold=gold)
    model.save(tmp_path / "run")
    again = at.load(tmp_path / "run").aggregation_
    np.testing.assert_array_equal(again.posterior_, model.aggregation_.posterior_)


@pytest.mark.parametrize("kind", [bool, float, str, int])
def test_classes_come_back_as_they_were(kind, tmp_path):
    X, truth, _, _ = blobs(n_items=60)
    model = at.Vanilla(epochs=1, random_state=0).fit(X, (truth > 0).astype(kind))
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_settings_that_are_numpys_are_kept(tmp_path):
    X, _, table, _ = blobs(n_items=30)
    at.Vanilla(epochs=np.int64(2), lr=np.float32(0.5), random_state=0).fit(X, table).save(tmp_path)
    loaded = at.load(tmp_path)
    assert (loaded.epochs, loaded.lr) == (2, 0.5)


def test_runs_with_the_former_names_of_parameters_load(tmp_path):
    X, truth, _, _ = blobs(n_items=60)
    at.Vanilla(epochs=1, random_state=0, cuda_graphs=False).fit(X, truth).save(tmp_path)
    path = tmp_path / "run.json"
    path.write_text(path.read_text().replace('"cuda_graphs"', '"fast"'))
    assert at.load(tmp_path).cuda_graphs is False
