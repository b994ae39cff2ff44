import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from annotrace.methods.item_space import N_COMPONENTS, ItemSpace


def test_coordinates_are_principal_components_relative_to_the_first():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 32)) @ rng.normal(size=(32, 32)) + 5
    standard = (X - X.mean(0)) / X.std(0)
    expected = PCA(N_COMPONENTS, svd_solver="full").fit_transform(standard)
    expected /= expected[:, 0].std()
    found = ItemSpace(32).fit(torch.from_numpy(X))(torch.from_numpy(X)).numpy()[:, :-1]
    # The last components of a randomized decomposition are approximate.
    first = slice(8)
    signs = np.sign((found * expected).sum(0))
    np.testing.assert_allclose(found[:, first], (signs * expected)[:, first], atol=0.02)
    assert np.all(np.diff(found.std(0)) < 0)


def test_the_last_coordinate_is_the_standardised_squared_distance_from_the_mean():
    X = np.random.default_rng(0).normal(size=(50, 4)) * [1, 2, 3, 4] + 7
    squared = (((X - X.mean(0)) / X.std(0)) ** 2).sum(1)
    found = ItemSpace(4).fit(torch.from_numpy(X))(torch.from_numpy(X)).numpy()[:, -1]
    np.testing.assert_allclose(found, (squared - squared.mean()) / squared.std(), atol=1e-9)


def test_a_ball_is_a_half_space_of_the_coordinates():
    X = np.random.default_rng(0).normal(size=(400, 3))
    distance = np.linalg.norm((X - X.mean(0)) / X.std(0) - [1.0, 0.0, 0.0], axis=1)
    inside = distance < np.median(distance)
    items = ItemSpace(3).fit(torch.from_numpy(X))(torch.from_numpy(X)).numpy()
    linear = LogisticRegression(C=1e6, max_iter=1000)
    assert linear.fit(items, inside).score(items, inside) > 0.99
    assert linear.fit(items[:, :-1], inside).score(items[:, :-1], inside) < 0.9


def test_what_does_not_vary_has_coordinates_of_zero():
    X = torch.zeros(20, 3)
    X[:, 0] = torch.arange(20)
    found = ItemSpace(3).fit(X)(X)
    assert torch.isfinite(found).all()
    assert (found[:, 1:-1].abs() < 1e-9).all()
    assert ItemSpace(3).fit(X[:1])(X[:1]).abs().max() == 0


def test_fewer_rows_than_dimensions_are_allowed():
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 30)))
    found = ItemSpace(30).fit(X)(X)
    assert found.shape == (4, N_COMPONENTS + 1)
    assert torch.isfinite(found).all()
