import pytest
import torch

from annotrace.models.sayings import Sayings

N_ROWS, N_ANNOTATORS, N_CLASSES, N_LABELS = 7, 4, 3, 40


@pytest.fixture
def labels():
    generator = torch.Generator().manual_seed(0)
    sizes = (N_ROWS, N_ANNOTATORS, N_CLASSES)
    return [torch.randint(size, (N_LABELS,), generator=generator) for size in sizes]


@pytest.mark.parametrize("tabulate", [False, True])
def test_sums_are_those_of_a_loop(labels, tabulate):
    sayings = Sayings(*labels, N_ROWS, N_ANNOTATORS, N_CLASSES, tabulate=tabulate)
    log_p = torch.randn(N_ROWS, N_CLASSES, dtype=torch.float64)
    log_matrices = torch.randn(N_ANNOTATORS, N_CLASSES, N_CLASSES, dtype=torch.float64)
    evidence = log_p.clone()
    counts = torch.zeros(N_ANNOTATORS, N_CLASSES, N_CLASSES, dtype=torch.float64)
    for row, annotator, label in zip(*labels, strict=True):
        evidence[row] += log_matrices[annotator, :, label]
        counts[annotator, :, label] += log_p[row]
    torch.testing.assert_close(sayings.evidence(log_p, log_matrices), evidence)
    torch.testing.assert_close(sayings.counts(log_p), counts)


def test_half_precision_around_the_sums_does_not_round_them(labels):
    log_p = torch.randn(N_ROWS, N_CLASSES)
    log_matrices = torch.randn(N_ANNOTATORS, N_CLASSES, N_CLASSES)
    sayings = Sayings(*labels, N_ROWS, N_ANNOTATORS, N_CLASSES, tabulate=True)
    plain = sayings.evidence(log_p, log_matrices), sayings.counts(log_p)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = sayings.evidence(log_p, log_matrices), sayings.counts(log_p)
    assert all(torch.equal(a, b) for a, b in zip(plain, half, strict=True))
