import numpy as np
import pytest
from references import random_table

from annotrace.labels import LabelTable


@pytest.fixture
def crowd():
    """A crowd of six annotators on thirty items of three classes."""
    item, annotator, label, truth = random_table(np.random.default_rng(0))
    return LabelTable.from_codes(item, annotator, label, truth=truth)
