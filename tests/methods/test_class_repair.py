import numpy as np
import pytest
import torch
from crowds import blobs, digits

import annotrace as at
from annotrace.methods.class_repair import ClassRepair, Split, minimum_gain
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
    return ClassRepair(table, posterior, counts / counts.sum(2, keepdims=True)), truth


def test_classes_in_the_right_order_are_left_alone():
    found, _ = learned([0, 1, 2])
    assert not found.is_swapped
    assert found.splits == []
    np.testing.assert_array_equal(found.order, [0, 1, 2])


def test_swapped_classes_are_put_in_order():
    found, _ = learned([1, 2, 0])
    assert found.is_swapped
    assert found.splits == []
    start = found.initial_matrices(None, fresh=np.zeros((4, 3, 3)))
    np.testing.assert_allclose(start, crowd_of(), atol=0.12)


def test_a_swap_within_chance_is_not_one():
    truth = np.array([0, 1] * 5)
    table = labelled(truth, crowd_of(2, 2))
    nearly_even = np.tile([[0.48, 0.52], [0.5, 0.5]], (2, 1, 1))
    assert not ClassRepair(table, np.eye(2)[truth], nearly_even).is_swapped


def test_a_collapsed_class_is_split_from_its_host():
    found, truth = learned([0, 1, 1])
    assert found.splits[0] == Split(collapsed=2, host=1, order=(0, 1, 2))
    start = found.initial_posterior(found.splits[0])
    np.testing.assert_allclose(start.sum(1), 1)
    np.testing.assert_array_equal(start[truth == 0, 0], 1)
    assert start[truth == 2, 2].mean() > start[truth == 1, 2].mean() + 0.1


def test_a_collapsed_class_may_be_under_another_name():
    # The true class 0 is learned as 2, and nothing as 0.
    found, truth = learned([2, 1, 1])
    assert found.splits[0] == Split(collapsed=2, host=1, order=(2, 1, 0))
    start = found.initial_posterior(found.splits[0])
    np.testing.assert_array_equal(start[truth == 0].argmax(1), 0)


def test_a_collapsed_class_is_looked_for_in_the_present_order_too():
    # By the diagonal, 0.92, the names 1, 2, 0 are better than the present ones, 0.91, by chance.
    matrices = np.tile([[0.45, 0.46, 0.09], [0.08, 0.46, 0.46], [1 / 3] * 3], (4, 1, 1))
    truth = np.array([0, 1] * 100)
    found = ClassRepair(labelled(truth, matrices), np.eye(3)[truth], matrices)
    assert not found.is_swapped
    assert Split(collapsed=2, host=1, order=(0, 1, 2)) in found.splits
    split = Split(collapsed=0, host=1, order=(2, 0, 1))
    assert split in found.splits
    # The class that is learned as 0 is called 1, and divided.
    start = found.initial_posterior(split)
    assert np.all(start[truth == 0, :2] > 0.2)
    assert np.all(start[truth == 1, 2] == 1)


def test_only_the_rows_of_a_split_are_reinitialised():
    found, _ = learned([0, 1, 1])
    fresh = np.full((4, 3, 3), 1 / 3)
    start = found.initial_matrices(found.splits[0], fresh)
    np.testing.assert_array_equal(start[:, 1:], fresh[:, 1:])
    np.testing.assert_array_equal(start[:, 0], found.confusion[:, 0])


def test_a_rare_class_has_not_collapsed():
    truth = np.r_[np.zeros(980, int), np.ones(20, int)]
    confusion = np.tile([[0.95, 0.05], [0.1, 0.9]], (4, 1, 1))
    table = labelled(truth, confusion)
    assert ClassRepair(table, np.eye(2)[truth], confusion).splits == []


def test_more_labels_need_less_of_a_gain():
    assert minimum_gain(100) == pytest.approx(0.03)
    assert minimum_gain(10_000) == pytest.approx(0.003)


def test_trace_repairs_the_classes_that_collapsed_in_one_training():
    train, test = digits()
    table = simulate_labels(
        train.y, pairwise_flippers(5, 10, 0.35, 23), labels_per_item=1, random_state=23
    )
    settings = {"structure": "full", "random_state": 23}
    recipe = at.Recipe(n_init=1, mixup=1.0)
    model = at.TraceRegularized(recipe=recipe, **settings).fit(train.X, table)
    assert model.score(test.X, test.y) > 0.95
    assert model.chosen_["init"] > 0, "no class collapsed in the first training: take another draw"
    # A training without mixup that is not kept changes nothing in those that repair.
    tried = at.TraceRegularized(recipe=at.Recipe(n_init=1), **settings).fit(train.X, table)
    assert tried.chosen_ == model.chosen_
    np.testing.assert_array_equal(tried.posterior_, model.posterior_)


def test_cross_fitting_repairs_a_class_that_its_initialisation_lacks(monkeypatch):
    X, y, table, _ = blobs(n_items=300, labels_per_item=1)

    find_start = at.CrossFittedEM._find_start

    def without_the_last_class(self, data, inner, settings):
        start = find_start(self, data, inner, settings)
        known = torch.eye(3)[torch.from_numpy(np.minimum(y, 1)).long()].double()
        return start._replace(logits=(known + 0.01).log())

    monkeypatch.setattr(at.CrossFittedEM, "_find_start", without_the_last_class)
    params = {"init": "votes", "n_iter": 3, "epochs": 5, "mixup": 0, "random_state": 0}
    model = at.CrossFittedEM(**params).fit(X, table)
    assert np.mean(model.posterior_.argmax(1) == y) > 0.95
    assert len(model.label_loss_) == 6
    assert model.label_loss_[-1] < model.label_loss_[2]
