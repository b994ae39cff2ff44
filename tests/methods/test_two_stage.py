import numpy as np
import polars as pl
import pytest
from crowds import blobs

import annotrace as at
from annotrace.aggregation import Hierarchical
from annotrace.errors import InputError


@pytest.mark.parametrize(
    ("aggregate", "labels_per_item"), [("pooled", 1), ("majority", 3), ("dawid-skene", 3)]
)
def test_the_result_is_that_of_the_aggregation(aggregate, labels_per_item, tmp_path):
    X, _, table, _ = blobs(n_items=60, labels_per_item=labels_per_item)
    model = at.TwoStage(aggregate=aggregate, epochs=1).fit(X, table)
    np.testing.assert_array_equal(model.confidence_, model.aggregation_.confidence_)
    model.save(tmp_path)
    truth = pl.read_csv(tmp_path / "truth.csv")["label"]
    assert truth.to_list() == model.aggregation_.predict().tolist()
    np.testing.assert_array_equal(at.load(tmp_path).confidence_, model.confidence_)
    assert not model.result_.has_classifier
    assert model.result_.is_comparable == (labels_per_item > 1)


@pytest.mark.parametrize("hard", [False, True])
def test_the_network_learns_the_posterior_or_its_largest_class(hard):
    X, _, table, _ = blobs(n_items=60, labels_per_item=3)
    model = at.TwoStage(aggregate="majority", hard=hard, epochs=1, random_state=0).fit(X, table)
    posterior = model.aggregation_.posterior_
    expected = np.eye(3)[posterior.argmax(1)] if hard else posterior
    np.testing.assert_allclose(model._targets, expected, atol=1e-6)


def test_mixup_changes_the_training():
    X, _, table, _ = blobs(n_items=60)
    plain, mixed = (
        at.TwoStage(mixup=mixup, epochs=2, random_state=0).fit(X, table).predict_proba(X)
        for mixup in (0.0, 1.0)
    )
    assert not np.allclose(plain, mixed)


def test_the_aggregation_of_a_run_is_fitted_again_from_its_labels(tmp_path):
    X, truth, table, _ = blobs(n_items=80)
    gold = {0: int(truth[0]), 5: int(truth[5])}
    model = at.TwoStage(epochs=1, random_state=0).fit(X, table, gold=gold)
    model.save(tmp_path / "run")
    again = at.load(tmp_path / "run").aggregation_
    np.testing.assert_array_equal(again.posterior_, model.aggregation_.posterior_)


def test_an_unknown_aggregation_is_rejected():
    X, _, table, _ = blobs(n_items=30)
    with pytest.raises(InputError, match="no aggregation 'magic'"):
        at.TwoStage(aggregate="magic", epochs=1).fit(X, table)


def test_a_run_need_not_hold_an_array_of_matrices(tmp_path, monkeypatch):
    monkeypatch.setattr(Hierarchical, "_has_matrices", lambda self, problem: False)
    X, _, table, _ = blobs(n_items=80)
    model = at.TwoStage(aggregate="hierarchical", epochs=1, random_state=0).fit(X, table)
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.posterior_, model.posterior_)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
