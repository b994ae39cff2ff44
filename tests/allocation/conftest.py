"""Models to allocate with."""

import numpy as np
import pytest

import annotrace as at
from annotrace.crowd.result import CrowdResult


@pytest.fixture
def fitted():
    """A function that makes a model with a given posterior."""

    def make(table, posterior):
        posterior, model = np.asarray(posterior, float), at.aggregation.MajorityVote()
        model.result_ = CrowdResult(
            table,
            posterior,
            posterior.argmax(axis=1),
            None,
            prior=posterior.mean(axis=0),
            gold=np.full(table.n_items, -1, np.int32),
        )
        return model

    return make


@pytest.fixture(scope="session")
def model():
    """300 items of three classes, three labels each; annotator 0 is perfect, 5 a spammer."""
    skill = np.array([1.0, 0.8, 0.6, 0.5, 0.4, 0.0])[:, None, None]
    crowd = skill * np.eye(3) + (1 - skill) / 3
    truth = np.arange(300) % 3
    table = at.simulate.simulate_labels(truth, crowd, labels_per_item=3, random_state=0)
    return at.aggregation.make("dawid-skene").fit(table)
