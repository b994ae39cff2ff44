import numpy as np
import pytest

import annotrace as at
from annotrace.aggregation.runs import AggregatedRun
from annotrace.errors import InputError
from annotrace.report.overview import overview_of
from annotrace.report.page import render
from annotrace.report.result import result_of


def test_chances_are_the_calibrated_confidence_of_the_model(trained):
    result = result_of(trained)
    np.testing.assert_allclose(result.confidence, trained.confidence_)
    assert np.all(result.estimate == trained.posterior_.argmax(axis=1))


def test_known_classes_are_certain(small, features):
    gold = {"photo-0": "cat", "photo-1": "cat"}
    model = at.Vanilla(epochs=1, random_state=0).fit(features, small, items=small.items, gold=gold)
    result = result_of(model)
    np.testing.assert_array_equal(result.chances[:2], [[1, 0, 0], [1, 0, 0]])


def test_skills_and_flags_are_those_of_the_model(aggregated):
    crowd = result_of(aggregated).crowd
    frame = aggregated.annotators_
    np.testing.assert_allclose(crowd.skill, frame["skill"])
    assert ["; ".join(flags) for flags in crowd.flags] == frame["flags"].to_list()


@pytest.mark.parametrize("name", ["vanilla", "soft-bootstrap", "single-cm", "wdn"])
def test_a_method_that_learns_nothing_of_annotators_says_so(small, features, name):
    model = at.make(name, epochs=1, random_state=0).fit(features, small, items=small.items)
    result = result_of(model)
    assert result.method == name
    assert result.crowd is None
    page = render(result)
    assert "Not known whether the labels show the truth" in page
    assert "mallory" in page


def test_a_run_that_was_read_back_gives_the_same_page(tmp_path, trained):
    trained.save(tmp_path / "run")
    assert render(result_of(at.load(tmp_path / "run"))) == render(result_of(trained))


def test_annotators_are_numbered_by_skill_in_every_word(aggregated):
    result = result_of(aggregated, anonymous=True)
    by_skill = result.table.annotators[np.argsort(-result.crowd.skill)].tolist()
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
    assert "'ann'" in str(model.diagnosis_)
    said = result_of(model, anonymous=True).judgement
    assert "Annotator" in " ".join(said.advice)
    assert "'ann'" not in " ".join([*said.reasons, *said.advice])


def test_flags_name_numbers_not_names():
    truth = np.arange(300) % 3
    confusion = at.simulate.hammer_spammers(8, 3, 0.7, 0)
    wide = at.simulate.simulate_labels(
        truth, confusion, labels_per_item=8, random_state=0
    ).to_wide()
    wide[:, 5] = wide[:, 2]
    table = at.LabelTable.from_wide(wide).replace(annotators=np.array(list("abcdefgh")))
    model = at.aggregation.PooledDawidSkene().fit(table)
    result, named = result_of(model, anonymous=True), result_of(model)
    assert named.crowd.flags[2] == ("copies: answers like f, even against all others",)
    other = result.table.annotators[5]
    assert other.startswith("Annotator")
    assert result.crowd.flags[2] == (f"copies: answers like {other}, even against all others",)
    steps = [step for step in overview_of(named).steps if "share their answers" in step.text]
    assert [step.names for step in steps] == [("c", "f")]


@pytest.mark.parametrize("name", ["majority", "dawid-skene", "one-coin", "pooled"])
def test_aggregations_go_by_their_short_names(small, name):
    assert result_of(at.aggregation.make(name).fit(small)).method == name


def test_one_class_is_not_diagnosed():
    table = at.LabelTable.from_codes([0, 0, 1], [0, 1, 0], [0, 0, 0])
    page = render(result_of(at.aggregation.MajorityVote().fit(table)))
    assert "one class only" in page


def test_what_was_not_fitted_is_refused():
    with pytest.raises(InputError, match="DawidSkene has learned nothing yet"):
        result_of(at.aggregation.DawidSkene())


def test_an_aggregated_run_knows_what_the_aggregation_knew(tmp_path, aggregated):
    run = AggregatedRun(
        aggregated.table_,
        aggregated.posterior_,
        aggregated.confusion_,
        aggregated.prior_,
        aggregated.objective_,
        method="pooled",
        settings=aggregated.settings,
        versions_=result_of(aggregated).versions,
    )
    assert render(result_of(run)) == render(result_of(aggregated))


def test_what_was_learned_from_is_not_scored_by(small, features):
    truth = np.array([int(name.split("-")[1]) % 3 for name in small.items.tolist()])
    table = small.replace(truth=truth.astype(np.int32))
    names = small.classes[truth]
    model = at.Vanilla(epochs=1, random_state=0)
    given = dict(zip(small.items[:60].tolist(), names[:60].tolist(), strict=True))
    model.fit(features, table, items=table.items, gold=given)
    found = overview_of(result_of(model))
    assert found.truth.measured == 30
    assert found.truth.value == np.mean(model._estimate()[60:] == truth[60:])
    assert found.labels.measured == np.sum(table.item >= 60)
    assert "30 items of known truth that were not learned from" in render(result_of(model))
    everything = dict(zip(small.items.tolist(), names.tolist(), strict=True))
    model.fit(features, table, items=table.items, gold=everything)
    assert overview_of(result_of(model)).truth is None
