"""Results do not depend on how many labels are worked on at a time."""

import numpy as np
import pytest

from annotrace.aggregation import make
from annotrace.diagnosis import fleiss_kappa, krippendorff_alpha
from annotrace.diagnosis.identifiability import connected_groups, votes_of_others
from annotrace.labels import LabelTable, codes


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 120)
    item = np.sort(rng.integers(0, 120, 500))
    annotator = rng.integers(0, 6, 500) + 6 * (item >= 90)
    label = np.where(rng.random(500) < 0.7, truth[item], rng.integers(0, 3, 500))
    return LabelTable.from_codes(item, annotator, label, n_items=125)


@pytest.mark.parametrize("method", ["dawid-skene", "ensemble", "majority"])
def test_confidence_and_diagnosis(method, table, monkeypatch):
    whole = make(method, random_state=0).fit(table)
    expected = whole.confidence_, whole.skill_, str(whole.diagnosis_)
    monkeypatch.setattr(codes, "BLOCK", 37)
    parts = make(method, random_state=0).fit(table)
    np.testing.assert_allclose(parts.confidence_, expected[0], rtol=1e-12)
    np.testing.assert_allclose(parts.skill_, expected[1], rtol=1e-12)
    assert str(parts.diagnosis_) == expected[2]
    np.testing.assert_array_equal(parts.predict(), whole.predict())


def test_agreement_and_votes(table, monkeypatch):
    found = []
    for size in (10**6, 50):
        monkeypatch.setattr(codes, "BLOCK", size)
        measures = krippendorff_alpha(table), fleiss_kappa(table), *votes_of_others(table).ravel()
        found.append([*measures, *connected_groups(table)])
    np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.parametrize("size", [10**6, 11])
def test_gold_items_connect_annotators_across_blocks(size, table, monkeypatch):
    monkeypatch.setattr(codes, "BLOCK", size)
    assert connected_groups(table).tolist() == [0] * 6 + [1] * 6
    is_gold = np.zeros(table.n_items, bool)
    is_gold[[table.item[0], table.item[-1]]] = True
    assert connected_groups(table, is_gold).tolist() == [0] * 12
