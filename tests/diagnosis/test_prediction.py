import numpy as np
import pytest
from fitted_crowds import crowd_result, from_labels

from annotrace.diagnosis.prediction import predict_labels
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels


def known_crowd(confusion, n_items, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, confusion.shape[1], n_items)
    table = simulate_labels(truth, confusion, random_state=rng)
    return crowd_result(table, np.eye(confusion.shape[1])[truth], confusion)


def test_information_is_mutual_information_if_the_truth_is_known():
    confusion = hammer_spammers(3, 4, 0.5, 0)
    row = confusion.mean(axis=0)[0]
    expected = np.log(4) + (row * np.log(row)).sum()
    found = predict_labels(known_crowd(confusion, 5000)).information()
    assert found.low < expected < found.high


def test_spammers_give_no_information_if_they_are_believed():
    rng = np.random.default_rng(0)
    marginals = np.repeat(rng.dirichlet(np.ones(4), 6)[:, None], 4, axis=1)
    table = simulate_labels(rng.integers(0, 4, 800), marginals, labels_per_item=3, random_state=rng)
    result = crowd_result(table, np.full(4, 0.25), hammer_spammers(6, 4, 0.7, rng))
    assert predict_labels(result).information().low < 0.005


def test_the_gain_of_separating_two_classes_is_what_merging_them_loses():
    confusion = np.array([[[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]] * 2)
    prediction = predict_labels(known_crowd(confusion, 6000))
    ((pair, gain, claimed),) = prediction.pair_information([(0, 1)])
    rows = confusion[0, :2]
    # Jensen-Shannon divergence of the two rows: both classes are equally common.
    expected = (rows * np.log(rows / rows.mean(axis=0))).sum(axis=1).mean()
    assert pair == (0, 1)
    assert claimed == pytest.approx(expected, rel=0.06)
    assert gain.low < expected < gain.high


def test_two_classes_that_are_reported_alike_gain_nothing():
    alike = np.array([[[0.5, 0.4, 0.1], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8]]] * 6)
    ((_, gain, _),) = predict_labels(from_labels(alike, 3000, 2)).pair_information([(0, 1)])
    assert gain.low < 0.005


def many_classes(alike, n_classes=200):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, n_classes, 6000)
    confusion = np.repeat((0.9 * np.eye(n_classes) + 0.1 / n_classes)[None], 3, axis=0)
    mixed = confusion.copy()
    mixed[:, :alike] = mixed[:, :alike].mean(axis=1, keepdims=True)
    table = simulate_labels(truth, mixed, random_state=rng)
    prior = np.full(n_classes, 1 / n_classes)
    return predict_labels(crowd_result(table, prior, confusion)), truth


def test_classes_that_differ_are_found_to_among_many():
    found = many_classes(alike=1)[0].pair_information((k, k + 1) for k in range(199))
    assert len(found) == 199
    assert min(pair.gain.low for pair in found) > 0.3
    # Too few labels are sampled to say what the matrices claim about so many classes.
    assert np.isnan([pair.claimed for pair in found]).all()


def test_two_classes_with_hardly_a_sampled_label_are_not_judged():
    prediction, truth = many_classes(alike=1, n_classes=900)
    n_labels = 3 * np.bincount(truth, minlength=900)
    rare, common = np.argsort(n_labels)[:2], np.argsort(n_labels)[-2:]
    assert n_labels[rare].sum() < 20 < 40 < n_labels[common].sum()
    found = prediction.pair_information([tuple(rare), tuple(common)])
    assert [pair.classes for pair in found] == [tuple(common)]


def test_without_labels_nothing_is_predicted():
    table = LabelTable.from_codes([], [], [], n_annotators=1, n_classes=2)
    prediction = predict_labels(crowd_result(table, [0.5, 0.5], np.full((1, 2, 2), 0.5)))
    assert prediction.information() == (0, 0, 0)
    assert prediction.pair_information([(0, 1)]) == []
