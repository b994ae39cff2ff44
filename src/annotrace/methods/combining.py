"""The truth of items that came after the fit: classifier and labels combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from annotrace.diagnosis.counting import normalised
from annotrace.errors import InputError, first_few
from annotrace.labels.vocabulary import look_up
from annotrace.methods.continuing import matrices_by_name
from annotrace.methods.inputs import Items, match

if TYPE_CHECKING:
    from annotrace.methods.base import CrowdEstimator


def combine(model: CrowdEstimator, X: Any, y: Any, items: Items) -> NDArray[Any]:
    """Give the probability of each class given features and labels, (n_rows, n_classes).

    Parameters
    ----------
    model : CrowdEstimator
        Fitted.
    X, y, items
        As in `fit`. Annotators and classes are matched by name; an annotator whom the model does
        not know has the pool's matrix.
    """
    if not hasattr(model, "confusion_"):
        raise InputError(
            f"{type(model).__name__} has learned nothing of annotators, so labels cannot be "
            "weighed: use `predict_proba`, or a method with `confusion_`."
        )
    source, table = match(clone(model), X, y, items, model.table_.classes)
    code = look_up(table.classes, model.table_.classes)
    if np.any(code < 0):
        unknown = table.classes[code < 0]
        raise InputError(
            f"The labels have classes {first_few(unknown)} that were not there in `fit`."
        )
    confusion = matrices_by_name(model.table_, model.confusion_, table)
    scores = np.log(np.maximum(model.predict_proba(source), 1e-300))
    said = np.log(np.maximum(confusion, 1e-12))[table.annotator, :, code[table.label]]
    np.add.at(scores, table.item, said)
    return normalised(scores)
