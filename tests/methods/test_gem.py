"""Generalized EM, step by step."""

import numpy as np
import pytest
import torch
from crowds import blobs, built

import annotrace as at
from annotrace.crowd.em import expected_counts, matrices_from_counts
from annotrace.crowd.problem import CrowdProblem
from annotrace.errors import InputError
from annotrace.labels.codes import split_positions
from annotrace.methods import network_estimator


def test_one_e_and_m_step_follow_the_algorithm():
    _, _, table, _ = blobs(n_items=20, labels_per_item=3)
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 20)
    p = rng.dirichlet(np.ones(3), 20)
    model, problem = built("gem", table, smoothing=0.0), CrowdProblem(table)
    model._count_matrices(problem, torch.from_numpy(q))
    counts = np.zeros((6, 3, 3))
    for item, annotator, label in zip(table.item, table.annotator, table.label, strict=True):
        counts[annotator, :, label] += q[item]
    confusion = counts / counts.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(model.annotator_model_.matrices(), confusion, atol=1e-6)
    joint = p.copy()
    for item, annotator, label in zip(table.item, table.annotator, table.label, strict=True):
        joint[item] *= confusion[annotator, :, label]
    inferred = model._infer(problem, torch.from_numpy(np.log(p)))
    np.testing.assert_allclose(inferred, joint / joint.sum(axis=1, keepdims=True), atol=1e-5)


def test_identity_is_a_fixed_point_of_gem_with_one_label_and_no_smoothing():
    X, _, table, _ = blobs(labels_per_item=1, skill=0.6)
    model = at.GeneralizedEM(smoothing=0.0, n_steps=3, epochs=9, random_state=0).fit(X, table)
    seen = np.zeros((6, 3), bool)
    seen[table.annotator, table.label] = True
    diagonal = np.diagonal(model.confusion_, axis1=1, axis2=2)
    np.testing.assert_allclose(diagonal[seen], 1, atol=1e-6)
    np.testing.assert_array_equal(model.posterior_.argmax(axis=1), table.label)


def test_smoothing_lets_the_network_overrule_a_label():
    X, truth, table, _ = blobs(n_items=600, labels_per_item=1, skill=0.7)
    model = at.GeneralizedEM(smoothing=1.0, epochs=40, lr=1e-2, random_state=0).fit(X, table)
    assert np.mean(model.posterior_.argmax(axis=1) == truth) > 0.75


def test_epochs_are_divided_among_the_steps():
    X, _, table, _ = blobs(n_items=60)
    model = at.GeneralizedEM(n_steps=3, epochs=10, random_state=0).fit(X, table)
    assert [epoch.number for epoch in model.history_] == list(range(1, 11))
    with pytest.raises(InputError, match=r"at most the number of epochs \(10\), but got 11"):
        at.GeneralizedEM(n_steps=11, epochs=10).fit(X, table)


def test_all_steps_hold_out_the_same_items(monkeypatch):
    X, _, table, _ = blobs(n_items=60)
    parts = []

    def noted(*given):
        parts.append(split_positions(*given))
        return parts[-1]

    monkeypatch.setattr(network_estimator, "split_positions", noted)
    at.GeneralizedEM(n_steps=3, epochs=3, random_state=0).fit(X, table)
    assert len(parts) == 3
    assert all(np.array_equal(held_out, parts[0][1]) for _, held_out in parts)


def test_weights_are_kept_from_step_to_step_unless_asked_not_to():
    X, _, table, _ = blobs(n_items=120)
    losses = {}
    for keep_weights in (True, False):
        model = at.GeneralizedEM(
            n_steps=2, epochs=20, keep_weights=keep_weights, validation_fraction=0, random_state=0
        )
        losses[keep_weights] = [epoch.loss for epoch in model.fit(X, table).history_]
    assert losses[True][10] < 0.8 * losses[True][0]
    assert losses[False][10] > 0.8 * losses[False][0]


@pytest.mark.parametrize("name", ["gem", "mbem"])
@pytest.mark.parametrize("keep_weights", [True, False])
def test_the_step_with_the_most_likely_held_out_labels_is_kept(name, keep_weights, monkeypatch):
    X, truth, table, _ = blobs(labels_per_item=1)
    settings = {"epochs": 10, "lr": 1e-2, "keep_weights": keep_weights, "random_state": 0}
    one_step = at.make(name, n_steps=1, **{**settings, "epochs": 5}).fit(X, table)

    def forget(self, problem, log_p):
        return torch.roll(log_p.exp(), 1, dims=1)

    monkeypatch.setattr(at.GeneralizedEM, "_infer", forget)
    model = at.make(name, n_steps=2, **settings).fit(X, table)
    np.testing.assert_array_equal(model.predict_proba(X), one_step.predict_proba(X))
    np.testing.assert_array_equal(model.confusion_, one_step.confusion_)
    last = at.make(name, n_steps=2, validation_fraction=0, **settings).fit(X, table)
    assert last.score(X, truth) < 0.2 < 0.9 < model.score(X, truth)


def test_a_warm_start_begins_with_the_posterior_of_the_last_fit():
    X, _, table, _ = blobs(n_items=100, skill=0.5, labels_per_item=3)
    model = at.GeneralizedEM(epochs=8, random_state=0).fit(X, table)
    counts = torch.from_numpy(expected_counts(model.posterior_, table))
    model.set_params(warm_start=True, n_steps=1, epochs=1).fit(X, table)
    expected = matrices_from_counts(counts, model.smoothing)
    np.testing.assert_allclose(model.confusion_, expected, atol=1e-5)
