import numpy as np
import pytest

import annotrace as at
from annotrace.aggregation import DawidSkene
from annotrace.errors import InputError
from annotrace.simulate import hammer_spammers, simulate_labels


@pytest.fixture(scope="module")
def votes():
    truth = np.random.default_rng(0).integers(0, 3, 300)
    return simulate_labels(truth, hammer_spammers(6, 3, 0.7, 0), labels_per_item=3, random_state=0)


@pytest.fixture(scope="module")
def fitted(votes):
    X = np.eye(3, dtype=np.float32)[votes.truth]
    return at.TraceRegularized(random_state=0, epochs=8).fit(X, votes)


def test_annotators_have_intervals_and_flags(fitted):
    frame = fitted.annotators_
    assert frame.columns == ["annotator", "n_labels", "skill", "low", "high", "flags"]
    assert (frame["low"] < frame["skill"]).all()
    assert (frame["skill"] < frame["high"]).all()
    assert frame["flags"].to_list() == [""] * 6


def test_cells_have_intervals(fitted):
    assert fitted.confusion_low_.shape == fitted.confusion_.shape
    assert np.all(fitted.confusion_low_ < fitted.confusion_high_)


def test_a_run_that_was_read_back_says_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    assert str(at.load(tmp_path / "run").diagnosis_) == str(fitted.diagnosis_)


def test_a_new_fit_has_a_new_diagnosis(votes):
    method = DawidSkene().fit(votes)
    before = method.diagnosis_
    assert method.diagnosis_ is before
    assert method.fit(votes.select_items(np.arange(100))).diagnosis_ is not before


def test_suspects_are_told_by_name_the_worst_first(fitted, votes):
    frame = fitted.suspect_labels(20)
    assert len(frame) == 20
    assert frame["probability"].is_sorted()
    assert (frame["label"] != frame["likeliest"]).all()
    wrong = frame["label"].to_numpy() != votes.truth[frame["item"].to_numpy()]
    assert wrong.mean() > 0.9
    confidence = fitted.confidence_[frame["item"].to_numpy()]
    np.testing.assert_array_equal(frame["confidence"], confidence)
    assert len(fitted.suspect_labels()) == votes.n_labels


def test_methods_that_know_nothing_of_annotators_say_so(votes):
    X = np.eye(3, dtype=np.float32)[votes.truth]
    plain = at.Vanilla(epochs=1).fit(X, votes)
    assert plain.annotators_.columns == ["annotator", "n_labels"]
    with pytest.raises(AttributeError, match="Vanilla has learned nothing of annotators"):
        plain.diagnosis_  # noqa: B018
    with pytest.raises(InputError, match="call `fit` first"):
        DawidSkene().annotators_  # noqa: B018
