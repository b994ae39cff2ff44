"""Bags of codes are indexed like the rows of the sparse matrix that they come from."""

import pytest
import torch
from scipy import sparse

from annotrace.networks.bags import Bags

MATRIX = sparse.csr_array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 0, 0]], dtype="float32")


def dense(bags):
    rows = torch.zeros(len(bags), 4)
    row = torch.repeat_interleave(bags.sizes)
    return rows.index_put_((row, bags.code.long()), bags.count, accumulate=True)


@pytest.mark.parametrize("rows", [torch.tensor([2, 0, 1, 2]), torch.tensor([1]), slice(1, 3)])
def test_rows_are_those_of_the_matrix(rows):
    bags = Bags.from_matrix(MATRIX)
    torch.testing.assert_close(dense(bags), torch.from_numpy(MATRIX.toarray()))
    torch.testing.assert_close(dense(bags[rows]), torch.from_numpy(MATRIX.toarray())[rows])


def test_no_rows():
    none = Bags.from_matrix(MATRIX)[torch.empty(0, dtype=torch.long)]
    assert (len(none), none.sizes.tolist()) == (0, [])
