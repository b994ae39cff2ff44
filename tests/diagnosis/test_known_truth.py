import numpy as np
import pytest
from fitted_crowds import crowd_result

from annotrace.diagnosis import known_truth
from annotrace.diagnosis.known_truth import find_contradiction, scoring_truth
from annotrace.labels import LabelTable


def crowd(n_right, n_known=100, gold=None):
    """200 items labelled 0 by two annotators; some are known, and so many of these are 0."""
    truth = np.full(200, -1)
    truth[:n_known] = np.arange(n_known) >= n_right
    item = np.repeat(np.arange(200), 2)
    table = LabelTable.from_codes(item, np.tile([0, 1], 200), 0 * item, n_classes=2, truth=truth)
    confusion = np.repeat((0.8 * np.eye(2) + 0.1)[None], 2, axis=0)
    return crowd_result(table, [0.5, 0.5], confusion, gold=gold)


@pytest.fixture
def sure(monkeypatch):
    """Set the confidence of all items."""

    def fix(value):
        monkeypatch.setattr(known_truth, "confidence", lambda result: np.full(200, value))

    return fix


@pytest.mark.parametrize(
    ("n_right", "value", "contradicted"), [(66, 0.99, True), (66, 0.7, False), (90, 0.99, False)]
)
def test_fewer_right_than_expected_is_found_beyond_chance_and_the_usual_error(
    n_right, value, contradicted, sure
):
    sure(value)
    assert (find_contradiction(crowd(n_right)) is not None) == contradicted


def test_it_has_words(sure):
    sure(0.99)
    assert str(find_contradiction(crowd(66))) == (
        "Items of known truth contradict the result: of 100 items, 66% are right, but 99% were "
        "expected."
    )


def test_few_items_or_none_say_nothing(sure):
    sure(0.9)
    assert find_contradiction(crowd(1, 2)) is None
    assert find_contradiction(crowd(0, 0)) is None


def test_items_that_were_learned_from_do_not_score():
    gold = np.where(np.arange(200) < 40, 0, -1)
    truth = scoring_truth(crowd(66, gold=gold))
    assert np.all(truth[:40] == -1)
    np.testing.assert_array_equal(truth[40:], crowd(66).table.truth[40:])
