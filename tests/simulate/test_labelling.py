import numpy as np
import pytest

from annotrace.errors import InputError
from annotrace.simulate import (
    assign_annotators,
    hammer_spammers,
    pairwise_flippers,
    simulate_labels,
)


def test_dense_labels_have_one_by_each_annotator():
    table = simulate_labels([0, 1, 2], hammer_spammers(4, 3, 0.5, 0), random_state=0)
    assert np.all(table.to_wide() >= 0)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_k_distinct_annotators_label_each_item(k):
    item, annotator = assign_annotators(500, 5, k, random_state=0)
    pairs = set(zip(item.tolist(), annotator.tolist(), strict=True))
    assert len(pairs) == 500 * k
    np.testing.assert_array_equal(np.bincount(item), k)
    np.testing.assert_allclose(np.bincount(annotator) / len(annotator), 0.2, atol=0.05)


def test_uneven_activity_shows_in_the_counts():
    _, annotator = assign_annotators(20_000, 3, 1, activity=[6, 3, 1], random_state=0)
    np.testing.assert_allclose(np.bincount(annotator) / 20_000, [0.6, 0.3, 0.1], atol=0.02)


def test_reports_follow_the_confusion_matrix():
    confusion = pairwise_flippers(2, 3, 0.7, random_state=1)
    truth = np.repeat(np.arange(3), 10_000)
    table = simulate_labels(truth, confusion, random_state=0)
    counts = np.zeros((2, 3, 3))
    np.add.at(counts, (table.annotator, truth[table.item], table.label), 1)
    np.testing.assert_allclose(counts / 10_000, confusion, atol=0.02)
    np.testing.assert_array_equal(table.truth, truth)


def test_a_seed_repeats_the_labels():
    confusion = hammer_spammers(9, 4, 0.4, 0)
    tables = [
        simulate_labels(np.arange(400) % 4, confusion, labels_per_item=3, random_state=seed)
        for seed in (5, 5, 6)
    ]
    assert tables[0] == tables[1]
    assert tables[0] != tables[2]


def test_classes_that_are_unknown_are_rejected():
    with pytest.raises(InputError, match="`truth` codes from 0 to 1, but entry 1 is -1"):
        simulate_labels([0, -1], hammer_spammers(3, 2, 0.9, 0))


def test_more_labels_than_annotators_are_rejected():
    with pytest.raises(InputError, match="from 1 to 5, the number of annotators, but got 6"):
        assign_annotators(10, 5, 6)
    with pytest.raises(InputError, match="`activity` to be 5 numbers above 0"):
        assign_annotators(10, 5, 2, activity=[1, 2])


def test_each_annotator_labels_as_many_items_as_given():
    confusion = hammer_spammers(3, 2, 0.9, 0)
    table = simulate_labels(
        np.zeros(50, int), confusion, labels_per_annotator=[0, 50, 7], random_state=0
    )
    assert table.labels_per_annotator().tolist() == [0, 50, 7]
    assert len(np.unique(table.item[table.annotator == 2])) == 7
    with pytest.raises(InputError, match="from 0 to 50"):
        simulate_labels(np.zeros(50, int), confusion, labels_per_annotator=[51, 0, 0])
