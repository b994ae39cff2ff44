import numpy as np
import pytest

from annotrace.aggregation.run_schema import (
    DISTRIBUTIONS,
    Array,
    are_distributions,
    check_fields,
)
from annotrace.errors import InputError
from annotrace.parameters import Count

SIZES = {"items": 4, "classes": 2}
POSTERIOR = Array("f", ("items", "classes"), DISTRIBUTIONS)


class TestArray:
    def test_accepts_what_it_describes(self):
        POSTERIOR.check("posterior", np.full((4, 2), 0.5), SIZES)
        POSTERIOR.check("posterior", np.full((4, 2), 0.5, np.float32), SIZES)
        Array("i", (None,)).check("codes", np.arange(7), SIZES)

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            ([[0.5, 0.5]] * 4, r"`x` to be numbers of shape \(4, 2\), but got none"),
            (np.ones((4, 2), int), "but got int64 of shape"),
            (np.full(4, 0.5), r"but got float64 of shape \(4,\)"),
            (np.full((3, 2), 0.5), r"but got float64 of shape \(3, 2\)"),
            (np.full((4, 2), np.inf), "`x` to be finite"),
            (np.full((4, 2), 0.6), "`x` to be probabilities that sum to one"),
        ],
    )
    def test_rejects_others(self, array, message):
        with pytest.raises(InputError, match=message):
            POSTERIOR.check("x", array, SIZES)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([0.25, 0.75], True),
        ([1.0, -4e-20], True),
        ([0.25, 0.7501], True),
        ([0.25, 0.7503], False),
        ([1.5, -0.5], False),
        ([3.0, 0.0], False),
    ],
)
def test_probabilities_sum_to_one(row, expected):
    assert are_distributions(np.array([[0.5, 0.5], row])) is expected


def test_fields_have_names_and_types():
    wanted = {"n": Count, "posterior": POSTERIOR}
    posterior = np.full((4, 2), 0.5)
    check_fields({"n": 3, "posterior": posterior}, wanted, sizes=SIZES)
    check_fields({"n": 3}, wanted, optional=("posterior",))
    with pytest.raises(InputError, match="It lacks n, posterior"):
        check_fields({}, wanted)
    with pytest.raises(InputError, match="`n` to be a whole number larger than 0, but got 0"):
        check_fields({"n": 0, "posterior": posterior}, wanted, sizes=SIZES)
    with pytest.raises(InputError, match="`posterior` to be numbers of shape"):
        check_fields({"n": 1, "posterior": 2}, wanted, sizes=SIZES)
