"""Every method and aggregation on odd crowds: finite probabilities, or one clear error."""

import time

import numpy as np
import pytest
from crowds import NAMES
from odd_crowds import OF_FEATURES, OF_LABELS

import annotrace as at
from annotrace.aggregation import list_aggregations
from annotrace.labels import LabelTable
from annotrace.methods import Recipe

AGGREGATIONS = [entry.name for entry in list_aggregations()]
QUICK = {
    "auto": {"init": "trace", "n_iter": 1, "n_folds": 2},
    "crossfit": {"init": "votes", "n_iter": 1, "n_folds": 2},
    "trace": {"recipe": Recipe(n_init=1)},
    "gem": {"n_steps": 1},
    "mbem": {"n_steps": 1},
}


def check_distributions(probabilities, atol):
    assert np.isfinite(probabilities).all()
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, atol=atol)


def check_annotators(model):
    frame = model.annotators_
    assert frame["n_labels"].sum() == model.table_.n_labels
    if model.result_.models_annotators:
        skill, low, high = (frame[name].to_numpy() for name in ("skill", "low", "high"))
        assert np.isfinite(skill).all()
        assert (low >= 0).all()
        assert (low <= skill).all()
        assert (skill <= high).all()
        assert (high <= 1).all()
        low, high = model.result_.annotators.cell_interval()
        assert ((low >= 0) & (low <= high) & (high <= 1)).all()
        assert str(model.diagnosis_).startswith(("Identified", "Weak", "Not identified"))


def check_fitted(model, atol):
    check_distributions(model.posterior_, atol)
    if hasattr(model, "confusion_"):
        check_distributions(model.confusion_, atol)
    assert ((model.confidence_ >= 0) & (model.confidence_ <= 1)).all()
    check_annotators(model)
    assert len(model.suspect_labels(5)) == min(5, model.table_.n_labels)


def check_saved(model, folder):
    model.save(folder)
    loaded = at.load(folder)
    np.testing.assert_array_equal(loaded.posterior_, model.posterior_)
    np.testing.assert_array_equal(loaded.confidence_, model.confidence_)
    assert loaded.table_ == model.table_
    assert loaded.annotators_.equals(model.annotators_)
    return loaded


@pytest.mark.parametrize("crowd", OF_LABELS)
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_aggregations(name, crowd, tmp_path):
    odd = OF_LABELS[crowd]()
    model = at.aggregation.make(name).fit(odd.table, gold=odd.gold)
    check_fitted(model, 1e-9)
    assert len(model.predict()) == odd.table.n_items
    check_saved(model, tmp_path)


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_prior_counts_of_zero(name):
    table = OF_LABELS["one_class_per_annotator"]().table
    counts = np.zeros((table.n_annotators, table.n_classes, table.n_classes))
    check_fitted(at.aggregation.make(name).fit(table, prior_counts=counts), 1e-9)


@pytest.mark.parametrize("crowd", ["one_item", "names_in_many_scripts", "gold_against_all_labels"])
def test_reports(crowd, tmp_path):
    odd = OF_LABELS[crowd]()
    at.write_report(at.aggregation.make().fit(odd.table, gold=odd.gold), tmp_path / "report.html")
    assert "</html>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def million_labels(n_annotators):
    """A million labels of one item, by annotators who are right four times in five."""
    rng = np.random.default_rng(0)
    label = np.where(rng.random(10**6) < 0.8, 1, rng.integers(0, 3, 10**6))
    return LabelTable.from_codes(np.zeros(10**6, int), np.arange(10**6) % n_annotators, label)


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_a_million_labels_of_one_item_take_seconds(name, tmp_path):
    table = million_labels(n_annotators=1000)
    started = time.process_time()
    model = at.aggregation.make(name).fit(table)
    # So many labels are summed in float32.
    check_fitted(model, 1e-6)
    model.save(tmp_path)
    assert time.process_time() - started < 10
    assert model.predict().tolist() == [1]


@pytest.mark.parametrize("crowd", [*OF_LABELS, *OF_FEATURES])
@pytest.mark.parametrize("name", NAMES)
def test_methods(name, crowd, tmp_path):
    odd = (OF_LABELS | OF_FEATURES)[crowd]()
    n_classes = odd.table.n_classes
    params = QUICK.get(name, {}) | odd.params
    if name == "oracle":
        params["confusion"] = np.full((odd.table.n_annotators, n_classes, n_classes), 1 / n_classes)
    model = at.make(name, epochs=1, random_state=0, **params)
    if odd.error is not None and name not in odd.learn:
        with pytest.raises(odd.error, match=odd.message):
            model.fit(odd.X, odd.table, items=odd.items, gold=odd.gold)
        return
    model.fit(odd.X, odd.table, items=odd.items, gold=odd.gold)
    check_fitted(model, 1e-6)
    check_distributions(model.predict_proba(odd.X), 1e-6)
    if crowd in OF_LABELS:
        loaded = check_saved(model, tmp_path)
        np.testing.assert_array_equal(loaded.predict_proba(odd.X), model.predict_proba(odd.X))
