import numpy as np
import pytest

from annotrace.diagnosis.prediction import LabelPrediction
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels


def test_information_is_mutual_information_where_the_truth_is_known():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 5000)
    confusion = hammer_spammers(3, 4, 0.5, rng)
    table = simulate_labels(truth, confusion, random_state=rng)
    certain = np.where(np.eye(4)[truth] > 0, 0.0, -50.0)
    row = confusion.mean(axis=0)[0]
    expected = np.log(4) + (row * np.log(row)).sum()
    found = LabelPrediction(table, certain, confusion).information()
    assert found.low < expected < found.high


def test_spammers_give_no_information_whatever_they_are_taken_for():
    rng = np.random.default_rng(0)
    habits = np.repeat(rng.dirichlet(np.ones(4), 6)[:, None], 4, axis=1)
    table = simulate_labels(rng.integers(0, 4, 800), habits, labels_per_item=1, random_state=rng)
    taken_for_good = hammer_spammers(6, 4, 0.7, rng)
    found = LabelPrediction(table, np.zeros((800, 4)), taken_for_good).information()
    assert found.low < 0.005


def test_the_gain_of_telling_two_classes_apart_is_what_is_lost_by_merging_them():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 6000)
    confusion = np.array([[[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]] * 2)
    table = simulate_labels(truth, confusion, random_state=rng)
    certain = np.where(np.eye(3)[truth] > 0, 0.0, -50.0)
    ((pair, gain, claimed),) = LabelPrediction(table, certain, confusion).pair_information([(0, 1)])
    rows = confusion[0, :2]
    # Jensen-Shannon divergence of the two rows: both classes are equally common.
    expected = (rows * np.log(rows / rows.mean(axis=0))).sum(axis=1).mean()
    assert pair == (0, 1)
    assert claimed == pytest.approx(expected, rel=0.05)
    assert gain.low < expected < gain.high


def test_a_difference_that_was_made_up_predicts_nothing():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 3000)
    alike = np.array([[[0.5, 0.4, 0.1], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8]]] * 6)
    table = simulate_labels(truth, alike, labels_per_item=2, random_state=rng)
    made_up = np.array([[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]] * 6)
    classifier = np.log(np.array([[0.45, 0.45, 0.1], [0.45, 0.45, 0.1], [0.1, 0.1, 0.8]])[truth])
    ((_, gain, claimed),) = LabelPrediction(table, classifier, made_up).pair_information([(0, 1)])
    assert gain.low < 0
    assert claimed > 0.1


def many_classes(alike, n_classes=200):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, n_classes, 6000)
    confusion = np.repeat((0.9 * np.eye(n_classes) + 0.1 / n_classes)[None], 3, axis=0)
    mixed = confusion.copy()
    mixed[:, :alike] = mixed[:, :alike].mean(axis=1, keepdims=True)
    table = simulate_labels(truth, mixed, random_state=rng)
    return LabelPrediction(table, np.zeros((6000, n_classes)), confusion), truth


def test_classes_that_are_told_apart_are_so_found_among_many():
    prediction, _ = many_classes(alike=1)
    found = prediction.pair_information((k, k + 1) for k in range(199))
    assert len(found) == 199
    assert min(pair.gain.low for pair in found) > 0.3
    # Too few labels are sampled to say what the matrices claim of so many classes.
    assert np.isnan([pair.claimed for pair in found]).all()


def test_two_classes_that_nobody_tells_apart_are_found_among_many():
    prediction, _ = many_classes(alike=2)
    alike, told_apart = prediction.pair_information([(0, 1), (2, 3)])
    assert alike.gain.low < 0.005 < 0.3 < told_apart.gain.low


def test_two_classes_with_hardly_a_sampled_label_are_not_judged():
    prediction, truth = many_classes(alike=1, n_classes=900)
    n_labels = 3 * np.bincount(truth, minlength=900)
    rare, common = np.argsort(n_labels)[:2], np.argsort(n_labels)[-2:]
    assert n_labels[rare].sum() < 20 < 40 < n_labels[common].sum()
    found = prediction.pair_information([tuple(rare), tuple(common)])
    assert [pair.classes for pair in found] == [tuple(common)]


def test_without_labels_nothing_is_gained():
    table = LabelTable.from_codes([], [], [], n_annotators=1, n_classes=2)
    prediction = LabelPrediction(table, np.zeros((0, 2)), np.full((1, 2, 2), 0.5))
    assert prediction.information() == (0, 0, 0)
    assert [pair.gain.value for pair in prediction.pair_information([(0, 1)])] == [0]
