from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

import annotrace as at
from annotrace.crowd.dependence import ErrorDependence, ErrorGroup
from annotrace.diagnosis import Flag, Reason
from annotrace.diagnosis.confidence import USUAL_ERROR
from annotrace.report.overview import overview_of
from annotrace.report.view import view_of


@pytest.fixture
def result(made_up):
    """A function that makes a view of two annotators and 20 items of two classes."""

    def make(truth=None, posterior=None, **others):
        n = 20
        table = at.LabelTable.from_codes(
            np.repeat(np.arange(n), 2),
            np.tile([0, 1], n),
            np.repeat(np.arange(n) % 2, 2),
            truth=truth,
        )
        if posterior is None:
            posterior = np.where(np.eye(2)[np.arange(n) % 2] == 1, 0.9, 0.1)
        return made_up(table, posterior, np.full((2, 2, 2), 0.5), **others)

    return make


def test_shares_are_counted_where_the_truth_is_known(result):
    truth = np.arange(20) % 2
    truth[:3] = 1 - truth[:3]
    truth[19] = -1
    found = overview_of(result(truth))
    expected = binomtest(16, 19).proportion_ci(0.9, method="wilson")
    assert found.truth.n_measured == 19
    assert found.truth.value == pytest.approx(16 / 19)
    assert (found.truth.low, found.truth.high) == pytest.approx(tuple(expected), abs=1e-3)
    assert found.labels.n_measured == 38


def test_without_truth_the_range_holds_the_estimate_and_what_the_method_says(result):
    found = overview_of(result())
    assert found.labels.n_measured is None
    assert found.labels.value == pytest.approx(0.9)
    assert found.labels.low == pytest.approx(0.9 - USUAL_ERROR)
    assert found.labels.high > 0.9


@pytest.mark.parametrize(
    ("verdict", "tone", "headline"),
    [
        ("identified", "good", "The labels identify the true classes"),
        ("weak", "care", "Use the result with care"),
        ("not identified", "bad", "These labels do not identify the true classes"),
    ],
)
def test_the_verdict_is_the_headline(result, verdict, tone, headline):
    found = overview_of(result(verdict=verdict)).headline
    assert (found.tone, found.title) == (tone, headline)


def test_known_truth_overrules_the_verdict(result):
    wrong = 1 - np.arange(20) % 2
    found = overview_of(result(wrong))
    assert found.headline[:2] == ("bad", "Known answers contradict the result")
    assert "of 20 items, 0% are right" in found.headline.lead
    assert found.steps[0].text.startswith("Look at items whose known class is not the estimated")


def test_a_weak_verdict_names_its_classes(result):
    weak = result(verdict="weak", reasons=[Reason("few-labels", (0,))])
    assert "not well enough for 1 of 2 classes: 0." in overview_of(weak).headline.lead


def test_steps_begin_with_the_advice_and_name_the_spammers(result):
    flags = ((Flag("spammer"),), (Flag("few-labels"),))
    view = result(flags=flags, reasons=[Reason("few-labels", (0,))], verdict="weak")
    found = overview_of(view)
    assert found.steps[0].text == view.diagnosis.advice[0]
    assert found.steps[1].names == ("0",)
    assert found.n_flagged == 1


def test_items_in_doubt_and_wrong_labels_are_counted(result):
    posterior = np.where(np.eye(2)[np.arange(20) % 2] == 1, 0.95, 0.05)
    posterior[:4] = 0.5
    posterior[4] = [0.03, 0.97]
    found = overview_of(result(posterior=posterior))
    assert found.n_uncertain == 4
    assert found.n_wrong == 2


def test_nothing_to_do_is_said(result):
    posterior = np.where(np.eye(2)[np.arange(20) % 2] == 1, 0.95, 0.05)
    steps = overview_of(result(posterior=posterior)).steps
    assert [step.text for step in steps] == [
        "Nothing to do: use the estimated classes as they are."
    ]


def test_a_spammer_is_found_in_a_real_fit(aggregated):
    found = overview_of(view_of(aggregated))
    assert any("mallory" in step.names for step in found.steps)


def test_a_method_that_does_not_know_annotators_claims_no_shares(small, features):
    model = at.Vanilla(epochs=1, random_state=0).fit(features, small, items=small.items)
    found = overview_of(view_of(model))
    assert found.labels is found.truth is None
    assert found.headline.tone == "unknown"


def test_shared_errors_lower_the_range_and_name_who_errs_together(result):
    view = result()
    shared = ErrorDependence(0.4, 0.3, 0.5, 2.0, (ErrorGroup((0, 1), 0.5),))
    diagnosis = replace(view.diagnosis, dependence=shared, accuracy_bar=0.2)
    found = overview_of(replace(view, diagnosis=diagnosis))
    assert found.labels.low == pytest.approx(0.9 - 0.2)
    assert found.reasons == ("0 and 1 err together: 2 annotators count as about 1.3.",)
