import numpy as np
import pytest

from annotrace.allocation.annotators import pooled_matrices
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels


def test_matrices_are_found_where_labels_are_many():
    truth = np.arange(6000) % 3
    crowd = np.concatenate([hammer_spammers(2, 3, skill, random_state=0) for skill in (0.9, 0.3)])
    table = simulate_labels(truth, crowd, random_state=0)
    assert pooled_matrices(table, np.eye(3)[truth]) == pytest.approx(crowd, abs=0.03)


def test_few_labels_do_not_make_an_expert():
    # Forty are right four times out of five; the last has two labels, both right.
    rng = np.random.default_rng(0)
    truth = np.arange(400) % 2
    label = np.where(rng.random((400, 40)) < 0.8, truth[:, None], 1 - truth[:, None])
    wide = np.full((400, 41), -1)
    wide[:, :40] = label
    wide[:2, 40] = truth[:2]
    table = LabelTable.from_wide(wide)
    matrices = pooled_matrices(table, np.eye(2)[truth], n_new=1)
    assert matrices.shape == (42, 2, 2)
    assert matrices.sum(axis=2) == pytest.approx(np.ones((42, 2)))
    assert np.all(matrices[40].diagonal() < 0.85)
    assert matrices[41] == pytest.approx(np.array([[0.8, 0.2], [0.2, 0.8]]), abs=0.02)
