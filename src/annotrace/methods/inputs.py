"""What a user gives to `fit` and `predict`, turned into a source and a table whose rows match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from annotrace.data import ArraySource, ImageFolder, ItemSource, as_source
from annotrace.errors import InputError, first_few
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import as_names, look_up

Items: TypeAlias = ArrayLike | Iterable[Any] | None
Gold: TypeAlias = Mapping[Any, Any] | ArrayLike | None


def match(estimator: Any, X: Any, y: Any, items: Items) -> tuple[ItemSource, LabelTable]:
    """Bring features and labels together, row by row.

    Parameters
    ----------
    estimator : CrowdEstimator
        Told how many features there are.
    X : array of shape (n_items, ...), frame, or ItemSource
    y : LabelTable, array of shape (n_items,) or array of shape (n_items, n_annotators)
    items : array-like of shape (n_items,), optional

    Returns
    -------
    source : ItemSource
    table : LabelTable
        Its item k is row k of the source.
    """
    if isinstance(y, LabelTable):
        if isinstance(X, ImageFolder):
            X = X.matching(y.items)
        source = _source(estimator, X, items, named=not y.positional)
        return source, _by_name(source, y)
    if y is None:
        raise InputError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    source = _source(estimator, X, items, named=False)
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        table = LabelTable.from_wide(y)
    else:
        table = _one_annotator(column_or_1d(y, warn=True))
    _check_length(source, table)
    return source, table


def rows_to_predict(estimator: Any, X: Any) -> ItemSource:
    """Check features to predict from against those that were learned from."""
    if isinstance(X, ItemSource):
        return _same_shape(estimator, X)
    if hasattr(X, "columns") and estimator.named_rows_:
        return _same_shape(estimator, as_source(X))
    array = _as_array(estimator, X, reset=False)
    return _same_shape(estimator, ArraySource(array))


def _source(estimator: Any, X: Any, items: Items, named: bool) -> ItemSource:
    is_frame = hasattr(X, "columns") or hasattr(X, "column_names")
    estimator.named_rows_ = named and items is None and is_frame
    if isinstance(X, ItemSource):
        source = X
    elif estimator.named_rows_:
        source = as_source(X)
    else:
        source = ArraySource(_as_array(estimator, X, reset=True), items)
    estimator.n_features_in_ = int(np.prod(source.shape))
    estimator.input_shape_ = tuple(source.shape)
    return source


def _as_array(estimator: Any, X: Any, reset: bool) -> NDArray[Any]:
    """Check rows of features as scikit-learn does; images only for what all arrays need."""
    if getattr(X, "ndim", 0) > 2:
        return np.asarray(X)
    checked: NDArray[Any] = validate_data(estimator, X, reset=reset, dtype="numeric")
    return checked


def _same_shape(estimator: Any, source: ItemSource) -> ItemSource:
    expected = estimator.input_shape_
    if tuple(source.shape) != expected:
        raise InputError(
            f"Expected items of shape {expected}, as in `fit`, but got {tuple(source.shape)}."
        )
    return source


def _by_name(source: ItemSource, table: LabelTable) -> LabelTable:
    if table.positional:
        _check_length(source, table)
        return table
    if source.items is None:
        raise InputError(
            "The items of the labels have names, and the rows of X have none: say which row is "
            "which with `fit(X, table, items=names)`, or give a frame with an item column, or a "
            "file saved with np.savez(path, X=features, items=names)."
        )
    return table.match_items(source.items)


def _check_length(source: ItemSource, table: LabelTable) -> None:
    if len(source) != table.n_items:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: {len(source)} rows of X "
            f"and labels for {table.n_items} items."
        )


def _one_annotator(y: NDArray[Any]) -> LabelTable:
    """Take a vector as the labels of one annotator, every value a class."""
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes, label = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InputError("y has one class only, and there is nothing to learn.")
    position = np.arange(len(y), dtype=np.int32)
    return LabelTable(
        position,
        np.zeros(len(y), np.int32),
        label,
        items=position,
        annotators=np.zeros(1, np.int32),
        classes=classes,
        positional=True,
    )


def known_classes(table: LabelTable, gold: Gold) -> NDArray[np.int32]:
    """Code the classes that are known for certain.

    Parameters
    ----------
    table : LabelTable
    gold : mapping from item to class, or array-like of shape (n_items,), optional
        By name; in an array None, NaN or -1 is unknown.

    Returns
    -------
    ndarray of shape (n_items,), int32
        -1 where the class is not known.
    """
    known = np.full(table.n_items, -1, np.int32)
    if gold is None:
        return known
    if isinstance(gold, Mapping):
        item = look_up(as_names(list(gold)), table.items)
        _check_found(item, list(gold), "items", "there are no such items")
        classes = list(gold.values())
    else:
        listed = np.asarray(gold, dtype=object)
        if listed.shape != (table.n_items,):
            raise InputError(
                f"Expected `gold` to be of shape ({table.n_items},), a class or None for each "
                f"item, but got {listed.shape}."
            )
        item = np.flatnonzero([not _is_missing(value) for value in listed]).astype(np.int32)
        classes = listed[item].tolist()
    if classes:
        code = look_up(as_names(classes), table.classes)
        _check_found(code, classes, "classes", f"the classes are {first_few(table.classes)}")
        known[item] = code
    return known


def _is_missing(value: Any) -> bool:
    return value is None or value == -1 or value != value


def _check_found(code: NDArray[Any], names: list[Any], what: str, why: str) -> None:
    missing = [names[place] for place in np.flatnonzero(code < 0)]
    if missing:
        raise InputError(f"`gold` names {what} {first_few(missing)}, but {why}.")
