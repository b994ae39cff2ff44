"""Simulated annotators with known confusion matrices, labels and features."""

from annotrace.simulate.annotators import cifar10_annotators, hammer_spammers, pairwise_flippers
from annotrace.simulate.features import gaussian_features
from annotrace.simulate.labelling import assign_annotators, simulate_labels
from annotrace.simulate.regions import failing_regions, simulate_regional_labels

__all__ = [
    "assign_annotators",
    "cifar10_annotators",
    "failing_regions",
    "gaussian_features",
    "hammer_spammers",
    "pairwise_flippers",
    "simulate_labels",
    "simulate_regional_labels",
]
