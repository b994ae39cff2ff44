"""A few coordinates of items: what an annotator's errors may depend on."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

N_DIMS = 8
SAMPLE = 10_000
"""Rows from which the principal components are computed."""


class ItemSpace(nn.Module):
    """The first principal components of standardised rows, each with a standard deviation of 1.

    Parameters
    ----------
    width : int
        Length of a row.
    """

    mean: Tensor
    std: Tensor
    components: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.n_dims = min(N_DIMS, width)
        self.register_buffer("mean", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("std", torch.ones(width, dtype=torch.float64))
        self.register_buffer("components", torch.zeros(width, self.n_dims, dtype=torch.float64))

    def fit(self, rows: Tensor) -> ItemSpace:
        """Compute the components of rows (n_rows, width); those that do not vary are 0."""
        from sklearn.utils.extmath import randomized_svd

        some = torch.linspace(0, len(rows) - 1, min(SAMPLE, len(rows))).long()
        sample = rows[some].cpu().double()
        self.mean, std = sample.mean(0), sample.std(0, correction=0)
        self.std = torch.where(std > 0, std, 1.0)
        standard = ((sample - self.mean) / self.std).numpy()
        _, values, components = randomized_svd(standard, self.n_dims, random_state=0)
        spread = values / np.sqrt(len(standard))
        known = spread > 1e-6 * max(float(spread.max()), 1e-12)
        scaled = np.where(known, 1 / np.where(known, spread, 1), 0)[:, None] * components
        self.components = torch.zeros(rows.shape[1], self.n_dims, dtype=torch.float64)
        self.components[:, : len(scaled)] = torch.from_numpy(scaled.T.copy())
        return self

    def forward(self, rows: Tensor) -> Tensor:
        """Return the coordinates of rows (n_rows, width), shape (n_rows, n_dims)."""
        return ((rows.cpu().double() - self.mean.cpu()) / self.std.cpu()) @ self.components.cpu()
