"""Generalized and model-bootstrapped EM, step by step."""

import numpy as np
import pytest
import torch
from crowds import blobs

import annotrace as at
from annotrace.aggregation.evidence import Evidence
from annotrace.errors import InputError
from annotrace.labels.codes import split_positions
from annotrace.methods import steps


def built(name, table, **settings):
    model = at.make(name, **settings)
    model.table_ = table
    model._build_parts(torch.device("cpu"))
    return model


def test_one_e_and_m_step_follow_the_algorithm():
    _, _, table, _ = blobs(n_items=20, labels_per_item=3)
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 20)
    p = rng.dirichlet(np.ones(3), 20)
    model, evidence = built("gem", table, smoothing=0.0), Evidence(table)
    model._set_matrices(evidence, torch.from_numpy(q))
    counts = np.zeros((6, 3, 3))
    for item, annotator, label in zip(table.item, table.annotator, table.label, strict=True):
        counts[annotator, :, label] += q[item]
    confusion = counts / counts.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(model._layer.matrices(), confusion, atol=1e-6)
    joint = p.copy()
    for item, annotator, label in zip(table.item, table.annotator, table.label, strict=True):
        joint[item] *= confusion[annotator, :, label]
    inferred = model._infer(evidence, torch.from_numpy(np.log(p)))
    np.testing.assert_allclose(inferred, joint / joint.sum(axis=1, keepdims=True), atol=1e-5)


def test_mbem_counts_predictions_and_takes_its_prior_from_them():
    _, _, table, _ = blobs(n_items=20, labels_per_item=3)
    model = built("mbem", table)
    log_p = torch.log(torch.tensor([[0.6, 0.3, 0.1]] * 15 + [[0.1, 0.2, 0.7]] * 5))
    counted = model._counted(torch.zeros(20, 3), log_p)
    np.testing.assert_array_equal(counted.sum(0), [15, 0, 5])
    np.testing.assert_allclose(model._log_prior(log_p).exp(), [0.75, 0, 0.25], atol=1e-9)


def test_identity_is_a_fixed_point_of_gem_with_one_label_and_no_smoothing():
    X, _, table, _ = blobs(labels_per_item=1, skill=0.6)
    model = at.GeneralizedEM(smoothing=0.0, steps=3, epochs=9, random_state=0).fit(X, table)
    seen = np.zeros((6, 3), bool)
    seen[table.annotator, table.label] = True
    diagonal = np.diagonal(model.confusion_, axis1=1, axis2=2)
    np.testing.assert_allclose(diagonal[seen], 1, atol=1e-6)
    np.testing.assert_array_equal(model.posterior_.argmax(axis=1), table.label)


def test_smoothing_lets_the_network_overrule_a_label():
    X, truth, table, _ = blobs(n_items=600, labels_per_item=1, skill=0.7)
    model = at.GeneralizedEM(smoothing=1.0, epochs=40, lr=1e-2, random_state=0).fit(X, table)
    assert np.mean(model.posterior_.argmax(axis=1) == truth) > 0.75


def test_epochs_are_shared_out_among_the_steps():
    X, _, table, _ = blobs(n_items=60)
    model = at.GeneralizedEM(steps=3, epochs=10, random_state=0).fit(X, table)
    assert [epoch.number for epoch in model.history_] == list(range(1, 11))
    with pytest.raises(InputError, match=r"at most the number of epochs \(10\), but got 11"):
        at.GeneralizedEM(steps=11, epochs=10).fit(X, table)


def test_one_part_is_held_out_by_all_steps(monkeypatch):
    X, _, table, _ = blobs(n_items=60)
    parts = []

    def noted(*given):
        parts.append(split_positions(*given))
        return parts[-1]

    monkeypatch.setattr(steps, "split_positions", noted)
    at.GeneralizedEM(steps=3, epochs=3, random_state=0).fit(X, table)
    assert len(parts) == 3
    assert all(np.array_equal(held_out, parts[0][1]) for _, held_out in parts)


def test_weights_are_kept_from_step_to_step_unless_asked_not_to():
    X, _, table, _ = blobs(n_items=120)
    losses = {}
    for warm in (True, False):
        model = at.GeneralizedEM(steps=2, epochs=20, warm=warm, validation=0, random_state=0)
        losses[warm] = [epoch.loss for epoch in model.fit(X, table).history_]
    assert losses[True][10] < 0.8 * losses[True][0]
    assert losses[False][10] > 0.8 * losses[False][0]


@pytest.mark.parametrize("name", ["gem", "mbem"])
@pytest.mark.parametrize("warm", [True, False])
def test_the_step_is_kept_that_held_out_labels_are_likeliest_by(name, warm, monkeypatch):
    X, truth, table, _ = blobs(labels_per_item=1)
    settings = {"epochs": 10, "lr": 1e-2, "warm": warm, "random_state": 0}
    one_step = at.make(name, steps=1, **{**settings, "epochs": 5}).fit(X, table)

    def forget(self, evidence, log_p):
        return torch.roll(log_p.exp(), 1, dims=1)

    monkeypatch.setattr(at.GeneralizedEM, "_infer", forget)
    model = at.make(name, steps=2, **settings).fit(X, table)
    np.testing.assert_array_equal(model.predict_proba(X), one_step.predict_proba(X))
    np.testing.assert_array_equal(model.confusion_, one_step.confusion_)
    last = at.make(name, steps=2, validation=0, **settings).fit(X, table)
    assert last.score(X, truth) < 0.2 < 0.9 < model.score(X, truth)
