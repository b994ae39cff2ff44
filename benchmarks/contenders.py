"""One contender of `bench.py`, in a process of its own with limits of memory and time.

::

    python benchmarks/contenders.py crowd-kit dawid-skene LABELS.npz 20 --gigabytes 6 --seconds 240

The interpreter is that of the library's virtual environment. Everything counts that leads from
three arrays of codes (item, annotator, label) to the class of each item: a library that needs a
table of items x annotators, or a dictionary, has to make it. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from aggregation_speed import Usage, load_function

Array = Any


@dataclass(frozen=True)
class Labels:
    """Labels as codes: three arrays (n_labels,), and the numbers of items, annotators, classes."""

    item: Array
    annotator: Array
    label: Array
    sizes: tuple[int, int, int]

    def wide(self) -> Array:
        """Return the labels with NaN where there is none, shape (n_items, n_annotators)."""
        wide = np.full(self.sizes[:2], np.nan)
        wide[self.item, self.annotator] = self.label
        return wide

    def answers(self) -> dict[int, dict[int, int]]:
        """Return the labels by item and annotator."""
        answers: dict[int, dict[int, int]] = {}
        columns = (self.item, self.annotator, self.label)
        for item, annotator, label in zip(*(each.tolist() for each in columns), strict=True):
            answers.setdefault(item, {})[annotator] = label
        return answers


TICK = 1e-3
"""CPU seconds of a run that is over before a slow clock of processor time ticks."""

Aggregate = Callable[[Labels], tuple[Array, int]]
"""Labels in; the class of each item, shape (n_items,), and the number of iterations out."""


def tiny() -> Labels:
    """Return 200 labels by five annotators who often disagree, so that no EM converges early."""
    item, annotator = (each.ravel() for each in np.indices((40, 5)))
    noise = np.random.default_rng(0).integers(3, size=len(item))
    return Labels(item, annotator, np.where(noise == 0, item % 3, noise), (40, 5, 3))


def annotrace(method: str, iterations: int, _: Path | None) -> Aggregate:
    from annotrace.aggregation import make
    from annotrace.labels import LabelTable

    given = {} if method == "majority" else {"max_iter": iterations, "tol": 0}

    def aggregate(labels: Labels) -> tuple[Array, int]:
        names = ("n_items", "n_annotators", "n_classes")
        sizes = dict(zip(names, labels.sizes, strict=True))
        table = LabelTable.from_codes(labels.item, labels.annotator, labels.label, **sizes)
        model = make(method, **given).fit(table)
        return model.predict(), getattr(model, "n_iter_", 1)

    return aggregate


def reference(function: str) -> Callable[[str, int, Path | None], Aggregate]:
    """Return a contender that is a function of the file of --reference."""

    def contender(_: str, iterations: int, file: Path | None) -> Aggregate:
        assert file is not None
        dawid_skene = load_function(file, function)

        def aggregate(labels: Labels) -> tuple[Array, int]:
            codes = (labels.item, labels.annotator, labels.label)
            posterior, _ = dawid_skene(*codes, *labels.sizes, iters=iterations)
            return posterior.argmax(1), iterations

        return aggregate

    return contender


def crowd_kit(method: str, iterations: int, _: Path | None) -> Aggregate:
    import pandas as pd
    from crowdkit.aggregation import DawidSkene, MajorityVote

    def aggregate(labels: Labels) -> tuple[Array, int]:
        is_vote = method == "majority"
        model = MajorityVote() if is_vote else DawidSkene(n_iter=iterations, tol=0.0)
        columns = {"task": labels.item, "worker": labels.annotator, "label": labels.label}
        predicted = model.fit_predict(pd.DataFrame(columns))
        return predicted.reindex(range(labels.sizes[0])).to_numpy(), 1 if is_vote else iterations

    return aggregate


def cleanlab(_: str, __: int, ___: Path | None) -> Aggregate:
    from cleanlab.multiannotator import get_majority_vote_label

    return lambda labels: (get_majority_vote_label(labels.wide(), verbose=False), 1)


def scikit_activeml(_: str, __: int, ___: Path | None) -> Aggregate:
    from skactiveml.utils import majority_vote

    def aggregate(labels: Labels) -> tuple[Array, int]:
        classes = range(labels.sizes[2])
        return majority_vote(labels.wide(), classes=classes, random_state=0), 1

    return aggregate


def peerannot(method: str, iterations: int, _: Path | None) -> Aggregate:
    # The package of its methods imports torch, which voting and Dawid-Skene do not need.
    package = types.ModuleType("peerannot.models")
    package.__path__ = [str(Path(find_spec("peerannot").origin).parent / "models")]
    sys.modules[package.__name__] = package
    from peerannot.models.aggregation.dawid_skene import DawidSkene
    from peerannot.models.aggregation.majority_voting import MajorityVoting

    def aggregate(labels: Labels) -> tuple[Array, int]:
        _, n_annotators, n_classes = labels.sizes
        if method == "majority":
            return MajorityVoting(labels.answers(), n_classes).get_answers(), 1
        model = DawidSkene(labels.answers(), n_workers=n_annotators, n_classes=n_classes)
        _, done = model.run(epsilon=0, maxiter=iterations)
        return model.get_answers(), done

    return aggregate


CONTENDERS = {
    "annotrace": annotrace,
    "scipy.sparse": reference("ds_scipy"),
    "numpy": reference("ds_numpy"),
    "crowd-kit": crowd_kit,
    "cleanlab": cleanlab,
    "scikit-activeml": scikit_activeml,
    "peerannot": peerannot,
}


def limit(gigabytes: float, seconds: float) -> None:
    """Limit what this process may allocate, and its processor time, from now on.

    A larger allocation raises `MemoryError`; a process that takes longer is killed by SIGXCPU.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    used = {
        resource.RLIMIT_AS: pages * resource.getpagesize() + gigabytes * 2**30,
        resource.RLIMIT_CPU: time.process_time() + seconds + 1,
    }
    for kind, most in used.items():
        resource.setrlimit(kind, (int(most), resource.getrlimit(kind)[1]))


def measure(aggregate: Aggregate, labels: Labels, truth: Array) -> dict[str, Any]:
    """Return accuracy, seconds, CPU seconds, peak memory and iterations of one aggregation."""
    with Usage() as usage:
        predicted, iterations = aggregate(labels)
    return {
        "accuracy": float((np.asarray(predicted) == truth).mean()),
        **usage.row,
        "cpu_seconds": max(usage.row["cpu_seconds"], TICK),
        "iterations": iterations,
    }


def read_labels(path: Path) -> tuple[Labels, Array]:
    """Return the labels and the true classes of a file of `aggregation_speed.make_crowd`."""
    data = np.load(path)
    item, annotator, label, truth = (data[k] for k in ("item", "annotator", "label", "truth"))
    return Labels(item, annotator, label, tuple(data["sizes"].tolist())), truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", choices=CONTENDERS)
    parser.add_argument("method")
    parser.add_argument("labels", type=Path)
    parser.add_argument("iterations", type=int)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--gigabytes", type=float, default=6)
    parser.add_argument("--seconds", type=float, default=240)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    labels, truth = read_labels(given.labels)
    aggregate = CONTENDERS[given.library](given.method, given.iterations, given.reference)
    aggregate(tiny())  # imports what a library imports at the first use
    limit(given.gigabytes, given.seconds)
    found = measure(aggregate, labels, truth)
    package = {"scipy.sparse": "scipy"}.get(given.library, given.library)
    print(json.dumps(found | {"version": version(package)}))


if __name__ == "__main__":
    main()
