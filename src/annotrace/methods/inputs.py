"""What a user gives to `fit` and `predict`, turned into a source and a table whose rows match."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from annotrace.data import (
    ArraySource,
    EncodedSource,
    EncoderRecord,
    ImageSource,
    ItemSource,
    TextSource,
    as_source,
)
from annotrace.data.source import is_source
from annotrace.data.texts import is_texts
from annotrace.errors import InputError, count, first_few
from annotrace.labels import LabelTable
from annotrace.labels.columns import column_names, find_column
from annotrace.labels.frames import with_frame_library
from annotrace.labels.vocabulary import (
    Names,
    as_answers,
    as_names,
    encode_answers,
    is_filled,
    look_up,
    union_names,
)

Items: TypeAlias = ArrayLike | Iterable[Any] | None


def match(
    estimator: Any, X: Any, y: Any, items: Items, classes: Names | None = None
) -> tuple[ItemSource, LabelTable]:
    """Bring features and labels together, row by row.

    Parameters
    ----------
    estimator : CrowdEstimator
        Its `n_features_in_`, `feature_names_in_`, `input_kind_` and `input_shape_` are set.
    X : array of shape (n_items, ...), texts, frame, or ItemSource
    y : LabelTable, array of shape (n_items,) or array of shape (n_items, n_annotators)
    items : array-like of shape (n_items,), optional
    classes : ndarray of shape (n_classes,), optional
        Those that are known already: the labels need not have all, and may have others.

    Returns
    -------
    source : ItemSource
    table : LabelTable
        Its item k is row k of the source.
    """
    if isinstance(y, LabelTable):
        if isinstance(X, ImageSource):
            X = X.matching(y.items)
        elif y.positional and items is None and not is_source(X):
            _check_nameless(X)
        source = _source(estimator, X, items, named=not y.positional)
        return source, _by_name(source, leave_out_skipped(y, source))
    if y is None:
        raise InputError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    source = _source(estimator, X, items, named=False)
    _check_bare(y)
    if has_several_annotators(y):
        answers = as_answers(y)
        named = None if classes is None else _all(classes, answers)
        table = LabelTable.from_wide(answers, classes=named)
    else:
        table = labels_of_one(y, known=classes is not None)
    _check_length(source, table)
    return source, with_frame_library(table, y, X)


def decode_images(
    source: ItemSource, table: LabelTable, gold: NDArray[np.int32], verbose: bool
) -> tuple[ItemSource, LabelTable, NDArray[np.int32]]:
    """Decode the images of a source once, for all epochs.

    Items whose images are skipped are left out: of the source, the labels and the gold classes.
    Other sources are returned unchanged.
    """
    if not isinstance(source, ImageSource):
        return source, table, gold
    decoded = source.decoded(verbose)
    if not isinstance(decoded, ArraySource) or len(decoded) == len(source):
        return decoded, table, gold
    kept = np.flatnonzero(look_up(source.items, decoded.skipped) < 0)
    _warn_of_labels(table, len(source) - len(kept), table.select_items(kept))
    return decoded, table.select_items(kept), gold[kept]


def leave_out_skipped(table: LabelTable, source: ItemSource) -> LabelTable:
    """Return a table without the items of a source whose images were skipped, with a warning."""
    skipped = getattr(source, "skipped", ())
    if len(skipped) == 0:
        return table
    kept = np.flatnonzero(look_up(table.items, as_names(skipped)) < 0)
    rest = table.select_items(kept)
    if rest.n_items < table.n_items:
        _warn_of_labels(table, table.n_items - rest.n_items, rest)
    return rest


def _warn_of_labels(table: LabelTable, n_items: int, rest: LabelTable) -> None:
    labels = count(table.n_labels - rest.n_labels, "label")
    items = count(n_items, "item")
    warnings.warn(f"Left out {labels} of {items} without a readable image.", stacklevel=3)


def has_several_annotators(y: Any) -> bool:
    """Whether y is a table, or an array or frame with a column for each of several annotators."""
    if isinstance(y, LabelTable):
        return True
    answers = as_answers(y)
    return answers.ndim == 2 and answers.shape[1] > 1


def labels_of_one(y: Any, known: bool) -> LabelTable:
    """Take a vector as the labels of one annotator, every value a class.

    Parameters
    ----------
    y : array-like of shape (n_items,)
    known : bool
        Whether the classes are known already, so that one is enough.
    """
    y = column_or_1d(as_answers(y), warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    if y.dtype.kind == "O" and not all(map(is_filled, y)):
        raise InputError("y has rows without a label: leave them out, or pass a `LabelTable`.")
    if y.dtype.kind in "mM":
        y = y.astype(str)
    check_classification_targets(y)
    classes, label = np.unique(y, return_inverse=True)
    if len(classes) < 2 and not known:
        raise InputError("y has one class only: there is nothing to learn.")
    position = np.arange(len(y), dtype=np.int32)
    return LabelTable(
        position,
        np.zeros(len(y), np.int32),
        label.astype(np.int32),
        items=position,
        annotators=np.zeros(1, np.int32),
        classes=classes,
        positional=True,
    )


def known_class_codes(table: LabelTable, classes: Names) -> LabelTable:
    """Return a table whose labels are codes of known classes.

    Raises
    ------
    InputError
        If the labels have other classes.
    """
    code = look_up(table.classes, classes)
    if np.any(code < 0):
        unknown = table.classes[code < 0]
        raise InputError(f"The labels have classes {first_few(unknown)} that were not in `fit`.")
    return table.replace(label=code[table.label], classes=classes, truth=None)


def check_learnable(table: LabelTable) -> None:
    """Raise an `InputError` if there is nothing to learn."""
    if table.n_classes < 2:
        raise InputError("The labels have one class only: there is nothing to learn.")
    if table.n_labels == 0:
        raise InputError("The table has no labels: there is nothing to learn.")


def rows_to_predict(estimator: Any, X: Any) -> ItemSource:
    """Check features to predict from against those that were learned from."""
    if is_source(X):
        return _same_features(estimator, X)
    if is_texts(X):
        return _same_features(estimator, as_source(X))
    if estimator.input_kind_ == "text":
        raise InputError(f"Expected texts, as in `fit`, but got {type(X).__name__}.")
    if hasattr(X, "columns") and estimator.named_rows_:
        return _same_features(estimator, as_source(X))
    array = _as_array(estimator, X, reset=False)
    return _same_features(estimator, ArraySource(array))


def _source(estimator: Any, X: Any, items: Items, named: bool) -> ItemSource:
    is_frame = hasattr(X, "columns") or hasattr(X, "column_names")
    estimator.named_rows_ = named and items is None and is_frame
    vars(estimator).pop("feature_names_in_", None)
    if is_source(X):
        source = X
    elif estimator.named_rows_ or is_texts(X):
        source = as_source(X, items)
    else:
        checked = _as_array(estimator, X, reset=True)
        source = ArraySource(checked, items, columns=getattr(estimator, "feature_names_in_", None))
    if (columns := _column_names(source)) is not None:
        estimator.feature_names_in_ = np.array(columns, dtype=object)
    estimator.n_features_in_ = int(np.prod(source.shape))
    estimator.input_kind_ = input_kind(source)
    estimator.input_shape_ = tuple(source.shape)
    return source


def input_kind(source: ItemSource) -> Literal["array", "text"]:
    """Return what items are to a network: arrays of numbers, or texts."""
    return "text" if isinstance(source, TextSource) else "array"


def encoder_of(source: ItemSource) -> EncoderRecord | None:
    """Return the record of the encoder that computed the features, if one did."""
    return source.encoder if isinstance(source, EncodedSource) else None


def _check_nameless(X: Any) -> None:
    """Raise if X names its rows but labels are positional: the names would become a feature."""
    columns = list(map(str, column_names(X)))
    if (name := find_column(columns, "item", "the frame", None)) is not None:
        raise InputError(
            f"The column {name!r} of X names its rows, but the items of the labels have no names "
            "and are matched by position: drop the column, or make the table from names with "
            "`LabelTable.from_long`."
        )


def _check_bare(y: Any) -> None:
    """Raise if a column of y names items or annotators: every column would be an annotator."""
    columns = list(map(str, column_names(y)))
    for role in ("item", "annotator") if len(columns) > 1 else ():
        if (name := find_column(columns, role, "the frame of labels")) is not None:
            raise InputError(
                f"Expected y to have one row per item and one column per annotator, but the column "
                f"{name!r} names {role}s: make a table with `LabelTable.from_long` (one row per "
                "label) or `LabelTable.from_wide`."
            )


def _as_array(estimator: Any, X: Any, reset: bool) -> NDArray[Any]:
    """Validate rows of features as scikit-learn does; only convert images to an array."""
    if getattr(X, "ndim", 0) > 2:
        return np.asarray(X)
    try:
        # `ArraySource` names the row and the column of a value that is not finite.
        checked: NDArray[Any] = validate_data(
            estimator, X, reset=reset, dtype="numeric", ensure_all_finite=False
        )
    except ValueError as error:
        raise InputError(str(error)) from None
    return checked


def _column_names(source: ItemSource) -> list[str] | None:
    """Return the names of features, if all are text (as in scikit-learn)."""
    columns = getattr(source, "columns", None)
    if isinstance(source, TextSource) and source.shape == (1,):
        return None  # Whatever the only column is called.
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def _same_features(estimator: Any, source: ItemSource) -> ItemSource:
    _check_encoder(estimator.encoder_, source)
    if input_kind(source) != estimator.input_kind_:
        words = {"array": "features or images", "text": "texts"}
        wanted, got = words[estimator.input_kind_], words[input_kind(source)]
        raise InputError(f"Expected {wanted}, as in `fit`, but got {got}.")
    columns, learned = _column_names(source), getattr(estimator, "feature_names_in_", None)
    if columns is not None and learned is not None and columns != learned.tolist():
        raise InputError(
            "The feature names should match those that were passed during fit, in the same order: "
            f"expected {first_few(learned, 10)}, but got {first_few(columns, 10)}."
        )
    expected = estimator.input_shape_
    if tuple(source.shape) != expected and estimator.input_kind_ == "text":
        wanted, got = map(_describe_texts, (expected, source.shape))
        raise InputError(
            f"Expected {wanted}, as in `fit`, but got {got}. Name the columns with --text-column "
            "on the command line."
        )
    if tuple(source.shape) != expected:
        raise InputError(
            f"Expected items of shape {expected}, as in `fit`, but got {tuple(source.shape)}."
        )
    return source


def _describe_texts(shape: tuple[int, ...]) -> str:
    return "pairs of texts" if shape == (2,) else "one text per item"


def _check_encoder(learned: EncoderRecord | None, source: ItemSource) -> None:
    """Raise if items are not encoded as those of `fit` are; plain arrays are taken on trust."""
    if learned is None:
        return
    if isinstance(source, TextSource | ImageSource):
        raise InputError(
            f"The model was fitted on features by the encoder {learned.name}: encode new items in "
            "the same way first, `encode(X, encoder_from_record(model.encoder_))` of "
            "annotrace.data, or use `annotrace predict`."
        )
    given = encoder_of(source)
    if given is not None and given.fingerprint != learned.fingerprint:
        raise InputError(
            f"The features are by the encoder {given.name} ({given.fingerprint[:12]}), but the "
            f"model was fitted on those by {learned.name} ({learned.fingerprint[:12]}). Encode "
            "the items with the encoder of `fit`."
        )


def _by_name(source: ItemSource, table: LabelTable) -> LabelTable:
    if table.positional:
        _check_length(source, table)
        return table
    if source.items is None:
        raise InputError(
            "The items of the labels have names, but the rows of X have none: pass the item of "
            "each row with `fit(X, table, items=names)`, a frame with an item column, or a file "
            "saved with np.savez(path, X=features, items=names). For scikit-learn's tools, match "
            "the table to the rows first: `table.match_items(names, positional=True)`."
        )
    return table.match_items(source.items)


def _check_length(source: ItemSource, table: LabelTable) -> None:
    if len(source) != table.n_items:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: {len(source)} rows of X "
            f"and labels for {table.n_items} items."
        )


def _all(classes: Names, y: NDArray[Any]) -> list[Any]:
    """Return the known classes, followed by the other classes of an array of labels."""
    return list(union_names(classes, encode_answers(y, "y").names).tolist())
