import numpy as np
import pytest
import torch

from annotrace.data import ArraySource
from annotrace.labels import LabelTable
from annotrace.training import CrowdData
from annotrace.training.batches import as_tensor

CPU = torch.device("cpu")


def random_table(rng, n_items=30, n_labels=60):
    return LabelTable.from_codes(
        rng.integers(n_items, size=n_labels),
        rng.integers(7, size=n_labels),
        rng.integers(3, size=n_labels),
        n_items=n_items,
        n_annotators=7,
        n_classes=3,
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_has_exactly_the_labels_of_its_items(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng)
    X = rng.normal(size=(30, 2))
    items = torch.from_numpy(rng.permutation(30))
    batches = list(CrowdData(ArraySource(X), table, CPU).batches(items, 8))
    assert [len(batch.item) for batch in batches] == [8, 8, 8, 6]
    assert torch.equal(torch.cat([batch.item for batch in batches]), items)
    for batch in batches:
        expected = [
            (row, *labels)
            for row, item in enumerate(batch.item.tolist())
            for labels in sorted(
                zip(
                    table.annotator[table.item == item].tolist(),
                    table.label[table.item == item].tolist(),
                    strict=True,
                )
            )
        ]
        found = torch.stack([batch.row, batch.annotator, batch.label], dim=1)
        assert [tuple(triple) for triple in found.tolist()] == expected
        np.testing.assert_allclose(batch.inputs, X[batch.item], rtol=1e-6)


class Lazy:
    """A source that loads on demand and records the requests."""

    shape, items = (4, 4), None

    def __init__(self):
        self.requests = []

    def __len__(self):
        return 30

    def load(self, positions):
        self.requests.append(positions.tolist())
        return np.broadcast_to(positions[:, None, None], (len(positions), 4, 4)).astype(np.uint8)


def test_other_sources_are_loaded_batch_by_batch():
    source = Lazy()
    data = CrowdData(source, random_table(np.random.default_rng(0)), CPU)
    assert source.requests == []
    batch = data.batch(torch.tensor([5, 2]))
    assert source.requests == [[5, 2]]
    assert batch.inputs.dtype == torch.uint8
    assert batch.inputs[:, 0, 0].tolist() == [5, 2]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("u1", torch.uint8),
        ("f2", torch.float16),
        ("f4", torch.float32),
        (">f4", torch.float32),
        ("f8", torch.float32),
        (">f8", torch.float32),
        ("g", torch.float32),
        ("?", torch.float32),
        ("u2", torch.float32),
        ("i8", torch.float32),
    ],
)
def test_arrays_keep_their_type_if_torch_supports_it(stored, expected):
    array = np.array([[0, 1], [1, 0]], dtype=stored)
    array.flags.writeable = False
    tensor = as_tensor(array)
    assert tensor.dtype == expected
    assert tensor.tolist() == [[0, 1], [1, 0]]


def test_a_function_is_applied_to_all_items_in_order(monkeypatch):
    monkeypatch.setattr("annotrace.training.batches.EVALUATION_BATCH", 8)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)).astype(np.float32)
    data = CrowdData(ArraySource(X), random_table(rng), CPU)
    sizes = []

    def double(item):
        sizes.append(len(item))
        return 2 * data.inputs(item)

    np.testing.assert_array_equal(data.map(double), 2 * X)
    assert sizes == [8, 8, 8, 6]
