"""Estimators as scikit-learn knows them, without importing it.

scikit-learn takes a second to import, half the time that a small table needs in all, and asks no
more of an estimator than the methods of `Estimator`. What it alone has, its exceptions and tags, is
imported when it is needed.
"""

from __future__ import annotations

import sys
from copy import deepcopy
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from annotrace.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self

Model = TypeVar("Model", bound="Estimator")


class Estimator:
    """A dataclass whose fields are parameters; `sklearn.base.clone` and the like accept it.

    Examples
    --------
    >>> from annotrace.aggregation import DawidSkene
    >>> DawidSkene().set_params(max_iter=50)
    DawidSkene(max_iter=50)
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, in alphabetical order.

        Parameters
        ----------
        deep : bool
            For scikit-learn; parameters are no estimators that have parameters themselves.
        """
        return {name: getattr(self, name) for name in sorted(_defaults(self))}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        known = _defaults(self)
        for name, value in params.items():
            if name not in known:
                raise InputError(
                    f"Invalid parameter {name!r} for {type(self).__name__}, which has "
                    f"{', '.join(sorted(known))}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        default = _defaults(self)
        changed = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(default[name])
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")


def _defaults(model: Any) -> dict[str, Any]:
    return {field.name: field.default for field in fields(model) if field.init}


def unfitted_copy(model: Model) -> Model:
    """Return an estimator with the same parameters that is not fitted."""
    return type(model)(**deepcopy(model.get_params()))


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's `NotFittedError` for an estimator that is not fitted."""
    if hasattr(model, "result_"):
        return
    from sklearn.exceptions import NotFittedError

    raise NotFittedError(
        f"This {type(model).__name__} instance is not fitted yet: call `fit` first."
    )


def convergence_warning() -> type[Warning]:
    """Return scikit-learn's `ConvergenceWarning`, or its base class if that is not imported.

    Whoever filters the warning has imported it; for others it would take longer than many a fit.
    """
    loaded = sys.modules.get("sklearn.exceptions")
    return UserWarning if loaded is None else loaded.ConvergenceWarning
