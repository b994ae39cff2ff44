"""Structures of confusion matrices: accuracy, time per iteration and memory.

    python benchmarks/structures.py annotators    # hierarchical, 100 to 100,000 annotators
    python benchmarks/structures.py classes       # 1,000 annotators x 50 to 1,000 classes
    python benchmarks/structures.py wide          # 100,000 items, 1,000 annotators x 100 classes
    python benchmarks/structures.py steps         # training steps
    python benchmarks/structures.py cifar100n     # 50,000 real labels, 519 annotators x 100 classes

Every measurement runs in a process of its own; those that are compared run in turn, and the fastest
of three counts, in processor time.
`--out results/structures.jsonl` appends the rows.

The labels of CIFAR-100N are real, one per image; the images are not at hand, so features are drawn:
`gaussian_features`, from which the best classifier finds .8 of the true classes. The error of
matrices is that of rows against the shares in which an annotator reported the images of a class,
weighted by how many images they are: over all images, and over the tenth that was held out, whose
labels the matrices have not learned.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import annotrace as at
from annotrace.crowd import STRUCTURES, trace_regularized_nll
from annotrace.crowd.problem import CrowdProblem
from annotrace.data import ArraySource
from annotrace.labels import LabelTable
from annotrace.networks import mlp
from annotrace.training import CrowdData, held_out_loss, parameter_groups
from annotrace.training.optimizers import make_optimizers

SIZES = {
    "annotators": [("hierarchical", {}, n, 10, 200_000) for n in (100, 1_000, 10_000, 100_000)],
    "classes": [
        ("dawid-skene", {"structure": structure, "taxonomy": "fives"}, 1_000, n, 40_000)
        for structure in ("per-class", "low-rank", "taxonomy")
        for n in (50, 200, 1_000)
    ],
}
WIDE = ("full", "pooled", "per-class", "low-rank", "auto")
REAL = ("full", "pooled", "low-rank", "per-class", "auto")
FEATURES, EPOCHS, REAL_BATCH = 0.8, 15, 256
STEPS = [
    *(("full", n, 10) for n in (10, 1_000, 100_000)),
    *(("low-rank", n, 10) for n in (10, 1_000, 100_000)),
    ("low-rank", 10_000, 1_000),
]
ITERATIONS = 18
BATCH, LABELS_PER_ITEM = 64, 5


def simulate(n_items: int, n_annotators: int, n_classes: int) -> tuple[LabelTable, np.ndarray]:
    """Return five labels per item by annotators with skills of Beta(6, 2.5), and the truth."""
    rng = np.random.default_rng(0)
    truth = rng.integers(n_classes, size=n_items)
    item = np.repeat(np.arange(n_items), LABELS_PER_ITEM)
    annotator = rng.integers(n_annotators, size=len(item))
    right = rng.random(len(item)) < rng.beta(6, 2.5, n_annotators)[annotator]
    label = np.where(right, truth[item], rng.integers(n_classes, size=len(item)))
    sizes = {"n_items": n_items, "n_annotators": n_annotators, "n_classes": n_classes}
    return LabelTable.from_codes(item, annotator, label, **sizes), truth


def time_iterations(
    method: str, params: dict[str, Any], n_annotators: int, n_classes: int, n_items: int
) -> dict[str, Any]:
    """Time iterations one by one; the median leaves out those that find supports anew."""
    table, truth = simulate(n_items, n_annotators, n_classes)
    if params.get("taxonomy"):
        params = params | {"taxonomy": {str(k): str(k // 5) for k in range(n_classes)}}
    model = at.aggregation.make(method, **params, max_iter=ITERATIONS, tol=0)
    seconds: list[float] = []
    fitted = record_iterations(model, seconds).fit_problem(CrowdProblem(table))
    return {
        "seconds": float(np.median(seconds)),
        "mean_seconds": float(np.mean(seconds)),
        "accuracy": float((fitted.result_.estimate == truth).mean()),
    }


def record_iterations(model: Any, seconds: list[float]) -> Any:
    """Make an aggregation note how long each iteration took."""
    before = [time.process_time()]
    has_converged = model._has_converged

    def noted(*args: Any) -> bool:
        seconds.append(time.process_time() - before[0])
        found = has_converged(*args)
        before[0] = time.process_time()
        return found

    model._has_converged = noted
    return model


def fit_wide(structure: str, workload: str) -> dict[str, Any]:
    """Fit a structure to the wide workload until it converges."""
    sys.path.insert(0, str(Path(workload).parent))
    from workload import gen

    made, confusion = gen(100_000, 1_000, 100, 5, feats=False)
    sizes = {"n_items": 100_000, "n_annotators": 1_000, "n_classes": 100}
    table = LabelTable.from_codes(made["item"], made["worker"], made["label"], **sizes)
    started = time.process_time()
    model = at.aggregation.make("dawid-skene", structure=structure, max_iter=40).fit(table)
    seconds = time.process_time() - started
    error = np.square(model.confusion_ - confusion).sum(axis=(1, 2)).mean() / 100
    return {
        "accuracy": float((model.predict() == made["truth"]).mean()),
        "cm_error": 100 * float(error),
        "seconds": seconds,
        "iterations": model.n_iter_,
        "chosen": model.structure_,
        "held_out_loss": model.structure_loss_,
    }


def fit_real(structure: str, labels: str) -> dict[str, Any]:
    """Train a network and annotators on the real labels of CIFAR-100N, one per image."""
    given = np.load(labels)
    truth, annotator, label = (given[name].astype(int) for name in ("clean", "worker", "noisy"))
    sizes = {"n_items": len(truth), "n_annotators": annotator.max() + 1, "n_classes": 100}
    table = LabelTable.from_codes(np.arange(len(truth)), annotator, label, **sizes)
    X = at.simulate.gaussian_features(truth, 100, accuracy=FEATURES, random_state=0)
    X_test = at.simulate.gaussian_features(truth, 100, accuracy=FEATURES, random_state=1)
    model = at.TraceRegularized(
        structure=structure,
        epochs=EPOCHS,
        batch_size=REAL_BATCH,
        recipe=at.Recipe(n_init=1, mixup=0.0, repair=False),
        random_state=0,
        device="cpu",
    )
    started = time.process_time()
    model.fit(X, table)
    seconds = time.process_time() - started
    unseen = model.held_out_items()
    return {
        "seconds": seconds,
        "accuracy": float((model.predict(X_test) == truth).mean()),
        "posterior_accuracy": float((model.posterior_.argmax(1) == truth).mean()),
        "cm_error": row_error(model.confusion_, annotator, truth, label),
        "held_out_cm_error": row_error(
            model.confusion_, annotator[unseen], truth[unseen], label[unseen]
        ),
        "chosen": model.chosen_["structure"],
        "label_loss": held_out_loss(model.history_),
    }


def row_error(
    confusion: np.ndarray, annotator: np.ndarray, truth: np.ndarray, label: np.ndarray
) -> float:
    """Return 100 x the squared distance of rows from the shares of reports, mean over labels."""
    counts = np.zeros(confusion.shape)
    np.add.at(counts, (annotator, truth, label), 1)
    total = counts.sum(2)
    shares = counts / np.maximum(total, 1)[:, :, None]
    distance = np.square(confusion - shares).sum(2)
    return 100 * float((distance * total).sum() / total.sum())


def time_steps(structure: str, n_annotators: int, n_classes: int) -> dict[str, Any]:
    """Time training steps of a structure and plain steps in turn; the fastest of each counts."""
    data = batch_data(n_annotators, n_classes)
    plain, crowd = (mlp(64, n_classes) for _ in range(2))
    truth = torch.randint(n_classes, (len(data.table.items),))
    frequency = torch.from_numpy(data.table.labels_per_annotator() / data.table.n_items).float()
    sparse = n_annotators > 1_000
    layer = STRUCTURES.make(
        structure, n_annotators, n_classes, sparse=sparse, frequency=frequency, diagonal=0.7
    )
    both = torch.nn.ModuleList([crowd, layer])
    plain_adam = [torch.optim.Adam(parameter_groups(plain, lr=1e-3), fused=True)]
    steps = {
        "plain": (plain_adam, lambda b: F.cross_entropy(plain(b.inputs), truth[b.item])),
        "crowd": (
            make_optimizers(both, lr=1e-3, weight_decay=0.0),
            lambda b: trace_regularized_nll(
                crowd(b.inputs), layer, b.row, b.annotator, b.label, 0.01, joint=True
            ),
        ),
    }
    best = dict.fromkeys(steps, np.inf)
    batches = cycle(torch.arange(data.table.n_items).split(BATCH))
    for _ in range(150):
        for name, (optimizers, loss_of) in steps.items():
            started = time.process_time()
            loss = loss_of(data.batch(next(batches)))
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=True)
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            best[name] = min(best[name], time.process_time() - started)
    return {"seconds": best["crowd"], "plain_seconds": best["plain"]}


def batch_data(n_annotators: int, n_classes: int) -> CrowdData:
    table, _ = simulate(20 * BATCH, n_annotators, n_classes)
    X = np.random.default_rng(0).normal(size=(20 * BATCH, 64)).astype(np.float32)
    return CrowdData(ArraySource(X), table, torch.device("cpu"))


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """Run one measurement in this process."""
    warnings.simplefilter("ignore")
    kinds = {
        "iterations": time_iterations,
        "wide": fit_wide,
        "real": fit_real,
        "steps": time_steps,
    }
    found = kinds[case["run"]](*case["given"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found | {"peak_megabytes": round(peak), "threads": torch.get_num_threads()}


def in_own_process(case: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def cases(name: str, workload: str, labels: str) -> list[dict[str, Any]]:
    """Return the measurements of an experiment."""
    if name == "wide":
        return [{"run": "wide", "given": (structure, workload)} for structure in WIDE]
    if name == "cifar100n":
        return [{"run": "real", "given": (structure, labels)} for structure in REAL]
    if name == "steps":
        return [{"run": "steps", "given": given} for given in STEPS]
    return [{"run": "iterations", "given": given} for given in SIZES[name]]


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(json.loads(sys.argv[2]))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["annotators", "classes", "wide", "steps", "cifar100n"]
    parser.add_argument("names", nargs="+", choices=names)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workload", default="workload.py", help="the script that makes W")
    parser.add_argument("--labels", default="cifar100n_labels_only.npz", help="of CIFAR-100N")
    parser.add_argument("--out", type=Path)
    settings = parser.parse_args()
    for name in settings.names:
        listed, best = cases(name, settings.workload, settings.labels), dict[int, dict[str, Any]]()
        for _ in range(1 if name in ("wide", "cifar100n") else settings.repeats):
            for number, case in enumerate(listed):
                row = in_own_process(case) | {"load": os.getloadavg()[0]}
                if number not in best or row["seconds"] < best[number]["seconds"]:
                    best[number] = row
        for number, case in enumerate(listed):
            files = settings.workload, settings.labels
            given = [each for each in case["given"] if each not in files]
            row = {"experiment": "structures", "name": name, "given": given} | best[number]
            print(json.dumps(row), flush=True)
            if settings.out:
                with settings.out.open("a") as out:
                    out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
