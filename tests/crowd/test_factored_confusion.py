import json

import numpy as np
import pytest
import torch
from crowds import blobs
from torch import nn

import annotrace as at
from annotrace.crowd import STRUCTURES, annotator_model, joint_nll, result, trace_regularized_nll
from annotrace.crowd.factored_confusion import LowRankConfusion
from annotrace.crowd.label_index import LabelIndex
from annotrace.errors import InputError, RunError

NAMES = ["low-rank", "per-class", "taxonomy"]
GROUPS = {"taxonomy": {"group": torch.tensor([0, 1, 0, 2])}}
"""Classes 1 and 3 are alone in their groups."""
every = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def labels():
    return (
        torch.tensor([0, 0, 1, 2, 2, 2]),
        torch.tensor([0, 1, 1, 2, 0, 1]),
        torch.tensor([2, 2, 0, 1, 1, 3]),
    )


def layer_of(name, frequency=None):
    """Return a layer of three annotators and four classes with random parameters, in float64."""
    torch.manual_seed(0)
    given = {"frequency": frequency, "parametrization": "softplus", **GROUPS.get(name, {})}
    layer = STRUCTURES.make(name, 3, 4, n_items=3, **given)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer.double()


@every
def test_rows_sum_to_one_and_are_the_likelihoods(name, labels):
    layer = layer_of(name)
    matrices = layer.matrices()
    torch.testing.assert_close(matrices.sum(2), torch.ones(3, 4, dtype=torch.float64))
    _, annotator, label = labels
    found = layer.log_likelihood(annotator, label).exp()
    torch.testing.assert_close(found.detach(), matrices[annotator, :, label])
    torch.testing.assert_close(layer.matrices(torch.tensor([2, 0])), matrices[[2, 0]])
    traces = matrices.diagonal(dim1=1, dim2=2).sum(1)
    own = layer.log_likelihood_and_traces(annotator, label)[1]
    torch.testing.assert_close(own.detach(), traces[annotator])
    torch.testing.assert_close(layer.mean_trace().detach(), traces.mean())


@every
@pytest.mark.parametrize("joint", [False, True])
def test_the_loss_of_a_batch_is_that_of_the_paper(name, joint, labels):
    row, annotator, label = labels
    frequency = torch.bincount(annotator).float() / 3
    layer = layer_of(name, frequency)
    logits = torch.randn(3, 4, dtype=torch.float64)
    found = trace_regularized_nll(logits, layer, row, annotator, label, 0.3, joint=joint)
    matrices, p = layer.matrices(), logits.softmax(1)
    if joint:
        nll = joint_nll(logits, layer, row, annotator, label)
    else:
        likely = (p[row] * matrices[annotator, :, label]).sum(1)
        nll = -likely.log().sum() / 3
    # All items are in the batch, so that the estimate of the mean trace is exact.
    trace = matrices.diagonal(dim1=1, dim2=2).sum(1).mean()
    torch.testing.assert_close(found.detach(), (nll + 0.3 * trace).detach())


@every
def test_gradients_are_those_of_differences(name, labels):
    row, annotator, label = labels
    layer = layer_of(name, torch.full((3,), 0.5))
    logits = torch.randn(3, 4, dtype=torch.float64)

    def loss():
        return trace_regularized_nll(logits, layer, row, annotator, label, 0.3, joint=True)

    loss().backward()
    assert layer.weight.grad.is_sparse
    with torch.no_grad():
        for parameter in layer.parameters():
            grad = parameter.grad.to_dense().flatten()
            for place in range(0, parameter.numel(), 5):
                flat = parameter.view(-1)
                flat[place] += 1e-6
                above = loss()
                flat[place] -= 2e-6
                slope = (above - loss()) / 2e-6
                flat[place] += 1e-6
                assert float(slope) == pytest.approx(float(grad[place]), abs=1e-5)


@every
def test_a_start_from_matrices_has_their_skill(name):
    layer = STRUCTURES.make(name, 2, 4, **GROUPS.get(name, {}))
    same = torch.eye(4)
    layer.set_matrices(torch.stack([0.9 * same + 0.025, 0.5 * same + 0.125]))
    skill = layer.matrices().diagonal(dim1=1, dim2=2).mean(1)
    assert skill[0] > skill[1] + 0.2


@every
def test_a_classifier_learns_with_it(name, tmp_path):
    X, truth, table, _ = blobs(n_items=150, labels_per_item=3)
    recipe = at.Recipe(n_init=1, mixup=0.0)
    taxonomy = {str(k): "a" if k < 2 else "b" for k in range(table.n_classes)}
    model = at.TraceRegularized(
        structure=name, taxonomy=taxonomy, recipe=recipe, epochs=20, random_state=0
    )
    model.fit(X, table)
    assert model.score(X, truth) > 0.9
    assert np.mean(model.posterior_.argmax(1) == truth) > 0.9
    model.save(tmp_path)
    loaded = at.load(tmp_path)
    np.testing.assert_array_equal(loaded.confusion_, model.confusion_)
    np.testing.assert_array_equal(loaded.posterior_, model.posterior_)


@every
@pytest.mark.parametrize("size", [30.0, 120.0])
def test_extreme_parameters_give_finite_likelihoods_that_still_learn(name, size, labels):
    row, annotator, label = labels
    layer = layer_of(name, torch.full((3,), 0.5)).float()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(size * parameter.sign())
    loss = trace_regularized_nll(torch.zeros(3, 4), layer, row, annotator, label, 0.1, joint=True)
    loss.backward()
    assert loss.isfinite()
    for parameter in layer.parameters():
        assert parameter.grad.to_dense().isfinite().all()
    assert layer.weight.grad.to_dense()[:, 0].abs().sum() > 0.01


def test_classes_of_a_group_share_what_is_reported_outside_it():
    matrices = layer_of("taxonomy").matrices()
    outside = matrices[:, [0, 2]][:, :, [1, 3]]
    shares = outside / outside.sum(2, keepdim=True)
    torch.testing.assert_close(shares[:, 0], shares[0, 1].expand(3, 2))
    # How much that is, and what is reported within the group, are their own.
    assert (outside.sum(2).diff(dim=1).abs() > 1e-3).all()
    assert (matrices[:, 0, 2] - matrices[:, 2, 0]).abs().min() > 1e-3


def test_a_new_taxonomy_layer_is_correct_as_often_as_it_is_told():
    groups = torch.tensor([0, 0, 0, 1, 2])
    layer = STRUCTURES.make("taxonomy", 2, 5, group=groups, diagonal=0.8)
    expected = torch.full((2, 5), 0.8)
    torch.testing.assert_close(layer.matrices().diagonal(dim1=1, dim2=2), expected)


def test_auto_tries_a_taxonomy_and_a_run_keeps_its_groups(tmp_path):
    X, _, table, _ = blobs(n_items=100, labels_per_item=3)
    tree = {str(k): str(k // 2) for k in range(table.n_classes)}
    auto = at.TraceRegularized(taxonomy=tree, random_state=0)
    auto.table_ = table
    assert auto.options()["structure"] == ("full", "pooled", "taxonomy")
    with pytest.raises(InputError, match="needs a `taxonomy`"):
        at.TraceRegularized(structure="taxonomy").fit(X, table)

    path = tmp_path / "tree.json"
    path.write_text(json.dumps(tree))
    model = at.TraceRegularized(structure="taxonomy", taxonomy=str(path), recipe="none", epochs=2)
    model.fit(X, table).save(tmp_path / "run")
    path.unlink()
    loaded = at.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.groups_, np.arange(table.n_classes) // 2)
    np.testing.assert_array_equal(loaded.confusion_, model.confusion_)

    loaded.groups_ = loaded.groups_ + table.n_classes
    loaded.save(tmp_path / "damaged")
    with pytest.raises(RunError, match="`groups_` to be below"):
        at.load(tmp_path / "damaged")


def test_the_gradient_of_low_rank_is_that_of_autograd(labels):
    _, annotator, label = labels
    layer = layer_of("low-rank")
    by_label, by_trace = torch.randn(6, 4).double(), torch.randn(6).double()
    log_likelihood, traces = layer.log_likelihood_and_traces(annotator, label)
    ((log_likelihood * by_label).sum() + traces @ by_trace).backward()
    found = [parameter.grad.to_dense().clone() for parameter in layer.parameters()]

    layer.zero_grad()
    own, same = layer.weight[annotator], torch.eye(4).double()
    right = torch.sigmoid(own[:, :1] + layer.skill)[:, :, None]
    group = torch.softmax(own[:, None, 1:] + layer.group.log_softmax(1), 2)
    matrices = right * same + (1 - right) * (group @ layer.report.softmax(1))
    logs = matrices[torch.arange(6), :, label].log()
    of_trace = matrices.diagonal(dim1=1, dim2=2).sum(1)
    ((logs * by_label).sum() + of_trace @ by_trace).backward()
    for parameter, grad in zip(layer.parameters(), found, strict=True):
        torch.testing.assert_close(grad, parameter.grad)
    torch.testing.assert_close(log_likelihood, logs)


@every
def test_sums_and_matrices_are_the_same_by_blocks(name, labels, monkeypatch):
    layer = layer_of(name)
    index = LabelIndex(*labels, 3, 3, 4)
    expected = layer.item_log_likelihood(index).detach(), layer.matrices(), layer.mean_trace()
    monkeypatch.setattr(annotator_model, "BLOCK", 8)
    with torch.no_grad():
        found = layer.item_log_likelihood(index), layer.matrices(), layer.mean_trace()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_a_recipe_makes_no_array_of_matrices_that_are_too_many(monkeypatch):
    X, truth, table, _ = blobs(n_items=150, labels_per_item=3)
    monkeypatch.setattr(result, "MAX_CELLS", 0)
    monkeypatch.setattr(annotator_model, "BLOCK", 2 * table.n_classes**2)
    most = []
    matrices = LowRankConfusion.matrices

    def noted(self, annotators=None, items=None):
        found = matrices(self, annotators, items)
        most.append(len(found))
        return found

    monkeypatch.setattr(LowRankConfusion, "matrices", noted)
    model = at.TraceRegularized(structure="low-rank", epochs=20, random_state=0).fit(X, table)
    assert model.score(X, truth) > 0.9
    assert max(most) == 2 < table.n_annotators
    assert model.temperature_ != 1
