import numpy as np
import pytest

from annotrace.diagnosis.known_truth import contradiction
from annotrace.labels import LabelTable


def crowd(n_right, n_known=100):
    """200 items of class 0 by two people, of which some are known to be so."""
    truth = np.full(200, -1)
    truth[:n_known] = np.arange(n_known) >= n_right
    item = np.repeat(np.arange(200), 2)
    return LabelTable.from_codes(item, np.tile([0, 1], 200), 0 * item, n_classes=2, truth=truth)


@pytest.mark.parametrize(
    ("n_right", "sure", "refuted"), [(66, 0.99, True), (66, 0.7, False), (90, 0.99, False)]
)
def test_fewer_right_than_expected_is_told_beyond_chance_and_the_usual_error(
    n_right, sure, refuted
):
    found = contradiction(crowd(n_right), np.zeros(200, int), np.full(200, sure))
    assert (found is not None) == refuted


def test_it_is_said_in_words():
    found = contradiction(crowd(66), np.zeros(200, int), np.full(200, 0.99))
    assert str(found) == (
        "Items of known truth say otherwise: of 100, 66% are right, where 99% was to be expected."
    )


def test_few_items_or_none_say_nothing():
    assert contradiction(crowd(1, 2), np.zeros(200, int), np.full(200, 0.9)) is None
    assert contradiction(crowd(0, 0), np.zeros(200, int), np.full(200, 0.9)) is None
