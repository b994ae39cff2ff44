"""Odd crowds by name: few labels, strange names, extreme features, unusual settings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from annotrace.errors import AnnotraceError, DivergenceError, InputError
from annotrace.labels import LabelTable

N_ITEMS, N_ANNOTATORS, N_CLASSES = 12, 4, 3


@dataclass
class OddCrowd:
    """What to fit, and how fitting must end.

    Attributes
    ----------
    X : array of shape (n_items, ...)
    table : LabelTable
    gold : mapping or array, optional
    params : dict
        Of a method.
    error, message
        What methods raise, and a part of its message; None if they learn.
    learn : tuple of str
        Methods that learn all the same.
    """

    X: Any
    table: LabelTable
    gold: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    error: type[AnnotraceError] | None = None
    message: str = ""
    learn: tuple[str, ...] = ()

    @property
    def items(self) -> Any:
        return None if self.table.positional else self.table.items


OF_LABELS: dict[str, Callable[[], OddCrowd]] = {}
"""Crowds whose labels are odd, for methods and aggregations."""

OF_FEATURES: dict[str, Callable[[], OddCrowd]] = {}
"""Ordinary labels with odd features or settings, for methods."""


def _labels(make: Callable[[], OddCrowd]) -> Callable[[], OddCrowd]:
    OF_LABELS[make.__name__] = make
    return make


def _features(name: str, make: Callable[[], Any], **expected: Any) -> None:
    OF_FEATURES[name] = lambda: OddCrowd(make(), _ordinary(), **expected)


def _settings(name: str, **params: Any) -> None:
    expected = {key: params.pop(key) for key in ("error", "message", "learn") if key in params}
    OF_FEATURES[name] = lambda: OddCrowd(_rows(), _ordinary(), params=params, **expected)


def _rows(n_items: int = N_ITEMS, n_features: int = 3) -> Any:
    return np.random.default_rng(1).normal(size=(n_items, n_features))


def _answers(n_items: int = N_ITEMS, skill: float = 0.8, n_classes: int = N_CLASSES) -> Any:
    """Return answers of all annotators, (n_items, n_annotators), and the truth, (n_items,)."""
    rng = np.random.default_rng(0)
    truth = np.arange(n_items) % n_classes
    random = rng.integers(0, n_classes, (n_items, N_ANNOTATORS))
    return np.where(rng.random(random.shape) < skill, truth[:, None], random), truth


def _crowd(answers: Any, gold: Any = None, truth: Any = None, **sizes: int) -> OddCrowd:
    item, annotator = np.nonzero(answers >= 0)
    sizes = {"n_items": len(answers), "n_annotators": answers.shape[1]} | sizes
    label = answers[item, annotator]
    table = LabelTable.from_codes(item, annotator, label, truth=truth, **sizes)
    return OddCrowd(_rows(table.n_items), table, gold)


def _ordinary() -> LabelTable:
    return _crowd(_answers()[0]).table


def _named(items: Any = None, annotators: Any = None, classes: Any = None) -> OddCrowd:
    """Name some of the items, annotators and classes of ordinary labels."""
    answers, _ = _answers()
    item, annotator = np.indices(answers.shape).reshape(2, -1)
    columns = {
        "item": [f"item {k}" for k in item] if items is None else [items[k] for k in item],
        "annotator": [f"a{k}" if annotators is None else annotators[k] for k in annotator],
        "label": [f"c{k}" if classes is None else classes[k] for k in answers.ravel()],
    }
    return OddCrowd(_rows(), LabelTable.from_long(columns))


# Few labels, or few of something


@_labels
def one_item() -> OddCrowd:
    return _crowd(np.array([[0, 1, 1, 2]]))


@_labels
def one_label() -> OddCrowd:
    return _crowd(np.array([[1]]))


@_labels
def one_annotator() -> OddCrowd:
    return _crowd(_answers()[0][:, :1])


@_labels
def one_class_per_annotator() -> OddCrowd:
    return _crowd(np.tile(np.arange(3), (N_ITEMS, 1)))


@_labels
def a_single_class() -> OddCrowd:
    crowd = _crowd(np.zeros((N_ITEMS, 3), int))
    crowd.error, crowd.message = InputError, "one class only: there is nothing to learn"
    return crowd


@_labels
def one_label_per_annotator() -> OddCrowd:
    return _crowd(np.where(np.eye(N_ITEMS, dtype=bool), np.arange(N_ITEMS) % 3, -1))


@_labels
def annotators_of_one_label_who_share_items() -> OddCrowd:
    item = np.arange(3 * N_ITEMS) // 3
    table = LabelTable.from_codes(item, np.arange(3 * N_ITEMS), item % 3)
    return OddCrowd(_rows(), table)


@_labels
def all_labels_on_one_item() -> OddCrowd:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 500), rng.integers(0, 3, 500)
    return OddCrowd(_rows(), LabelTable.from_codes(np.full(500, 4), *labels, n_items=N_ITEMS))


@_labels
def items_without_labels() -> OddCrowd:
    answers, _ = _answers()
    answers[::2] = -1
    return _crowd(answers)


@_labels
def annotators_without_labels() -> OddCrowd:
    return _crowd(_answers()[0], n_annotators=9)


@_labels
def classes_that_nobody_reports() -> OddCrowd:
    return _crowd(_answers()[0], n_classes=7)


@_labels
def gold_for_items_without_labels_only() -> OddCrowd:
    crowd = items_without_labels()
    crowd.gold = {0: 0, 2: 2}
    return crowd


# Many of something


@_labels
def a_hundred_classes_of_two_hundred_items() -> OddCrowd:
    return _crowd(_answers(200, 0.7, 100)[0], n_classes=100)


@_labels
def two_thousand_annotators_of_two_labels() -> OddCrowd:
    rng = np.random.default_rng(0)
    item = rng.integers(0, 500, 4000)
    return OddCrowd(_rows(500), LabelTable.from_codes(item, np.arange(4000) // 2, item % 3))


@_labels
def hardly_any_item_of_one_class() -> OddCrowd:
    rare = np.zeros((200, 3), int)
    rare[7] = 1
    return _crowd(rare)


# Unusual agreement


@_labels
def perfect_agreement() -> OddCrowd:
    return _crowd(_answers(skill=1)[0])


@_labels
def perfect_disagreement() -> OddCrowd:
    return _crowd((np.arange(N_ITEMS)[:, None] + np.arange(3)) % 3)


@_labels
def adversarial_annotators() -> OddCrowd:
    return _crowd((_answers(60, skill=1)[0] + 1) % 3)


@_labels
def two_cliques_with_opposite_answers() -> OddCrowd:
    answers, _ = _answers(60, skill=1, n_classes=2)
    answers[:, 2:] = 1 - answers[:, 2:]
    return _crowd(answers)


@_labels
def two_groups_without_a_common_item() -> OddCrowd:
    answers, _ = _answers(40)
    answers[:20, 2:] = answers[20:, :2] = -1
    return _crowd(answers)


@_labels
def spammers_only() -> OddCrowd:
    return _crowd(_answers(60, skill=0)[0])


@_labels
def every_label_twice() -> OddCrowd:
    table = _ordinary()
    columns = (np.r_[codes, codes] for codes in (table.item, table.annotator, table.label))
    return OddCrowd(_rows(), LabelTable.from_codes(*columns))


@_labels
def every_label_contradicted_by_its_annotator() -> OddCrowd:
    table = _ordinary()
    item, annotator = (np.r_[codes, codes] for codes in (table.item, table.annotator))
    label = np.r_[table.label, (table.label + 1) % 3]
    return OddCrowd(_rows(), LabelTable.from_codes(item, annotator, label))


# Gold and truth


@_labels
def gold_on_all_items() -> OddCrowd:
    answers, truth = _answers()
    return _crowd(answers, gold=truth)


@_labels
def gold_against_all_labels() -> OddCrowd:
    answers, truth = _answers(skill=1)
    return _crowd(answers, gold=(truth + 1) % 3)


@_labels
def truth_that_nobody_reports() -> OddCrowd:
    answers, truth = _answers()
    return _crowd(answers, truth=np.where(truth == 0, -1, 4), n_classes=5)


# Names


@_labels
def names_in_many_scripts() -> OddCrowd:
    items = [f"{k} \U0001f600 \u05e9\u05dc\u05d5\u05dd \u202e" for k in range(N_ITEMS)]
    return _named(items, "\U0001f600\u00df\u4e2d\u0301", ["\u00e9", "e\u0301", "\u200b"])


@_labels
def names_of_ten_thousand_characters() -> OddCrowd:
    return _named(*([f"{k:02d}" * 5000 for k in range(n)] for n in (N_ITEMS, N_ANNOTATORS, 3)))


@_labels
def names_like_numbers_and_missing_values() -> OddCrowd:
    items = ["NaN", "None", "null", "-1", "0", "00", "1e5", "inf", "True", " ", "NA", "1.0"]
    return _named(items, ["None", "nan", "0", "-1"], ["-1", "nan", "None"])


@_labels
def names_like_formulas_and_paths() -> OddCrowd:
    items = [f"={k}+1" for k in range(6)] + [f"../{k}" for k in range(5)] + ['a\nb,"c"']
    return _named(items, ["=1", "+1", "@a", "<b>"], ["-x", "a;b", "</script>"])


@_labels
def items_that_are_whole_numbers() -> OddCrowd:
    return _named(np.arange(N_ITEMS) * 10**15)


@_labels
def items_that_are_fractions() -> OddCrowd:
    return _named(np.arange(N_ITEMS) / 8)


@_labels
def items_that_are_dates() -> OddCrowd:
    return _named([datetime(2020, 1, 1) + timedelta(hours=k) for k in range(N_ITEMS)])


@_labels
def labels_that_are_booleans() -> OddCrowd:
    return _named(classes=[False, True, True])


# Features


_features("features of 1e30", lambda: 1e30 * _rows())
_features("features of 1e-30", lambda: 1e-30 * _rows())
_features("denormal features", lambda: 1e-42 * _rows())
_features("features of float16", lambda: (1e4 * _rows()).astype(np.float16))
_features("a constant feature of 1e30", lambda: np.full((N_ITEMS, 1), 1e30))
_features("constant features", lambda: np.full((N_ITEMS, 3), 0.1))
_features("one constant column", lambda: _rows() * [1, 0, 1])
_features("whole numbers", lambda: np.arange(3 * N_ITEMS).reshape(N_ITEMS, 3) - 2**40)
_features("booleans", lambda: _rows() > 0)
_features("bytes", lambda: (20 * _rows() + 100).astype(np.uint8))
_features("a large offset", lambda: 1e9 + 1e-3 * _rows())
_features("one outlier", lambda: np.where(np.arange(N_ITEMS)[:, None] == 3, 1e38, _rows()))
_features("one feature", lambda: _rows(n_features=1))
_features("more features than items", lambda: _rows(n_features=10_000))
_features("objects that are numbers", lambda: _rows().astype(object))
_features("columns in Fortran order", lambda: np.asfortranarray(_rows()))
_features("a view with gaps", lambda: _rows(2 * N_ITEMS, 6)[::-2, ::2])


def _read_only() -> Any:
    rows = _rows()
    rows.flags.writeable = False
    return rows


def _with(value: float) -> Any:
    rows = _rows()
    rows[3, 1] = value
    return rows


_features("read-only features", _read_only)
_features(
    "a missing feature",
    lambda: _with(np.nan),
    error=InputError,
    message="row index 3, column 1 is nan",
)
_features(
    "an infinite feature",
    lambda: _with(np.inf),
    error=InputError,
    message="row index 3, column 1 is inf",
)
_features("features above float32", lambda: _with(1e39), error=InputError, message="divide the")
_features(
    "features of text",
    lambda: np.full((N_ITEMS, 3), "a"),
    error=InputError,
    message="numeric values",
)
_features("the same text of all", lambda: np.full(N_ITEMS, "a"))
_features("pairs of the same text", lambda: np.full((N_ITEMS, 2), "a"))
_features("texts without words", lambda: [" "] * N_ITEMS, error=InputError, message="no words")
_features("no features", lambda: np.empty((N_ITEMS, 0)), error=InputError, message="0 feature")
_features("no rows", lambda: np.empty((0, 3)), error=InputError, message="0 sample")
_features(
    "images of one pixel",
    lambda: _rows(n_features=1)[:, :, None],
    error=InputError,
    message="needs images of 4 x 4 pixels or more, but these have 1 x 1. Use 'mlp'",
)
_features("too few rows", lambda: _rows(5), error=InputError, message="5 rows of X and labels for")

# Settings

_settings("batches of one item", batch_size=1)
_settings("batches larger than the data", batch_size=10_000)
_settings("nothing held out", validation_fraction=0.0)
_settings("a fraction of no item held out", validation_fraction=0.01)
_settings("a tiny learning rate", lr=1e-30)
_settings("a linear network", backbone="linear")
_settings("half precision", precision="bf16")
_settings("a huge learning rate", lr=1e30, error=DivergenceError, message="lower `lr`")
_settings(
    "all held out",
    validation_fraction=0.99,
    error=InputError,
    message="0.99 of 12 labelled items leaves none",
    # They hold out every item in turn.
    learn=("auto", "crossfit", "item-dependent"),
)
