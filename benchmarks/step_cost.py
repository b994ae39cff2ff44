"""Cost of a crowd step against a plain one, and memory of a label table.

A step does what training does: find the batch and its labels, forward, backward, optimisers. The
plain step takes its batch from the same table. Steps are timed in turn, many times in one run, and
the fastest of each counts: other processes can only make a step slower.

    python benchmarks/step_cost.py [--repeats 2000] [--threads 1]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from itertools import cycle

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from annotrace.crowd import Confusion, trace_regularized_nll
from annotrace.data import ArraySource
from annotrace.labels import LabelTable
from annotrace.networks import mlp, resnet9
from annotrace.training import Batch, CrowdData, RowAdam

ITEMS, LABELS_PER_ITEM, CLASSES = 64, 5, 10
BATCHES = 50
Step = Callable[[], None]


def random_data(shape: tuple[int, ...], n_annotators: int) -> CrowdData:
    rng = np.random.default_rng(0)
    n_items = ITEMS * BATCHES
    item = np.repeat(np.arange(n_items), LABELS_PER_ITEM)
    table = LabelTable.from_codes(
        item,
        rng.integers(n_annotators, size=len(item)),
        rng.integers(CLASSES, size=len(item)),
        n_items=n_items,
        n_annotators=n_annotators,
        n_classes=CLASSES,
    )
    X = rng.normal(size=(n_items, *shape)).astype(np.float32)
    return CrowdData(ArraySource(X), table, torch.device("cpu"))


def make_step(
    data: CrowdData, loss_of: Callable[[Batch], Tensor], optimizers: list[Optimizer]
) -> Step:
    """Return a step that takes the next batch at every call."""
    batches = cycle(torch.arange(ITEMS * BATCHES).split(ITEMS))

    def step() -> None:
        loss = loss_of(data.batch(next(batches)))
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()

    return step


def plain_step(network: nn.Module, data: CrowdData) -> Step:
    """Return a step of cross-entropy with Adam."""
    truth = torch.randint(CLASSES, (ITEMS * BATCHES,))
    adam = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    return make_step(
        data, lambda batch: F.cross_entropy(network(batch.inputs), truth[batch.item]), [adam]
    )


def crowd_step(network: nn.Module, data: CrowdData) -> Step:
    """Return a step of the paper's loss, with the same Adam, and `RowAdam` for the matrices."""
    counts = torch.from_numpy(data.table.labels_per_annotator())
    layer = Confusion(len(counts), CLASSES, sparse=True, frequency=counts / data.table.n_items)
    adam = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)

    def loss_of(batch: Batch) -> Tensor:
        logits = network(batch.inputs)
        return trace_regularized_nll(
            logits, layer, batch.row, batch.annotator, batch.label, lam=0.01
        )

    return make_step(data, loss_of, [adam, RowAdam(layer.parameters(), lr=1e-2)])


def seconds_in_turn(steps: dict[str, Step], repeats: int) -> dict[str, float]:
    """Time the steps in turn; return the fastest of each, after a warm-up."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for repeat in range(repeats + repeats // 10):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if repeat >= repeats // 10:
                taken[name].append(time.perf_counter() - start)
    return {name: min(times) for name, times in taken.items()}


def show(name: str, ratio: float, bar: float) -> None:
    print(f"{name:<60} {ratio:6.2f}  (at most {bar})  {'ok' if ratio <= bar else 'OVER'}")


def compare_steps(repeats: int) -> None:
    few, many = random_data((512,), 1_000), random_data((512,), 100_000)
    took = seconds_in_turn(
        {
            "plain": plain_step(mlp(512, CLASSES), few),
            "1,000": crowd_step(mlp(512, CLASSES), few),
            "100,000": crowd_step(mlp(512, CLASSES), many),
        },
        repeats,
    )
    print("  ".join(f"{name} {seconds * 1e6:.0f} us" for name, seconds in took.items()))
    show("mlp: 100,000 annotators against 1,000", took["100,000"] / took["1,000"], 1.3)
    show("mlp: crowd of 1,000 against plain cross-entropy", took["1,000"] / took["plain"], 2.5)
    show("mlp: crowd of 100,000 against plain cross-entropy", took["100,000"] / took["plain"], 2.5)
    images = random_data((3, 32, 32), 1_000)
    took = seconds_in_turn(
        {
            "plain": plain_step(resnet9(3, CLASSES), images),
            "crowd": crowd_step(resnet9(3, CLASSES), images),
        },
        max(10, repeats // 200),
    )
    show("resnet9: crowd of 1,000 against plain cross-entropy", took["crowd"] / took["plain"], 1.1)


def measure_table(n_items: int = 1_000_000, n_annotators: int = 10_000) -> None:
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(n_items, dtype=np.int32), LABELS_PER_ITEM)
    annotator = rng.integers(n_annotators, size=len(item), dtype=np.int32)
    label = rng.integers(CLASSES, size=len(item), dtype=np.int32)
    tracemalloc.start()
    table = LabelTable.from_codes(
        item, annotator, label, n_items=n_items, n_annotators=n_annotators, n_classes=CLASSES
    )
    held = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    print(f"table of {len(table):,} labels: nbytes {table.nbytes / 1e6:.0f} MB, held {held:.0f} MB")
    show("table: megabytes", max(held, table.nbytes / 1e6), 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    compare_steps(options.repeats)
    measure_table()


if __name__ == "__main__":
    main()
