import numpy as np
import pytest
from scipy.stats import binomtest

import annotrace as at
from annotrace.report.overview import overview_of
from annotrace.report.result import Crowd, Judgement, Result, result_of


def result(truth=None, flags=((), ()), verdict="identified", advice=(), posterior=None):
    """Two annotators, 20 items of two classes, all labelled alike."""
    n = 20
    table = at.LabelTable.from_codes(
        np.repeat(np.arange(n), 2), np.tile([0, 1], n), np.repeat(np.arange(n) % 2, 2), truth=truth
    )
    if posterior is None:
        posterior = np.where(np.eye(2)[np.arange(n) % 2] == 1, 0.9, 0.1)
    skill = np.array([0.9, 0.8])
    matrices = np.stack([np.full((2, 2), 0.5)] * 2)
    crowd = Crowd(skill, skill - 0.05, skill + 0.05, matrices, matrices / 100, 10 * matrices, flags)
    margins = [np.full(2, 0.5)] * 3
    judgement = Judgement(verdict, (), tuple(advice), np.array([0]), *margins)
    return Result(table, posterior, posterior, crowd, judgement, "trace")


def test_shares_are_counted_where_the_truth_is_known():
    truth = np.arange(20) % 2
    truth[:3] = 1 - truth[:3]
    truth[19] = -1
    found = overview_of(result(truth))
    expected = binomtest(16, 19).proportion_ci(0.9, method="wilson")
    assert found.truth.measured == 19
    assert found.truth.value == pytest.approx(16 / 19)
    assert (found.truth.low, found.truth.high) == pytest.approx(tuple(expected), abs=1e-3)
    assert found.labels.measured == 38


def test_without_truth_the_range_holds_the_estimate_and_what_the_method_says():
    found = overview_of(result())
    assert found.labels.measured is None
    assert found.labels.value == pytest.approx(0.9)
    assert found.labels.low == pytest.approx(0.9 - 0.07)
    assert found.labels.high > 0.9


@pytest.mark.parametrize(
    ("verdict", "tone", "headline"),
    [
        ("identified", "good", "The labels show the truth"),
        ("weak", "care", "Take the result with care"),
        ("not identified", "bad", "From these labels the truth cannot be told"),
    ],
)
def test_the_verdict_is_said_in_words(verdict, tone, headline):
    found = overview_of(result(verdict=verdict))
    assert (found.tone, found.headline) == (tone, headline)


def test_known_truth_overrules_the_verdict():
    wrong = 1 - np.arange(20) % 2
    found = overview_of(result(wrong))
    assert (found.tone, found.headline) == ("bad", "The labels do not show the truth")
    assert found.lead.startswith("Items of known truth say otherwise: of 20, 0% are right")
    assert found.steps[0].text.startswith("Look at items whose known class is not the estimated")


def test_a_weak_verdict_names_its_classes():
    assert "not well enough for 1 of 2 classes: 0." in overview_of(result(verdict="weak")).lead


def test_steps_begin_with_the_advice_and_name_the_spammers():
    flags = (("spammer: answers do not depend on the item",), ("few labels",))
    found = overview_of(result(flags=flags, advice=["Do this."], verdict="weak"))
    assert found.steps[0].text == "Do this."
    assert found.steps[1].names == ("0",)
    assert found.n_flagged == 1


def test_items_in_doubt_and_wrong_labels_are_counted():
    posterior = np.where(np.eye(2)[np.arange(20) % 2] == 1, 0.95, 0.05)
    posterior[:4] = 0.5
    posterior[4] = [0.03, 0.97]
    found = overview_of(result(posterior=posterior))
    assert found.n_doubtful == 4
    assert found.n_wrong == 2


def test_nothing_to_do_is_said():
    posterior = np.where(np.eye(2)[np.arange(20) % 2] == 1, 0.95, 0.05)
    steps = overview_of(result(posterior=posterior)).steps
    assert [step.text for step in steps] == [
        "Nothing needs doing: use the estimated truth as it is."
    ]


def test_a_spammer_is_found_in_a_real_fit(aggregated):
    found = overview_of(result_of(aggregated))
    assert any("mallory" in step.names for step in found.steps)
    assert (found.n_items, found.n_annotators, found.n_labels) == (90, 12, 450)


def test_a_method_that_does_not_know_annotators_claims_no_shares(small, features):
    model = at.Vanilla(epochs=1, random_state=0).fit(features, small, items=small.items)
    found = overview_of(result_of(model))
    assert found.labels is found.truth is None
    assert found.tone == "unknown"
