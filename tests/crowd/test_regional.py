import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit

from annotrace.crowd import LabelIndex, RegionalAnnotators, posterior
from annotrace.crowd.regional import BIAS_STRENGTH, fit_gates, mean_gates
from annotrace.errors import InputError


def drawn(n_annotators=3, n_classes=4, n_items=5, n_dims=2, seed=0):
    """Random matrices, gates and coordinates."""
    rng = np.random.default_rng(seed)
    able, failing = rng.dirichlet(np.ones(n_classes), (2, n_annotators, n_classes))
    gates = rng.normal(size=(n_annotators, 1 + n_dims))
    return able, failing, gates, rng.normal(size=(n_items, n_dims))


def model_of(*arrays):
    return RegionalAnnotators(*(torch.from_numpy(each) for each in arrays))


def test_the_posterior_of_a_tiny_crowd_is_that_of_brute_force():
    able, failing, gates, items = drawn()
    answers = [(0, 0, 2), (0, 1, 2), (1, 2, 0), (3, 0, 1), (3, 1, 3), (3, 2, 3)]
    expected = np.full((5, 4), 0.25)
    for item, annotator, label in answers:
        g = expit(gates[annotator, 0] + gates[annotator, 1:] @ items[item])
        for true in range(4):
            p = g * able[annotator, true, label] + (1 - g) * failing[annotator, true, label]
            expected[item, true] *= p
    expected /= expected.sum(axis=1, keepdims=True)
    row, annotator, label = torch.tensor(answers).T
    labels = LabelIndex(row, annotator, label, 5, 3, 4)
    likelihood = model_of(able, failing, gates, items).item_log_likelihood(labels)
    found = posterior(torch.full((4,), 0.25, dtype=torch.float64).log(), likelihood)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_matrices_are_averages_over_the_items_asked_for():
    able, failing, gates, items = drawn()
    model = model_of(able, failing, gates, items)
    for chosen in ([0, 1, 2, 3, 4], [2], [1, 4]):
        g = expit(gates[:, :1] + gates[:, 1:] @ items[chosen].T).mean(axis=1)[:, None, None]
        found = model.matrices(items=torch.tensor(chosen)).numpy()
        np.testing.assert_allclose(found, g * able + (1 - g) * failing, atol=1e-12)
    some = model.matrices(torch.tensor([2, 0]), torch.tensor([3]))
    np.testing.assert_array_equal(some, model.matrices(items=torch.tensor([3]))[[2, 0]])


def test_labels_without_items_are_averaged_over_them():
    model = model_of(*drawn())
    annotator, label = torch.tensor([0, 2]), torch.tensor([3, 1])
    found = model.log_likelihood(annotator, label).exp()
    torch.testing.assert_close(found, model.matrices()[annotator, :, label])


def test_without_slopes_the_item_does_not_matter():
    able, failing, gates, items = drawn()
    gates[:, 1:] = 0
    model = model_of(able, failing, gates, items)
    one, other = (model.matrices(items=torch.tensor([k])) for k in (0, 4))
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("strength", [0.1, 5.0])
def test_gates_maximise_the_penalised_likelihood(strength):
    rng = np.random.default_rng(1)
    items, annotator = rng.normal(size=(60, 2)), np.arange(60) % 2
    able, failing = rng.random((2, 60))

    def loss(flat):
        gates = flat.reshape(2, 3)
        logits = gates[annotator, 0] + (gates[annotator, 1:] * items).sum(axis=1)
        nll = able * np.logaddexp(0, -logits) + failing * np.logaddexp(0, logits)
        penalty = (
            strength * np.square(gates[:, 1:]).sum() + BIAS_STRENGTH * (gates[:, 0] ** 2).sum()
        )
        return nll.sum() + penalty / 2

    expected = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).x.reshape(2, 3)
    given = (torch.from_numpy(each) for each in (items, annotator, able, failing))
    start = torch.zeros(2, 3, dtype=torch.float64)
    found = fit_gates(*given, start, strength, n_steps=20)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


def test_gates_stay_finite_where_labels_are_separable():
    items = torch.tensor([[-3.0], [-2.0], [2.0], [3.0]], dtype=torch.float64)
    able = torch.tensor([0.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    start = torch.tensor([[0.0, -40.0]], dtype=torch.float64)
    found = fit_gates(items, torch.zeros(4).long(), able, 1 - able, start, 0.5, n_steps=100)
    assert found[0, 1] > 0
    assert abs(found[0, 1]) < 5


def test_many_annotators_are_averaged_by_blocks(monkeypatch):
    _, _, gates, items = (torch.from_numpy(each) for each in drawn(n_annotators=7))
    whole = mean_gates(gates, items)
    monkeypatch.setattr("annotrace.crowd.regional.BLOCK", 10)
    torch.testing.assert_close(mean_gates(gates, items), whole)


def test_parts_of_other_shapes_are_rejected():
    able, failing, gates, items = (torch.from_numpy(each) for each in drawn())
    with pytest.raises(InputError, match=r"Expected `gates` to be of shape \(3, 3\)"):
        RegionalAnnotators(able, failing, gates[:, :2], items)
