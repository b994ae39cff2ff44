"""Scorers for the `scoring` of scikit-learn's tools, with the truth and without it."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import plain_names
from annotrace.methods.inputs import has_several_annotators, labels_of_one


def label_likelihood_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return the mean log-likelihood of held-out labels; the truth is not needed.

    As the `score` of a crowd classifier, except that a vector is the labels of one annotator.

    Parameters
    ----------
    estimator : CrowdEstimator, or a Pipeline that ends with one
    X : array of shape (n_items, ...) or frame
    y : LabelTable, array of shape (n_items,) or array of shape (n_items, n_annotators)
        As in `fit`.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from annotrace.methods import Vanilla
    >>> X, y = np.array([[0.0], [1.0]] * 20), np.array([0, 1] * 20)
    >>> model = Vanilla(epochs=20, lr=0.1, random_state=0)
    >>> bool(cross_val_score(model, X, y, scoring=label_likelihood_scorer).min() > np.log(0.5))
    True
    """
    labels = y if has_several_annotators(y) else labels_of_one(y, known=True)
    return float(estimator.score(X, labels))


def truth_accuracy_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return the accuracy on the items of a table whose true class is known.

    Parameters
    ----------
    estimator : CrowdEstimator, or a Pipeline that ends with one
    X : array of shape (n_items, ...) or frame
    y : LabelTable
        Its item k is row k of X, and `truth` is set; see `LabelTable.with_truth`.
    """
    truth = y.truth if isinstance(y, LabelTable) else None
    if truth is None or np.all(truth < 0):
        raise InputError(
            "Expected y to be a LabelTable in which the true class of some items is known: set "
            "it with `table.with_truth(classes)`, or score without truth by "
            "`label_likelihood_scorer`."
        )
    known = truth >= 0
    predicted = np.asarray(estimator.predict(X))[known]
    return float(np.mean(predicted == plain_names(y.classes)[truth[known]]))
