"""Annotators with known confusion matrices, and who labels what."""

from annotrace.simulate.annotators import cifar10_annotators, hammer_spammers, pairwise_flippers
from annotrace.simulate.features import gaussian_features
from annotrace.simulate.labelling import allocate, simulate_labels

__all__ = [
    "allocate",
    "cifar10_annotators",
    "gaussian_features",
    "hammer_spammers",
    "pairwise_flippers",
    "simulate_labels",
]
