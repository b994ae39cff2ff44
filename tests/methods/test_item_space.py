import numpy as np
import torch
from sklearn.decomposition import PCA

from annotrace.methods.item_space import N_DIMS, ItemSpace


def test_coordinates_are_whitened_principal_components():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12)) @ rng.normal(size=(12, 12)) + 5
    space = ItemSpace(12).fit(torch.from_numpy(X))
    standard = (X - X.mean(0)) / X.std(0)
    expected = PCA(N_DIMS, svd_solver="full").fit_transform(standard)
    expected /= expected.std(0)
    found = space(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(np.abs((found * expected).mean(0)), 1, atol=1e-3)
    np.testing.assert_allclose(found.std(0), 1, atol=1e-6)


def test_what_does_not_vary_has_coordinates_of_zero():
    X = torch.zeros(20, 3)
    X[:, 0] = torch.arange(20)
    found = ItemSpace(3).fit(X)(X)
    assert torch.isfinite(found).all()
    assert (found[:, 1:] == 0).all()
    assert ItemSpace(3).fit(X[:1])(X).abs().max() == 0


def test_fewer_rows_than_dimensions_are_allowed():
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 30)))
    assert ItemSpace(30).fit(X)(X).shape == (4, N_DIMS)
