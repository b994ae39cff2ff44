import numpy as np
import pytest
import torch

from annotrace.crowd import LabelIndex
from annotrace.crowd import common_noise as module
from annotrace.crowd.common_noise import CommonNoise
from annotrace.errors import InputError

N_ANNOTATORS, N_CLASSES, N_ITEMS, WIDTH = 4, 3, 6, 5
ROW, ANNOTATOR, LABEL = torch.tensor([[0, 0, 1, 3], [0, 2, 1, 3], [1, 0, 2, 2]])


@pytest.fixture
def model():
    """A model with random weights and items, in float64."""
    torch.manual_seed(0)
    model = CommonNoise(N_ANNOTATORS, N_CLASSES, N_ITEMS, width=WIDTH).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    items = torch.randn(N_ITEMS, WIDTH, dtype=torch.float64)
    model.set_items(items / items.norm(dim=1, keepdim=True))
    return model


def rate(model, item, annotator):
    """The sigmoid of the cosine of two embeddings, by loops."""
    u = model.items[item].tolist()
    v = (model.embed.weight[:, annotator] + model.embed.bias).tolist()
    dot = sum(a * b for a, b in zip(u, v, strict=True))
    lengths = np.sqrt(sum(a * a for a in u) * sum(b * b for b in v))
    return 1 / (1 + np.exp(-dot / lengths))


def matrix(model, annotator, rate):
    """Softmax of each row of the two kinds of weights, averaged."""
    common, own = (part.detach().numpy() for part in (model.common, model.individual[annotator]))
    cells = np.exp(rate * common + (1 - rate) * own)
    return cells / cells.sum(axis=1, keepdims=True)


def test_a_label_depends_on_the_item_by_its_rate(model):
    item = torch.tensor([5, 0, 2, 2])
    expected = [
        np.log(matrix(model, r, rate(model, n, r))[:, j])
        for n, r, j in zip(item.tolist(), ANNOTATOR.tolist(), LABEL.tolist(), strict=True)
    ]
    actual = model.log_likelihood(ANNOTATOR, LABEL, item)
    np.testing.assert_allclose(actual.detach(), expected, atol=1e-12)


def test_many_labels_are_computed_in_parts(model, monkeypatch):
    item = torch.tensor([5, 0, 2, 2])
    whole = model.log_likelihood(ANNOTATOR, LABEL, item), model.matrices(items=item)
    monkeypatch.setattr(module, "CELLS_AT_ONCE", 2 * N_CLASSES**2)
    torch.testing.assert_close(model.log_likelihood(ANNOTATOR, LABEL, item), whole[0])
    torch.testing.assert_close(model.matrices(items=item), whole[1])


def test_without_items_the_rate_is_the_mean_over_all_or_some(model):
    every = [np.mean([rate(model, n, r) for n in range(N_ITEMS)]) for r in range(N_ANNOTATORS)]
    some = [np.mean([rate(model, n, r) for n in (1, 4)]) for r in range(N_ANNOTATORS)]
    expected = [matrix(model, r, every[r]) for r in range(N_ANNOTATORS)]
    np.testing.assert_allclose(model.matrices(), expected, atol=1e-12)
    chosen = torch.tensor([3, 1])
    expected_of_some = [matrix(model, r, some[r]) for r in (3, 1)]
    actual = model.matrices(chosen, items=torch.tensor([1, 4]))
    np.testing.assert_allclose(actual, expected_of_some, atol=1e-12)
    columns = [np.log(expected[r][:, j]) for r, j in zip(ANNOTATOR, LABEL, strict=True)]
    np.testing.assert_allclose(model.log_likelihood(ANNOTATOR, LABEL).detach(), columns, atol=1e-12)


def test_the_labels_of_an_item_are_judged_by_its_own_rate(model):
    labels = LabelIndex(
        ROW, ANNOTATOR, LABEL, 4, N_ANNOTATORS, N_CLASSES, item=torch.tensor([5, 2, 0, 1])
    )
    expected = np.zeros((4, N_CLASSES))
    for row, r, j in zip(ROW.tolist(), ANNOTATOR.tolist(), LABEL.tolist(), strict=True):
        expected[row] += np.log(matrix(model, r, rate(model, [5, 2, 0, 1][row], r))[:, j])
    np.testing.assert_allclose(model.item_log_likelihood(labels).detach(), expected, atol=1e-12)


def test_for_a_certain_class_the_classifier_is_judged_by_the_matrices(model):
    certain = torch.tensor([0, 1, 2, 0])
    logits = 500.0 * torch.eye(N_CLASSES, dtype=torch.float64)[certain]
    items = model.items[[5, 0, 2, 1]]
    actual = model.classifier_log_likelihood(logits, items, ROW, ANNOTATOR, LABEL)
    rows = model.log_likelihood(ANNOTATOR, LABEL, torch.tensor([5, 0, 2, 1])[ROW])
    expected = rows[torch.arange(4), certain[ROW]]
    torch.testing.assert_close(actual, expected)


def test_large_logits_have_finite_gradients(model):
    logits = torch.tensor([[500.0, 0, -500], [0, 0, 0], [90, 0, 0], [-1e4, 1e4, 0]])
    logits.requires_grad_()
    value = model.float().classifier_log_likelihood(
        logits, model.items[:4].float(), ROW, ANNOTATOR, LABEL
    )
    (value.sum() - model.distance()).backward()
    for tensor in (logits, *model.parameters()):
        assert torch.isfinite(tensor.grad).all()


def test_the_distance_has_a_gradient_where_all_weights_are_equal():
    fresh = CommonNoise(N_ANNOTATORS, N_CLASSES, N_ITEMS)
    assert fresh.distance() == 0
    fresh.distance().backward()
    assert torch.isfinite(fresh.individual.grad).all()


def test_a_model_starts_from_given_matrices():
    model = CommonNoise(N_ANNOTATORS, N_CLASSES, N_ITEMS)
    given = torch.softmax(torch.randn(N_ANNOTATORS, N_CLASSES, N_CLASSES), 2)
    model.set_matrices(given)
    torch.testing.assert_close(model.matrices(), given)
    torch.testing.assert_close(model.common.data, given.log().mean(0))


def test_before_any_item_is_set_both_kinds_are_equally_likely():
    model = CommonNoise(N_ANNOTATORS, N_CLASSES, N_ITEMS, scale=2.0)
    expected = np.exp(2) / (np.exp(2) + N_CLASSES - 1)
    np.testing.assert_allclose(model.matrices().diagonal(dim1=1, dim2=2), expected, atol=1e-6)
    assert model.common_rate.tolist() == [0.5] * N_ANNOTATORS


def test_items_must_be_all_items(model):
    with pytest.raises(InputError, match=r"`items` to be of shape \(6, 5\), but got \(2, 5\)"):
        model.set_items(torch.zeros(2, WIDTH))
