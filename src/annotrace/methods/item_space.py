"""A few coordinates of items: what an annotator's errors may depend on."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

N_COMPONENTS = 20
SAMPLE = 10_000
"""Rows from which the principal components are computed."""


class ItemSpace(nn.Module):
    r"""The first principal components of standardised rows, and their distance from the mean row.

    The first component has a standard deviation of 1, and the others keep their size relative to
    it: a ridge penalty on slopes along them is one on directions in feature space, so that many of
    them do no harm. The squared distance, standardised, makes balls linear::

        |x - c|^2 = |x|^2 - 2 c . x + |c|^2

    Parameters
    ----------
    width : int
        Length of a row.
    """

    mean: Tensor
    std: Tensor
    components: Tensor
    distance: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        n_components = min(N_COMPONENTS, width)
        self.n_dims = n_components + 1
        self.register_buffer("mean", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("std", torch.ones(width, dtype=torch.float64))
        self.register_buffer("components", torch.zeros(width, n_components, dtype=torch.float64))
        # Mean and standard deviation of the squared distance.
        self.register_buffer("distance", torch.tensor([0.0, 1.0], dtype=torch.float64))

    def fit(self, rows: Tensor) -> ItemSpace:
        """Compute mean, spread and components of rows (n_rows, width)."""
        some = torch.linspace(0, len(rows) - 1, min(SAMPLE, len(rows))).long()
        sample = rows[some].cpu().double()
        self.mean, self.std = sample.mean(0), _deviation(sample)
        standard = (sample - self.mean) / self.std
        self.components = _components(standard, self.n_dims - 1)
        squared = standard.square().sum(1)
        self.distance = torch.stack([squared.mean(), _deviation(squared)])
        return self

    def forward(self, rows: Tensor) -> Tensor:
        """Return the coordinates of rows (n_rows, width), shape (n_rows, n_dims)."""
        standard = (rows.cpu().double() - self.mean.cpu()) / self.std.cpu()
        centre, spread = self.distance.cpu()
        distance = (standard.square().sum(1, keepdim=True) - centre) / spread
        return torch.cat([standard @ self.components.cpu(), distance], 1)


def _deviation(values: Tensor) -> Tensor:
    """Return the standard deviation along the first dimension, 1 where nothing varies."""
    std = values.std(0, correction=0)
    return torch.where(std > 1e-12, std, torch.ones_like(std))


def _components(standard: Tensor, n_components: int) -> Tensor:
    """Return principal axes over the largest standard deviation, (width, n_components)."""
    from sklearn.utils.extmath import randomized_svd

    _, values, axes = randomized_svd(standard.numpy(), n_components, random_state=0)
    largest = float(values.max()) / np.sqrt(len(standard))
    components = torch.zeros(standard.shape[1], n_components, dtype=torch.float64)
    if largest > 1e-12:
        components[:, : len(axes)] = torch.from_numpy(axes.T / largest)
    return components
