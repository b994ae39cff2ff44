import numpy as np

from annotrace.diagnosis.counting import (
    drawn_counts,
    expected_counts,
    label_scores,
    normalised,
    report_matrix,
    without_labels,
)
from annotrace.simulate import hammer_spammers, simulate_labels


def crowd():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 40)
    confusion = hammer_spammers(4, 3, 0.6, rng)
    return simulate_labels(truth, confusion, labels_per_item=2, random_state=rng), confusion


def test_counts_are_sums_over_labels():
    table, _ = crowd()
    posterior = np.random.default_rng(1).dirichlet(np.ones(3), table.n_items)
    by_hand = np.zeros((4, 3, 3))
    for item, annotator, label in zip(table.item, table.annotator, table.label, strict=True):
        by_hand[annotator, :, label] += posterior[item]
    np.testing.assert_allclose(expected_counts(report_matrix(table), posterior), by_hand)


def test_counts_of_given_truths_are_counts_of_certain_posteriors():
    table, _ = crowd()
    certain = np.eye(3)[table.truth]
    counted = expected_counts(report_matrix(table), certain)
    np.testing.assert_array_equal(drawn_counts(table, table.truth), counted)


def test_labels_can_be_taken_out_of_a_posterior():
    table, confusion = crowd()
    reports = report_matrix(table)
    classifier = np.random.default_rng(2).dirichlet(np.ones(3), table.n_items)
    posterior = normalised(np.log(classifier) + label_scores(reports, confusion))
    found = normalised(without_labels(posterior, reports, confusion))
    np.testing.assert_allclose(found, classifier, atol=1e-12)
