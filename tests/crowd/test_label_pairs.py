"""Pairs of labels of one item."""

from itertools import combinations

import numpy as np

from annotrace.crowd.label_pairs import pair_labels
from annotrace.labels import LabelTable


def crowd(n_items=30, n_annotators=7, seed=0):
    rng = np.random.default_rng(seed)
    n_labels = 120
    return LabelTable.from_codes(
        rng.integers(0, n_items, n_labels),
        rng.integers(0, n_annotators, n_labels),
        rng.integers(0, 3, n_labels),
        n_items=n_items,
    )


def test_all_pairs_of_different_annotators_are_listed_once():
    table = crowd()
    found = {tuple(sorted(pair)) for pair in zip(*pair_labels(table), strict=True)}
    rows = combinations(range(table.n_labels), 2)
    expected = {
        (a, b)
        for a, b in rows
        if table.item[a] == table.item[b] and table.annotator[a] != table.annotator[b]
    }
    assert found == expected
    assert len(pair_labels(table).first) == len(expected)


def test_a_sample_has_pairs_of_all_items_and_places():
    table = LabelTable.from_codes(
        np.repeat(np.arange(400), 10), np.tile(np.arange(10), 400), np.zeros(4000, int)
    )
    pairs = pair_labels(table, max_pairs=4000)
    assert len(pairs.first) == 4000
    assert np.all(table.item[pairs.first] == table.item[pairs.second])
    assert len(np.unique(table.item[pairs.first])) == 400
    # Every k-th pair would compare the same annotators on all items.
    who = table.annotator[pairs.first] * 10 + table.annotator[pairs.second]
    assert len(np.unique(who)) == 45


def test_a_table_without_pairs_has_none():
    table = LabelTable.from_codes([0, 1], [0, 1], [0, 1])
    assert len(pair_labels(table).first) == 0
    assert len(pair_labels(table.select_items([])).first) == 0
