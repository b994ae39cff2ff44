import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import annotrace as at
from annotrace.diagnosis import calibrated_posterior
from annotrace.report.annotators import annotator_section
from annotrace.report.overview import overview_of
from annotrace.report.page import render
from annotrace.report.view import view_of


def test_the_posterior_is_calibrated(trained):
    result = view_of(trained)
    np.testing.assert_allclose(result.confidence, trained.confidence_)
    np.testing.assert_array_equal(result.posterior, calibrated_posterior(trained.result_))


def test_known_classes_are_certain(small, features):
    gold = {"photo-0": "cat", "photo-1": "cat"}
    model = at.Vanilla(epochs=1, random_state=0).fit(features, small, items=small.items, gold=gold)
    result = view_of(model)
    np.testing.assert_array_equal(result.posterior[:2], [[1, 0, 0], [1, 0, 0]])


def test_skills_and_flags_are_those_of_the_model(aggregated):
    frame = aggregated.annotators_.sort("skill", descending=True)
    rows = annotator_section(view_of(aggregated)).shown
    np.testing.assert_allclose([row.skill for row in rows], frame["skill"])
    remarks = ["; ".join(remark.text for remark in row.remarks) for row in rows]
    assert remarks == frame["flags"].to_list()


@pytest.mark.parametrize("name", ["vanilla", "soft-bootstrap", "single-cm", "wdn"])
def test_a_method_that_does_not_model_annotators_says_so(small, features, name):
    model = at.make(name, epochs=1, random_state=0).fit(features, small, items=small.items)
    result = view_of(model)
    assert result.method == name
    assert result.diagnosis is None
    page = render(result)
    assert "The quality of the labels is unknown" in page
    assert "mallory" in page


def test_a_run_that_was_read_back_gives_the_same_page(tmp_path, trained):
    trained.save(tmp_path / "run")
    assert render(view_of(at.load(tmp_path / "run"))) == render(view_of(trained))


def test_annotators_are_numbered_by_skill_in_every_word(aggregated):
    result = view_of(aggregated, anonymous=True)
    by_skill = result.table.annotators[np.argsort(-aggregated.skill_)].tolist()
    assert by_skill == [f"Annotator {k}" for k in range(1, 13)]
    # The model itself keeps its names.
    assert "mallory" in aggregated.table_.annotators.tolist()


def test_advice_names_numbers_not_names():
    """Two groups that share no item: the advice says who should label whose items."""
    items = [f"i{k}" for k in range(40)] * 2
    who = ["ann"] * 20 + ["carl"] * 20 + ["bea"] * 20 + ["dan"] * 20
    labels = [("cat", "dog")[k % 2] for k in range(40)] * 2
    table = at.LabelTable.from_long({"item": items, "annotator": who, "label": labels})
    model = at.aggregation.PooledDawidSkene().fit(table)
    assert "'carl'" in str(model.diagnosis_)
    diagnosis = view_of(model, anonymous=True).diagnosis
    assert "Annotator" in " ".join(diagnosis.advice)
    assert "'carl'" not in str(diagnosis)


@pytest.mark.parametrize("name", ["majority", "dawid-skene", "one-coin", "pooled"])
def test_aggregations_go_by_their_short_names(small, name):
    assert view_of(at.aggregation.make(name).fit(small)).method == name


def test_one_class_is_not_diagnosed():
    table = at.LabelTable.from_codes([0, 0, 1], [0, 1, 0], [0, 0, 0])
    page = render(view_of(at.aggregation.MajorityVote().fit(table)))
    assert "one class only" in page


def test_what_was_not_fitted_is_rejected():
    with pytest.raises(NotFittedError, match="DawidSkene instance is not fitted yet"):
        view_of(at.aggregation.DawidSkene())


def test_an_aggregation_that_was_read_back_gives_the_same_page(tmp_path, aggregated):
    aggregated.save(tmp_path / "run")
    assert render(view_of(at.load(tmp_path / "run"))) == render(view_of(aggregated))


def test_what_was_learned_from_is_not_scored_by(small, features):
    truth = np.array([int(name.split("-")[1]) % 3 for name in small.items.tolist()])
    table = small.replace(truth=truth.astype(np.int32))
    names = small.classes[truth]
    model = at.Vanilla(epochs=1, random_state=0)
    given = dict(zip(small.items[:60].tolist(), names[:60].tolist(), strict=True))
    model.fit(features, table, items=table.items, gold=given)
    found = overview_of(view_of(model))
    assert found.truth.n_measured == 30
    assert found.truth.value == np.mean(model.result_.estimate[60:] == truth[60:])
    assert found.labels.n_measured == np.sum(table.item >= 60)
    assert "30 items of known truth that were not learned from" in render(view_of(model))
    everything = dict(zip(small.items.tolist(), names.tolist(), strict=True))
    model.fit(features, table, items=table.items, gold=everything)
    assert overview_of(view_of(model)).truth is None
