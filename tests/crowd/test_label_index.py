import numpy as np
import pytest
import torch

from annotrace.crowd import LabelIndex, label_index
from annotrace.crowd.label_index import FLOAT64_UP_TO
from annotrace.labels import LabelTable

SIZES = N_ROWS, N_ANNOTATORS, N_CLASSES = 7, 4, 3


@pytest.fixture
def codes():
    """Forty labels, several by one annotator of one item; row 6 has none."""
    generator = torch.Generator().manual_seed(0)
    sizes = (N_ROWS - 1, N_ANNOTATORS, N_CLASSES)
    return [torch.randint(size, (40,), generator=generator) for size in sizes]


def make_index(codes, kind):
    if kind == "table":
        parts = (part.numpy() for part in codes)
        names = ("n_items", "n_annotators", "n_classes")
        table = LabelTable.from_codes(*parts, **dict(zip(names, SIZES, strict=True)))
        return LabelIndex.from_table(table)
    return LabelIndex(*codes, *SIZES, tabulate=kind == "tabulated")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["plain", "tabulated", "table"])
@pytest.mark.parametrize("n_states", [3, 6])
@pytest.mark.parametrize("part", [label_index.LARGE, 10, 1])
def test_sums_are_those_of_a_loop(codes, kind, n_states, dtype, part, monkeypatch):
    """Also if more than a part of the numbers are summed in parts."""
    monkeypatch.setattr(label_index, "LARGE", part)
    labels = make_index(codes, kind)
    start = torch.randn(N_ROWS, n_states, dtype=dtype)
    matrices = torch.randn(N_ANNOTATORS, n_states, N_CLASSES, dtype=dtype)
    sums, counts = torch.zeros_like(start), torch.zeros_like(matrices)
    for row, annotator, label in zip(*codes, strict=True):
        sums[row] += matrices[annotator, :, label]
        counts[annotator, :, label] += start[row]
    torch.testing.assert_close(labels.sum_matrices(matrices), sums)
    torch.testing.assert_close(labels.sum_matrices(matrices, start), start + sums)
    torch.testing.assert_close(labels.counts(start), counts)


@pytest.mark.parametrize("kind", ["plain", "tabulated", "table"])
def test_sums_have_the_gradient_of_a_loop(codes, kind):
    labels = make_index(codes, kind)
    matrices = torch.randn(N_ANNOTATORS, N_CLASSES, N_CLASSES, requires_grad=True)
    weight = torch.randn(N_ROWS, N_CLASSES)
    (labels.sum_matrices(matrices) * weight).sum().backward()
    torch.testing.assert_close(matrices.grad, labels.counts(weight))


def test_values_are_summed_over_the_labels_of_an_item(codes):
    values = torch.randn(40, 2, dtype=torch.float64)
    expected = torch.zeros(N_ROWS, 2, dtype=torch.float64)
    for row, value in zip(codes[0], values, strict=True):
        expected[row] += value
    torch.testing.assert_close(make_index(codes, "plain").sum_by_item(values), expected)


def test_an_item_is_its_row_unless_given(codes):
    assert make_index(codes, "plain").item.tolist() == list(range(N_ROWS))
    item = torch.arange(N_ROWS) + 100
    assert LabelIndex(*codes, *SIZES, item=item).item is item


def test_many_labels_are_summed_in_single_precision():
    few, many = (torch.zeros(n, dtype=torch.long) for n in (FLOAT64_UP_TO, FLOAT64_UP_TO + 1))
    assert LabelIndex(few, few, few, 1, 1, 2).dtype == torch.float64
    assert LabelIndex(many, many, many, 1, 1, 2).dtype == torch.float32


def test_half_precision_around_the_sums_does_not_round_them(codes):
    log_p = torch.randn(N_ROWS, N_CLASSES)
    matrices = torch.randn(N_ANNOTATORS, N_CLASSES, N_CLASSES)
    labels = make_index(codes, "tabulated")
    plain = labels.sum_matrices(matrices, log_p), labels.counts(log_p)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = labels.sum_matrices(matrices, log_p), labels.counts(log_p)
    assert all(torch.equal(a, b) for a, b in zip(plain, half, strict=True))


def test_a_table_without_labels_has_empty_sums():
    table = LabelTable.from_codes([], [], [], n_items=2, n_annotators=3, n_classes=2)
    labels = LabelIndex.from_table(table)
    assert not labels.sum_matrices(torch.ones(3, 2, 2)).any()
    assert not labels.counts(torch.from_numpy(np.ones((2, 2)))).any()


@pytest.mark.parametrize("part", [label_index.LARGE, 7])
def test_votes_are_weights_added_one_by_one(codes, part, monkeypatch):
    monkeypatch.setattr(label_index, "LARGE", part)
    weights = torch.tensor([0.5, -1.0, 2.0, 0.25], dtype=torch.float64)
    expected = torch.zeros(N_ROWS, N_CLASSES, dtype=torch.float64)
    for row, annotator, label in zip(*codes, strict=True):
        expected[row, label] += weights[annotator]
    torch.testing.assert_close(make_index(codes, "plain").sum_votes(weights), expected)
