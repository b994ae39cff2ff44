import numpy as np
import pytest

from annotrace.diagnosis import rank_suspects
from annotrace.errors import InputError
from annotrace.labels import LabelTable


def test_labels_are_ranked_by_how_likely_they_are_wrong():
    table = LabelTable.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 1], n_classes=2)
    posterior = np.array([[0.9, 0.1], [0.4, 0.6]])
    assert rank_suspects(table, posterior).tolist() == [1, 2, 0]
    assert rank_suspects(table, posterior, 1).tolist() == [1]
    with pytest.raises(InputError, match="Expected `n` to be 0 or more, but got -3"):
        rank_suspects(table, posterior, -3)
