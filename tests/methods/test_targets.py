import numpy as np
import torch

from annotrace.labels import LabelTable
from annotrace.methods.targets import majority_targets


def test_the_target_is_the_majority_and_ties_follow_the_seed():
    item = np.repeat(np.arange(50), 2)
    table = LabelTable.from_codes(
        [*item, 50, 50, 50], [*np.tile([0, 1], 50), 0, 1, 2], [*np.tile([0, 1], 50), 1, 1, 0]
    )
    first, again, other = (majority_targets(table, seed) for seed in (0, 0, 1))
    assert first[50].tolist() == [0, 1]
    np.testing.assert_array_equal(first.sum(1), 1)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
