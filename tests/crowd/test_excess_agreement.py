"""Agreement of two annotators beyond what the class explains."""

import numpy as np
import pytest
from panels import shared_error_panel

from annotrace.crowd import excess_agreement
from annotrace.crowd.excess_agreement import compare_pairs, max_comparisons, without_labels
from annotrace.crowd.label_pairs import LabelPairs, pair_labels
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels


def independent_crowd(n_items=3000, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    confusion = hammer_spammers(6, 3, 0.7, rng)
    return simulate_labels(truth, confusion, labels_per_item=5, random_state=rng), confusion, truth


def exact_posterior(table, confusion):
    log = np.zeros((table.n_items, confusion.shape[1]))
    np.add.at(log, table.item, np.log(confusion[table.annotator, :, table.label]))
    likelihood = np.exp(log)
    return likelihood / likelihood.sum(axis=1, keepdims=True)


def test_labels_are_taken_out_of_a_posterior():
    likelihood = np.array([[0.8, 0.1]])
    with_label = likelihood * [0.3, 0.7]
    without = without_labels(with_label / with_label.sum(), likelihood)
    np.testing.assert_allclose(without, [[0.3, 0.7]])


def test_excess_of_one_pair_is_that_of_sums_over_classes():
    table = LabelTable.from_codes([0, 0, 0], [0, 1, 2], [0, 0, 1])
    confusion = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]], [[0.9, 0.1]] * 2])
    posterior = exact_posterior(table, confusion)
    found = compare_pairs(table, confusion, posterior, LabelPairs(np.array([1]), np.array([0])))
    others = confusion[2, :, 1] / confusion[2, :, 1].sum()
    predicted = sum(
        others[k] * confusion[0, k, label] * confusion[1, k, label]
        for k in (0, 1)
        for label in (0, 1)
    )
    certainty = 2 * others.max() - 1
    assert found.excess[0] == pytest.approx(certainty * (1 - predicted), abs=1e-12)


def test_independent_annotators_agree_as_predicted():
    table, confusion, _ = independent_crowd()
    found = compare_pairs(table, confusion, exact_posterior(table, confusion), pair_labels(table))
    assert abs(found.excess.sum() / found.scale.sum()) < 0.02


def test_with_known_classes_the_excess_is_the_correlation_of_errors():
    table = shared_error_panel(0.4, n_items=4000)
    truth, wrong = table.truth, (table.label != table.truth[table.item]).reshape(4000, 9)
    accuracy = 1 - wrong.mean(axis=0)
    confusion = np.einsum("r,ij->rij", accuracy, np.eye(2)) + np.einsum(
        "r,ij->rij", 1 - accuracy, 1 - np.eye(2)
    )
    found = compare_pairs(table, confusion, np.eye(2)[truth], pair_labels(table))
    each = np.corrcoef(wrong.T)[np.triu_indices(9, 1)]
    assert found.excess.sum() / found.scale.sum() == pytest.approx(each.mean(), abs=0.02)
    assert found.errors.sum() / found.error_scale.sum() == pytest.approx(each.mean(), abs=0.02)


def test_blocks_give_what_the_whole_gives(monkeypatch):
    table, confusion, _ = independent_crowd(200)
    parts = (table, confusion, exact_posterior(table, confusion), pair_labels(table))
    whole = compare_pairs(*parts)
    monkeypatch.setattr(excess_agreement, "BLOCK_CELLS", 70 * 9)
    for one, other in zip(compare_pairs(*parts), whole, strict=True):
        np.testing.assert_array_equal(one, other)
    none = compare_pairs(*parts[:3], LabelPairs(*[np.empty(0, np.int64)] * 2))
    assert len(none.excess) == 0


def test_fewer_pairs_of_many_classes_are_compared():
    assert max_comparisons(100) < max_comparisons(2) // 2000
