import numpy as np
import pytest
from fitted_crowds import from_labels, with_classifier
from sklearn.exceptions import NotFittedError

from annotrace.diagnosis import FittedCrowd
from annotrace.simulate import hammer_spammers


class Model(FittedCrowd):
    """Something that was fitted."""

    def __init__(self, result=None):
        if result is not None:
            self.result_ = result


@pytest.fixture(scope="module")
def fitted():
    return Model(with_classifier(hammer_spammers(6, 3, 0.7, 0), n_items=300, distance=8))


def test_annotators_have_intervals_and_flags(fitted):
    frame = fitted.annotators_
    assert frame.columns == [
        *("annotator", "n_labels", "skill", "low", "high"),
        *("accuracy", "accuracy_low", "accuracy_high", "flags"),
    ]
    assert (frame["low"] < frame["skill"]).all()
    assert (frame["skill"] < frame["high"]).all()
    assert (frame["accuracy_low"] < frame["accuracy"]).all()
    assert (frame["accuracy"] < frame["accuracy_high"]).all()
    assert frame["flags"].to_list() == [""] * 6
    np.testing.assert_array_equal(frame["skill"], fitted.skill_)


def test_cells_have_intervals(fitted):
    assert fitted.confusion_low_.shape == (6, 3, 3)
    assert np.all(fitted.confusion_low_ < fitted.confusion_high_)


def test_a_new_fit_has_a_new_diagnosis(fitted):
    model = Model(fitted.result_)
    before = model.diagnosis_
    assert model.diagnosis_ is before
    model.result_ = with_classifier(hammer_spammers(6, 3, 0.7, 1), n_items=100)
    assert model.diagnosis_ is not before


def test_suspects_are_named_the_most_suspicious_first(fitted):
    table = fitted.result_.table
    frame = fitted.suspect_labels(20)
    assert len(frame) == 20
    assert frame["probability"].is_sorted()
    assert (frame["label"] != frame["likeliest"]).all()
    wrong = frame["label"].to_numpy() != table.truth[frame["item"].to_numpy()]
    assert wrong.mean() > 0.9
    confidence = fitted.confidence_[frame["item"].to_numpy()]
    np.testing.assert_array_equal(frame["confidence"], confidence)
    assert len(fitted.suspect_labels()) == table.n_labels


def test_earlier_counts_are_known_skills():
    confusion = hammer_spammers(6, 3, 0.7, 0)
    widths = []
    for counts in (None, 200 * confusion):
        frame = Model(from_labels(confusion, 60, prior_counts=counts)).annotators_
        widths.append((frame["high"] - frame["low"]).mean())
    assert widths[1] < widths[0] / 2
    assert frame["n_labels"].sum() == 180


def test_methods_that_do_not_model_annotators_say_so(fitted):
    result = fitted.result_
    plain = Model(
        type(result)(
            result.table, result.posterior, result.estimate, None, result.prior, result.gold
        )
    )
    assert plain.annotators_.columns == ["annotator", "n_labels"]
    assert not hasattr(plain, "skill_")
    with pytest.raises(AttributeError, match="Model does not model annotators"):
        plain.diagnosis_  # noqa: B018


@pytest.mark.parametrize("name", ["annotators_", "diagnosis_", "confidence_", "skill_"])
def test_an_estimator_that_is_not_fitted_says_so(name):
    with pytest.raises(NotFittedError, match="call `fit` first"):
        getattr(Model(), name)
