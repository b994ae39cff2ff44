"""Random layers and labels that the tests of the likelihood share."""

import numpy as np
import torch

from annotrace.crowd import Confusion

PARAMETRIZATIONS = ("softplus", "softmax")


def random_labels(rng, n_rows, n_annotators, n_classes, missing=0.6):
    """Labels as triplets (row, annotator, label); some rows have none."""
    row, annotator = np.nonzero(rng.random((n_rows, n_annotators)) > missing)
    label = rng.integers(n_classes, size=len(row))
    return tuple(torch.from_numpy(part) for part in (row, annotator, label))


def random_layer(rng, n_annotators=5, n_classes=4, dtype=torch.float64, **options):
    layer = Confusion(n_annotators, n_classes, **options).to(dtype)
    weight = torch.from_numpy(rng.normal(0, 2, (n_annotators, n_classes, n_classes)))
    layer.weight.data.copy_(weight)
    return layer


def frequency_of(annotator, n_annotators, n_rows):
    return torch.bincount(annotator, minlength=n_annotators) / n_rows


def gradients(loss, *inputs):
    return [
        grad.to_dense() if grad.is_sparse else grad for grad in torch.autograd.grad(loss, inputs)
    ]
