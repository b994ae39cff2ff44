"""Rows of a sparse matrix of counts, as tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Bags:
    """Bags of codes: what texts are to a network.

    Indexed like a tensor whose first dimension is the rows.

    Attributes
    ----------
    code : IntTensor of shape (n_entries,)
    count : Tensor of shape (n_entries,)
        How often the code occurs in its bag.
    offsets : LongTensor of shape (n_rows + 1,)
        The entries of row k are ``offsets[k]`` to ``offsets[k + 1]``.
    """

    code: Tensor
    count: Tensor
    offsets: Tensor

    @classmethod
    def from_matrix(cls, matrix: Any) -> Bags:
        """Convert a scipy.sparse.csr_array of shape (n_rows, n_codes)."""
        return cls(
            torch.from_numpy(matrix.indices.astype(np.int32)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            torch.from_numpy(matrix.indptr.astype(np.int64)),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: Tensor | slice) -> Bags:
        if isinstance(rows, slice):
            rows = torch.arange(len(self), device=self.device)[rows]
        return self.index_select(0, rows)

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.code.device

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Codes, counts and offsets."""
        return self.code, self.count, self.offsets

    @property
    def sizes(self) -> Tensor:
        """Number of entries of each row, shape (n_rows,)."""
        return self.offsets.diff()

    def index_select(self, dim: int, rows: Tensor) -> Bags:
        """Select rows, LongTensor of shape (n,); `dim` is 0, as for a tensor."""
        assert dim == 0
        start = self.offsets[rows]
        sizes = self.offsets[rows + 1] - start
        offsets = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        entry = torch.repeat_interleave(start - offsets[:-1], sizes)
        entry += torch.arange(len(entry), device=self.device)
        # Much faster than indexing on a CPU.
        code, count = (part.index_select(0, entry) for part in (self.code, self.count))
        return Bags(code, count, offsets)

    def to(self, device: torch.device) -> Bags:
        """Copy the tensors to a device."""
        return Bags(self.code.to(device), self.count.to(device), self.offsets.to(device))

    def cpu(self) -> Bags:
        """Copy the tensors to the CPU."""
        return self.to(torch.device("cpu"))
