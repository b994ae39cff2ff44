import numpy as np
import pytest
import torch

from annotrace.crowd import Confusion
from annotrace.crowd import label_outliers as module
from annotrace.crowd.label_outliers import LabelOutliers, OutlierConfusion

ITEM = torch.tensor([0, 0, 1, 3, 3])
ANNOTATOR = torch.tensor([1, 0, 1, 2, 0])
PAIRS = sorted(zip(ITEM.tolist(), ANNOTATOR.tolist(), strict=True))


def random_model(scale=0.1):
    """Return a model with random outliers, its matrices, and the outlier of each pair."""
    generator = torch.Generator().manual_seed(0)
    nominal = Confusion(3, 3)
    matrices = torch.softmax(torch.randn(3, 3, 3, generator=generator), 2)
    nominal.set_matrices(matrices)
    outliers = LabelOutliers(ITEM, ANNOTATOR, n_annotators=3, n_classes=3)
    outliers.weight.data = scale * torch.randn(5, 3, generator=generator)
    centred = outliers.weight.detach().double().numpy()
    centred = centred - centred.mean(axis=1, keepdims=True)
    by_pair = dict(zip(PAIRS, centred, strict=True))
    return OutlierConfusion(nominal, outliers), matrices.double().numpy(), by_pair


def shift(matrix, outlier):
    shifted = np.clip(matrix + outlier, 1e-10, 1 - 1e-10)
    return shifted / shifted.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("scale", [0.1, 3.0], ids=["small", "clipped"])
def test_labels_have_the_matrix_plus_their_outlier(scale):
    model, matrices, by_pair = random_model(scale)
    label = torch.tensor([2, 0, 1, 1, 0])
    found = model.log_likelihood(ANNOTATOR, label, ITEM).exp().detach().numpy()
    for row, pair in enumerate(zip(ITEM.tolist(), ANNOTATOR.tolist(), strict=True)):
        expected = shift(matrices[pair[1]], by_pair[pair])[:, label[row]]
        np.testing.assert_allclose(found[row], expected, rtol=1e-4, atol=1e-9)


def test_pairs_without_a_label_have_no_outlier():
    model, matrices, _ = random_model()
    item, annotator, label = torch.tensor([[0, 2, 9], [2, 0, 2], [0, 1, 2]])
    found = model.log_likelihood(annotator, label, item).exp().detach().numpy()
    np.testing.assert_allclose(found, matrices[annotator, :, label], rtol=1e-4)


def test_matrices_include_the_mean_outlier_of_the_items():
    model, matrices, by_pair = random_model()
    mean = (by_pair[0, 0] + by_pair[3, 0]) / 2
    np.testing.assert_allclose(model.matrices()[0], shift(matrices[0], mean), rtol=1e-4)
    some = model.matrices(torch.tensor([0, 2]), torch.tensor([3]))
    np.testing.assert_allclose(some[0], shift(matrices[0], by_pair[3, 0]), rtol=1e-4)
    np.testing.assert_allclose(some[1], shift(matrices[2], by_pair[3, 2]), rtol=1e-4)
    none = model.matrices(items=torch.tensor([2]))
    np.testing.assert_allclose(none, matrices, rtol=1e-4)
    without = model.log_likelihood(torch.tensor([0]), torch.tensor([1]))
    torch.testing.assert_close(without.exp()[0], model.matrices()[0, :, 1])


def test_a_repeated_pair_has_one_outlier():
    outliers = LabelOutliers(torch.tensor([4, 4]), torch.tensor([1, 1]), 2, 3)
    assert outliers.weight.shape == (1, 3)


def test_many_outliers_have_sparse_gradients_with_the_same_values(monkeypatch):
    gradients = []
    for above in (0, 100):
        monkeypatch.setattr(module, "SPARSE_ABOVE", above)
        outliers = random_model()[0].outliers
        (outliers(ITEM[:3], ANNOTATOR[:3]) * torch.arange(9.0).view(3, 3)).square().sum().backward()
        gradients.append(outliers.weight.grad)
    assert gradients[0].is_sparse
    assert not gradients[1].is_sparse
    torch.testing.assert_close(gradients[0].to_dense(), gradients[1])


def test_labels_are_taken_in_parts(monkeypatch):
    model, _, _ = random_model()
    label = torch.tensor([2, 0, 1, 1, 0])
    whole = model.log_likelihood(ANNOTATOR, label, ITEM)
    monkeypatch.setattr(module, "LABELS_AT_ONCE", 2)
    torch.testing.assert_close(model.log_likelihood(ANNOTATOR, label, ITEM), whole)
    assert model.log_likelihood(ANNOTATOR[:0], label[:0], ITEM[:0]).shape == (0, 3)
