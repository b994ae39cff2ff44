import numpy as np
import pytest
import torch
from crowds import blobs, digits

import annotrace as at
from annotrace.methods.lost_classes import Founding, LostClasses, worth_it
from annotrace.simulate import pairwise_flippers, simulate_labels

SKILL = 0.7


def crowd_of(n_annotators=4, n_classes=3):
    wrong = (1 - SKILL) / (n_classes - 1)
    matrix = np.full((n_classes, n_classes), wrong) + (SKILL - wrong) * np.eye(n_classes)
    return np.tile(matrix, (n_annotators, 1, 1))


def labelled(truth, confusion):
    return simulate_labels(truth, confusion, labels_per_item=1, random_state=0)


def learned(truth_to_class, n_items=900):
    """A posterior, table and matrices where each true class was learned as another."""
    truth = np.array([0, 1, 1, 2])[np.arange(n_items) % 4]
    confusion = crowd_of()
    posterior = np.eye(3)[np.asarray(truth_to_class)[truth]]
    table = labelled(truth, confusion)
    counts = np.zeros((4, 3, 3))
    np.add.at(counts, (table.annotator, posterior.argmax(1)[table.item], table.label), 1)
    counts += 1 / 3
    return LostClasses(table, posterior, counts / counts.sum(2, keepdims=True)), truth


def test_classes_in_their_place_are_left_alone():
    found, _ = learned([0, 1, 2])
    assert not found.renamed
    assert found.foundings == []
    np.testing.assert_array_equal(found.order, [0, 1, 2])


def test_classes_that_traded_names_get_them_back():
    found, _ = learned([1, 2, 0])
    assert found.renamed
    assert found.foundings == []
    begin = found.begin_matrices(None, fresh=np.zeros((4, 3, 3)))
    np.testing.assert_allclose(begin, crowd_of(), atol=0.12)


def test_a_swap_that_chance_explains_is_no_swap():
    truth = np.array([0, 1] * 5)
    table = labelled(truth, crowd_of(2, 2))
    nearly_even = np.tile([[0.48, 0.52], [0.5, 0.5]], (2, 1, 1))
    assert not LostClasses(table, np.eye(2)[truth], nearly_even).renamed


def test_a_lost_class_is_founded_from_the_one_that_took_it_in():
    found, truth = learned([0, 1, 1])
    assert found.foundings[0] == Founding(name=2, host=1)
    begin = found.begin_posterior(found.foundings[0])
    np.testing.assert_allclose(begin.sum(1), 1)
    np.testing.assert_array_equal(begin[truth == 0, 0], 1)
    assert begin[truth == 2, 2].mean() > begin[truth == 1, 2].mean() + 0.1


def test_a_lost_class_may_be_under_another_name():
    # The true class 0 is learned as 2, and nothing as 0.
    found, truth = learned([2, 1, 1])
    assert found.foundings[0] == Founding(name=2, host=1)
    begin = found.begin_posterior(found.foundings[0])
    np.testing.assert_array_equal(begin[truth == 0].argmax(1), 0)


def test_only_the_rows_of_the_two_begin_afresh():
    found, _ = learned([0, 1, 1])
    fresh = np.full((4, 3, 3), 1 / 3)
    begin = found.begin_matrices(found.foundings[0], fresh)
    np.testing.assert_array_equal(begin[:, 1:], fresh[:, 1:])
    np.testing.assert_array_equal(begin[:, 0], found.confusion[:, 0])


def test_a_rare_class_is_not_a_lost_one():
    truth = np.r_[np.zeros(980, int), np.ones(20, int)]
    confusion = np.tile([[0.95, 0.05], [0.1, 0.9]], (4, 1, 1))
    table = labelled(truth, confusion)
    assert LostClasses(table, np.eye(2)[truth], confusion).foundings == []


def test_more_labels_ask_for_less_of_a_gain():
    assert worth_it(100) == pytest.approx(0.03)
    assert worth_it(10_000) == pytest.approx(0.003)


def test_trace_finds_the_classes_that_one_training_lost():
    train, test = digits()
    table = simulate_labels(
        train.y, pairwise_flippers(5, 10, 0.35, 23), labels_per_item=1, random_state=23
    )
    settings = {"pool": False, "restarts": 1, "random_state": 23}
    model = at.TraceRegularized(mixup=1.0, **settings).fit(train.X, table)
    assert model.score(test.X, test.y) > 0.95
    assert model.chosen_["restart"] > 0, "the first training found them all: choose another draw"
    # One without mixup that is not kept changes nothing in those that mend.
    tried = at.TraceRegularized(mixup="auto", **settings).fit(train.X, table)
    assert tried.chosen_ == model.chosen_
    np.testing.assert_array_equal(tried.posterior_, model.posterior_)


def test_cross_fitting_finds_a_class_that_its_start_lost(monkeypatch):
    X, y, table, _ = blobs(n_items=300, labels_per_item=1)

    def begin_without_the_last(self, inner, data, settings):
        self._has_matrices = False
        inner.begin_with(torch.eye(3)[torch.from_numpy(np.minimum(y, 1)).long()])
        return []

    monkeypatch.setattr(at.CrossFittedEM, "_begin", begin_without_the_last)
    model = at.CrossFittedEM(rounds=3, epochs=5, mixup=0, random_state=0).fit(X, table)
    assert np.mean(model.posterior_.argmax(1) == y) > 0.95
    assert len(model.label_loss_) == 9
    assert model.label_loss_[-1] < model.label_loss_[2]
