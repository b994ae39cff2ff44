"""The six sets of `benchmarks/variants.py`: items, all labels, and test items.

labelme         1,000 images (VGG features), 59 annotators, 2.5 labels per item; test part of 1,188
digits          1,400 digits as 64 features, simulated annotators; test part of 397
reviews         1,000 Amazon reviews (texts), 263 annotators, 4.9 labels per item; test part of
                4,000
sentiment       4,999 sentences (texts), 203 annotators, 5.5 labels per item; the test part is the
                fifth of them that `benchmarks/texts.py` has as fold `seed`
digits-images   the same crowd as digits, on images of 8 x 8 pixels
cifar10n        the first 5,000 images of CIFAR-10, three columns of labels as three annotators;
                the test part is the images 5,000 to 9,999

The 20 annotators of the digits are 6 experts (correct with .95 + .005), 6 of average skill (.7 +
.03), 4 who confuse each class with one other (.6 correct), 2 spammers (.1) and 2 adversaries (.15,
else the class three later): .65 correct on average, 3 labels per item. Skills are drawn with a
deviation of .01. Each item is labelled by five of them at random, of whose labels it keeps 1 to 5,
uniformly. The seed draws annotators and labels.

Only numpy, scikit-learn and the standard library read these files.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from variants_labels import keep_labels

import annotrace as at
from annotrace.simulate import (
    cifar10_annotators,
    hammer_spammers,
    pairwise_flippers,
    simulate_labels,
)

N_FOLDS = 5
N_TRAIN_DIGITS = 1400
N_TRAIN_CIFAR10 = 5000


class Crowd(NamedTuple):
    """Items with labels and truth, and test items.

    Attributes
    ----------
    X, X_test : ndarray of shape (n_items, ...) and (n_test, ...)
    table : LabelTable
        All labels, without truth.
    y, y_test : ndarray of int, shape (n_items,) and (n_test,)
    test_part : str
        Crowds of different seeds with the same test part have the same test items.
    """

    X: NDArray
    table: at.LabelTable
    y: NDArray[np.integer]
    X_test: NDArray
    y_test: NDArray[np.integer]
    test_part: str = "test"


def labelme(data: Path, seed: int) -> Crowd:
    with np.load(data / "crowd" / "labelme.npz") as z:
        table = table_from_array(z["A"], n_classes=len(z["classes"]))
        return Crowd(z["vgg_train"], table, z["y_train"], z["vgg_test"], z["y_test"])


def digits(data: Path, seed: int, *, images: bool = False) -> Crowd:
    train, test = at.data.load_digits(images=images).split(N_TRAIN_DIGITS)
    # Other random numbers than those of the variant, which the seed itself draws.
    rng = np.random.default_rng((seed, 1))
    five = simulate_labels(train.y, digits_annotators(rng), labels_per_item=5, random_state=rng)
    table = keep_labels(five, train.y, "rand-var", rng)
    return Crowd(train.X, table, train.y, test.X, test.y)


def digits_images(data: Path, seed: int) -> Crowd:
    return digits(data, seed, images=True)


def reviews(data: Path, seed: int) -> Crowd:
    folder = data / "crowd" / "text_crowds"
    texts = sorted(_read(folder / "amazon_isbook_text.csv.gz"), key=lambda row: int(row["item"]))
    labels = list(_read(folder / "amazon_isbook.csv.gz"))
    X, y = _objects([row["text"] for row in texts]), _codes(texts, "truth")
    columns = (_codes(labels, name) for name in ("item", "annotator", "label"))
    table = at.LabelTable.from_codes(*columns)
    n = table.n_items
    return Crowd(X[:n], table, y[:n], X[n:], y[n:])


def sentiment(data: Path, seed: int) -> Crowd:
    if not 0 <= seed < N_FOLDS:
        raise ValueError(f"Expected a seed from 0 to {N_FOLDS - 1}, a fold, but got {seed}.")
    rows = _read(data / "crowd" / "sentiment_polarity_text.csv.gz")
    X = _objects([row["text"] for row in rows if row["split"] == "train"])
    with np.load(data / "crowd" / "sentiment_polarity.npz") as z:
        labels, y = z["A"], z["y"]
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[seed::N_FOLDS], np.setdiff1d(order, order[seed::N_FOLDS])
    table = table_from_array(labels[train], n_classes=2)
    return Crowd(X[train], table, y[train], X[test], y[test], f"fold {seed}")


def cifar10n(data: Path, seed: int) -> Crowd:
    with np.load(data / "cifar10" / "cifar10_train_1.npz") as z:
        differences, y = z["d"], z["y"].astype(np.int64)
    images = differences.cumsum(0, dtype="u1").cumsum(2, dtype="u1").cumsum(3, dtype="u1")
    images = np.ascontiguousarray(images.transpose(1, 2, 3, 0))
    n = N_TRAIN_CIFAR10
    with np.load(data / "crowd" / "cifar10n.npz") as z:
        table = table_from_array(z["R"][:n], n_classes=10)
    return Crowd(images[:n], table, y[:n], images[n:], y[n:])


SETS: dict[str, Callable[[Path, int], Crowd]] = {
    "labelme": labelme,
    "digits": digits,
    "reviews": reviews,
    "sentiment": sentiment,
    "digits-images": digits_images,
    "cifar10n": cifar10n,
}
"""The sets, cheap ones first."""

IMAGES = ("digits-images", "cifar10n")


@lru_cache(maxsize=2)
def read_crowd(name: str, data: Path, seed: int) -> Crowd:
    """Read a set with all its labels; the last ones are kept."""
    return SETS[name](data, seed)


def digits_annotators(rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the matrices of the 20 annotators of the digits, (annotators, classes, classes)."""
    experts, average = hammer_spammers(6, 10, 0.95, rng), hammer_spammers(6, 10, 0.7, rng)
    flippers, spammers = pairwise_flippers(4, 10, 0.6, rng), hammer_spammers(2, 10, 0.0, rng)
    adversaries = np.repeat(cifar10_annotators()[-1:], 2, axis=0)
    return np.concatenate([experts, average, flippers, spammers, adversaries])


def table_from_array(labels: NDArray, n_classes: int) -> at.LabelTable:
    """Return labels of shape (n_items, n_annotators), -1 if missing, as a table."""
    item, annotator = np.nonzero(labels >= 0)
    return at.LabelTable.from_codes(
        item,
        annotator,
        labels[item, annotator].astype(np.int64),
        n_items=labels.shape[0],
        n_annotators=labels.shape[1],
        n_classes=n_classes,
    )


def _read(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _codes(rows: list[dict[str, str]], column: str) -> NDArray[np.int64]:
    return np.array([int(row[column]) for row in rows])


def _objects(texts: list[str]) -> NDArray[np.object_]:
    return np.array(texts, dtype=object)
