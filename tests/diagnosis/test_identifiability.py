import numpy as np
import pytest
from fitted_crowds import with_classifier
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from annotrace.diagnosis import dominance_margins
from annotrace.diagnosis.identifiability import (
    best_names,
    class_distances,
    class_overlap,
    connected_groups,
    margins,
    mean_confusion,
    votes_of_others,
)
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels


def test_margins_have_the_error_of_both_cells():
    mean = np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.1, 0.1, 0.8]])
    variance = np.square([[0.03, 0.01, 0.0], [0.04, 0.02, 0.0], [0.0, 0.0, 0.1]])
    estimate, rivals = margins(mean, variance)
    assert rivals.tolist() == [1, 0, 0]
    np.testing.assert_allclose(estimate.value, dominance_margins(mean))
    np.testing.assert_allclose(estimate.value[0] - estimate.low[0], 1.645 * 0.05)
    np.testing.assert_allclose(estimate.high[0] - estimate.value[0], 1.645 * 0.05)


def test_intervals_of_margins_cover_most_true_margins():
    confusion = hammer_spammers(12, 4, 0.6, 0)
    true = dominance_margins(confusion.mean(axis=0))
    covered = []
    for seed in range(10):
        annotators = with_classifier(confusion, 1500, seed=seed).annotators
        estimate, _ = margins(*mean_confusion(annotators))
        covered.append((estimate.low <= true) & (true <= estimate.high))
    assert np.mean(covered) > 0.7


def test_groups_are_numbered_by_their_labels():
    table = LabelTable.from_codes(
        [0, 0, 1, 2, 2, 3, 3, 4], [0, 1, 1, 3, 4, 3, 4, 3], [0] * 8, n_annotators=6
    )
    # 0 and 1 share item 0; 3 and 4 share items 2 and 3, five labels; 2 and 5 have none.
    assert connected_groups(table).tolist() == [1, 1, -1, 0, 0, -1]
    # Gold items 1 and 4 connect those who labelled them.
    assert connected_groups(table, np.isin(np.arange(5), [1, 4])).tolist() == [0, 0, -1, 0, 0, -1]


@pytest.mark.parametrize("seed", range(10))
def test_groups_are_the_connected_components_of_annotators_who_share_items(seed):
    rng = np.random.default_rng(seed)
    n_items, n_annotators, n_labels = 60, 50, 90
    item, annotator = rng.integers(0, n_items, n_labels), rng.integers(0, n_annotators, n_labels)
    table = LabelTable.from_codes(item, annotator, [0] * n_labels, n_annotators=n_annotators)
    labelled = csr_matrix((np.ones(n_labels), (annotator, item)), (n_annotators, n_items))
    _, component = connected_components(labelled @ labelled.T, directed=False)
    groups, active = connected_groups(table), np.unique(annotator)
    same = component[active, None] == component[active]
    np.testing.assert_array_equal(groups[active, None] == groups[active], same)
    assert sorted(set(groups[active].tolist())) == list(range(groups.max() + 1))


def test_annotators_in_a_row_are_one_group():
    """Each shares an item with the next only, in an order that has nothing to do with the row."""
    row = np.random.default_rng(0).permutation(2000)
    table = LabelTable.from_codes(
        np.repeat(np.arange(1999), 2), np.stack([row[:-1], row[1:]], axis=1).ravel(), [0] * 3998
    )
    assert not connected_groups(table).any()


def test_separation_is_zero_if_all_see_all_classes_and_one_if_the_crowd_is_split():
    everybody = np.full((6, 4), 100.0)
    assert class_overlap(everybody).separation == pytest.approx(0, abs=1e-6)
    split = np.zeros((6, 4))
    split[:3, :2], split[3:, 2:] = 100.0, 100.0
    found = class_overlap(split)
    assert found.separation > 0.99
    assert not found.is_comparable
    assert sorted((found.side[:2].tolist(), found.side[2:].tolist())) == [[False] * 2, [True] * 2]


def test_few_labels_by_many_annotators_are_no_separation():
    rng = np.random.default_rng(0)
    seen = np.array([np.bincount(rng.integers(0, 5, 4), minlength=5) for _ in range(200)])
    assert class_overlap(seen).separation < 0.3


def test_classes_are_counted_as_others_report_them():
    table = LabelTable.from_codes([0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 2], [0, 1, 1, 2, 0, 0])
    expected = [[1, 1, 0], [0.5, 0.5, 1], [0.5, 0.5, 0]]
    np.testing.assert_allclose(votes_of_others(table), expected)


def test_label_marginals_and_few_labels_are_no_separation_by_others():
    marginals = np.random.default_rng(0).dirichlet(np.full(4, 0.3), 12)
    truth = np.arange(1200) % 4
    spammers = simulate_labels(
        truth, np.repeat(marginals[:, None], 4, 1), labels_per_item=3, random_state=0
    )
    assert class_overlap(votes_of_others(spammers)).separation < 0.3
    many = simulate_labels(
        truth, hammer_spammers(400, 4, 0.9, 0), labels_per_item=3, random_state=0
    )
    assert class_overlap(votes_of_others(many)).separation < 0.3


def test_classes_that_are_reported_alike_have_no_distance():
    mean = np.array([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0.2, 0.8]])
    np.testing.assert_allclose(class_distances(mean), [[0, 0, 0.8], [0, 0, 0.8], [0.8, 0.8, 0]])


def test_names_that_fit_best_show_a_permutation():
    mean = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.7, 0.2, 0.1]])
    assert best_names(mean).tolist() == [1, 2, 0]
