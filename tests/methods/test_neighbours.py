import numpy as np
import pytest
import torch
from crowds import blobs
from sklearn.neighbors import NearestNeighbors

import annotrace as at
from annotrace.methods.neighbours import NEIGHBOURS, UNSEEN, neighbour_loss


def test_the_loss_is_that_of_an_independent_neighbour_search():
    rng = np.random.default_rng(0)
    rows, votes = rng.normal(size=(60, 3)), rng.integers(3, size=(60, 4))
    search = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(rows)
    near = search.kneighbors(return_distance=False)
    shares = votes[near].sum(1) + UNSEEN
    shares /= shares.sum(1, keepdims=True)
    expected = -(votes * np.log(shares)).sum() / votes.sum()
    found = neighbour_loss(torch.from_numpy(rows), torch.from_numpy(votes))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("n_items", [1, 2, 3])
def test_few_items_and_no_labels_have_a_finite_loss(n_items):
    loss = neighbour_loss(torch.zeros(n_items, 2), torch.zeros(n_items, 3))
    assert loss == 0


@pytest.mark.parametrize(("noise", "scaling"), [(100.0, "feature"), (0.01, "common")])
def test_a_fast_search_scales_features_as_neighbours_tell(noise, scaling):
    # Twenty features of noise beside two of the class: their unit is large, or tells how little
    # they matter.
    X, _, table, _ = blobs(n_items=200, skill=0.8, labels_per_item=2)
    rng = np.random.default_rng(0)
    wide = np.hstack([X, noise * rng.normal(size=(len(X), 20))])
    model = at.CrossFittedEM(effort="fast", epochs=1, random_state=0).fit(wide, table)
    assert {trial["scaling"] for trial in model.search_} == {scaling}


def test_fast_steps_give_way_to_a_batch_size_and_a_rate_of_the_user():
    X, _, table, _ = blobs(n_items=700, labels_per_item=1)
    seen = []

    class Noted(at.CrossFittedEM):
        def _train_networks(self, data, candidate, settings, *args):
            seen.append((settings.batch_size, settings.lr))
            return super()._train_networks(data, candidate, settings, *args)

    for given in ({}, {"batch_size": 32, "lr": 1e-4}):
        Noted(effort="fast", epochs=1, random_state=0, **given).fit(X, table)
    assert set(seen) == {(128, 2e-3), (32, 1e-4)}
