"""Trainings by several processes: they begin alike, whatever each has drawn before."""

import json

import numpy as np
import torch
from several_processes import call_in_all
from torch import nn

from annotrace.data import ArraySource
from annotrace.distributed import joined
from annotrace.labels import LabelTable
from annotrace.training import CrowdData, Randomness, Settings, train

N_ITEMS = 15
CPU = torch.device("cpu")


def train_twice():
    """Train a network with dropout, then another one; print the weights of the second."""
    with joined():
        table = LabelTable.from_codes(np.arange(N_ITEMS), np.zeros(N_ITEMS, int), [0, 1, 1] * 5)
        X = np.random.default_rng(0).normal(size=(N_ITEMS, 4))
        data = CrowdData(ArraySource(X), table, CPU, Randomness(7, CPU, lends=True))
        _train(data)
        print(json.dumps([each.tolist() for each in _train(data).parameters()]))


def _train(data):
    with data.random.lent():
        network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 2))

    def objective(batch):
        batch = data.share(batch)
        return nn.functional.cross_entropy(network(batch.inputs), batch.label)

    train(network, objective, data, torch.arange(N_ITEMS), Settings(epochs=2, batch_size=5))
    return network


def test_processes_train_the_same_network_after_dropout_in_an_earlier_one(tmp_path):
    first, second = call_in_all(2, train_twice, tmp_path)
    assert first.code == second.code == 0, first.errors
    assert first.output == second.output != ""
