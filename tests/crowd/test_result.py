from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch

from annotrace.crowd import CrowdResult, FixedMatrices
from annotrace.labels import LabelTable

MATRICES = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]], [[0.3, 0.7]] * 2])


@pytest.fixture
def result():
    """Two annotators label one item each; a third has no labels."""
    return CrowdResult(
        table=LabelTable.from_codes([0, 1], [0, 1], [0, 1], n_annotators=3),
        posterior=np.array([[0.9, 0.1], [0.4, 0.6]]),
        estimate=np.array([0, 1]),
        annotator_model=FixedMatrices(MATRICES.double()),
        prior=np.array([0.5, 0.5]),
        gold=np.array([-1, -1], np.int32),
    )


def test_a_result_cannot_be_changed(result):
    with pytest.raises(FrozenInstanceError):
        result.posterior = None


def test_annotators_without_labels_have_the_pool(result):
    expected = MATRICES.numpy().copy()
    expected[2] = expected[:2].mean(0)
    np.testing.assert_allclose(result.matrices(), expected, rtol=1e-6)
    counts = np.zeros((3, 2, 2))
    counts[2] = 1
    np.testing.assert_allclose(replace(result, prior_counts=counts).matrices(), MATRICES)
    expected[2] = (5 * expected[0] + expected[1]) / 6
    of_the_first = replace(result, prior_counts=np.flip(counts, axis=0))
    np.testing.assert_allclose(of_the_first.matrices(), expected, rtol=1e-6)


def test_a_classifier_shows_in_the_prior(result):
    assert not result.has_classifier
    assert replace(result, prior=result.posterior).has_classifier


def test_annotators_are_modelled_if_there_are_a_model_and_two_classes(result):
    assert result.models_annotators
    assert not replace(result, annotator_model=None).models_annotators
    one_class = LabelTable.from_codes([0, 1], [0, 1], [0, 0])
    assert not replace(result, table=one_class).models_annotators


@pytest.mark.parametrize(
    ("changed", "comparable"),
    [
        ({}, False),
        ({"prior": np.full((2, 2), 0.5)}, True),
        ({"prior_counts": np.ones((3, 2, 2))}, True),
        ({"gold": np.array([-1, 0], np.int32)}, True),
        ({"table": LabelTable.from_codes([0, 0], [0, 1], [0, 1], n_annotators=3)}, True),
    ],
    ids=["one label per item", "classifier", "prior counts", "gold", "two labels of an item"],
)
def test_something_must_compare_annotators(result, changed, comparable):
    assert replace(result, **changed).is_comparable is comparable
