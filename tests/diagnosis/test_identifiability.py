import numpy as np
import pytest

from annotrace.diagnosis import dominance_margins, identifiability
from annotrace.diagnosis.identifiability import (
    best_names,
    class_distances,
    class_overlap,
    groups_of_annotators,
    margins,
    seen_by_others,
    smallest_singular_value,
)
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels


def test_margins_of_equal_draws_have_no_error_bar():
    mean = np.array([[0.6, 0.4], [0.3, 0.7]])
    estimate = margins(np.stack([mean, mean]))
    np.testing.assert_allclose(estimate.value, dominance_margins(mean))
    np.testing.assert_allclose(estimate.low, estimate.high)


def test_groups_are_numbered_by_their_labels():
    table = LabelTable.from_codes(
        [0, 0, 1, 2, 2, 3, 3, 4], [0, 1, 1, 3, 4, 3, 4, 3], [0] * 8, n_annotators=6
    )
    # 0 and 1 share item 0; 3 and 4 share items 2 and 3, five labels; 2 and 5 have none.
    assert groups_of_annotators(table).tolist() == [1, 1, -1, 0, 0, -1]
    # Whoever labelled items 1 and 4 is held against their known classes.
    known = np.isin(np.arange(5), [1, 4])
    assert groups_of_annotators(table, known).tolist() == [0, 0, -1, 0, 0, -1]


def test_overlap_is_nothing_where_everybody_sees_all_and_one_where_the_crowd_is_split():
    everybody = np.full((6, 4), 100.0)
    assert class_overlap(everybody).separation == pytest.approx(0, abs=1e-6)
    split = np.zeros((6, 4))
    split[:3, :2], split[3:, 2:] = 100.0, 100.0
    found = class_overlap(split)
    assert found.separation > 0.99
    assert sorted((found.side[:2].tolist(), found.side[2:].tolist())) == [[False] * 2, [True] * 2]


def test_few_labels_by_many_are_no_separation():
    rng = np.random.default_rng(0)
    seen = np.array([np.bincount(rng.integers(0, 5, 4), minlength=5) for _ in range(200)])
    assert class_overlap(seen).separation < 0.3


def test_classes_are_seen_as_others_report_them():
    table = LabelTable.from_codes([0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 2], [0, 1, 1, 2, 0, 0])
    expected = [[1, 1, 0], [0.5, 0.5, 1], [0.5, 0.5, 0]]
    np.testing.assert_allclose(seen_by_others(table), expected)


def test_habits_and_few_labels_are_no_separation_by_others():
    habits = np.random.default_rng(0).dirichlet(np.full(4, 0.3), 12)
    truth = np.arange(1200) % 4
    spammers = simulate_labels(
        truth, np.repeat(habits[:, None], 4, 1), labels_per_item=3, random_state=0
    )
    assert class_overlap(seen_by_others(spammers)).separation < 0.3
    many = simulate_labels(
        truth, hammer_spammers(400, 4, 0.9, 0), labels_per_item=3, random_state=0
    )
    assert class_overlap(seen_by_others(many)).separation < 0.3


def test_classes_that_all_report_alike_are_at_no_distance():
    confusion = np.array([[[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0.2, 0.8]]])
    distances = class_distances(confusion, np.array([10]))
    np.testing.assert_allclose(distances, [[0, 0, 0.8], [0, 0, 0.8], [0.8, 0.8, 0]])
    assert smallest_singular_value(confusion, np.array([10])) == pytest.approx(0, abs=1e-7)


def test_distances_are_the_mean_over_annotators_by_labels():
    confusion = np.random.default_rng(0).dirichlet(np.ones(4), (7, 4))
    n_labels = np.array([3, 0, 5, 1, 8, 2, 4])
    distances = class_distances(confusion, n_labels)
    for i, k in np.ndindex(4, 4):
        apart = np.abs(confusion[:, i] - confusion[:, k]).sum(axis=1) / 2
        assert distances[i, k] == pytest.approx(np.average(apart, weights=n_labels))


def test_distances_of_many_classes_are_those_class_by_class():
    confusion, n_labels = np.random.default_rng(0).dirichlet(np.ones(200), (8, 200)), np.arange(8)
    expected = [
        np.einsum("r,rij->i", n_labels / 56, np.abs(confusion - confusion[:, k : k + 1]))
        for k in range(200)
    ]
    np.testing.assert_allclose(class_distances(confusion, n_labels), expected)


def test_distances_of_too_many_annotators_are_those_of_the_busiest(monkeypatch):
    monkeypatch.setattr(identifiability, "_DIFFERENCES", 2 * 4**3)
    confusion = np.random.default_rng(0).dirichlet(np.ones(4), (5, 4))
    distances = class_distances(confusion, np.array([3, 7, 1, 0, 9]))
    np.testing.assert_allclose(distances, class_distances(confusion[[1, 4]], np.array([7, 9])))


def test_singular_value_is_that_of_matrices_side_by_side():
    confusion = np.random.default_rng(0).dirichlet(np.ones(3), (2, 3))
    stacked = np.concatenate([np.sqrt(0.25) * confusion[0], np.sqrt(0.75) * confusion[1]], axis=1)
    expected = np.linalg.svd(stacked, compute_uv=False)[-1]
    assert smallest_singular_value(confusion, np.array([1, 3])) == pytest.approx(expected)


def test_names_that_fit_best_show_a_permutation():
    mean = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.7, 0.2, 0.1]])
    assert best_names(mean).tolist() == [1, 2, 0]
