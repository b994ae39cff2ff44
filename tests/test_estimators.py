"""That scikit-learn takes an `Estimator` for one of its own."""

import sys

import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from annotrace.aggregation import DawidSkene
from annotrace.errors import InputError
from annotrace.estimators import check_fitted, convergence_warning, unfitted_copy
from annotrace.labels import LabelTable

TABLE = LabelTable.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1])


def test_it_shows_the_parameters_that_differ_from_their_defaults():
    assert repr(DawidSkene()) == "DawidSkene()"
    assert repr(DawidSkene(one_coin=True, max_iter=3)) == "DawidSkene(max_iter=3, one_coin=True)"


@pytest.mark.parametrize("copy", [clone, unfitted_copy])
def test_a_copy_has_equal_parameters_and_is_not_fitted(copy):
    model = DawidSkene(smoothing=0.5).fit(TABLE)
    other = copy(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "result_")


@pytest.mark.parametrize("check", [check_is_fitted, check_fitted])
def test_whether_it_is_fitted_is_known(check):
    with pytest.raises(NotFittedError, match="DawidSkene instance is not fitted yet"):
        check(DawidSkene())
    check(DawidSkene().fit(TABLE))


def test_it_has_the_tags_of_an_estimator():
    assert get_tags(DawidSkene()).requires_fit
    assert get_tags(DawidSkene()).estimator_type is None


def test_the_warning_is_that_of_scikit_learn_if_somebody_may_filter_it(monkeypatch):
    assert convergence_warning() is ConvergenceWarning
    monkeypatch.delitem(sys.modules, "sklearn.exceptions")
    assert convergence_warning() is UserWarning
    assert issubclass(ConvergenceWarning, UserWarning)


def test_an_unknown_parameter_changes_nothing():
    model = DawidSkene()
    with pytest.raises(InputError, match="Invalid parameter 'tolerance' for DawidSkene, which has"):
        model.set_params(tolerance=1)
    assert model.set_params(tol=0.1).tol == 0.1
