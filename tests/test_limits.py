import pytest

from annotrace.errors import InputError, LimitError
from annotrace.limits import FREE_SIZE, Limits


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "8"])
def test_limits_are_positive_integers(wrong):
    with pytest.raises(InputError, match="Expected `max_columns` to be a positive integer"):
        Limits(max_columns=wrong)


def test_the_expansion_counts_above_the_free_size():
    limits = Limits(max_expansion=10)
    limits.check_size(FREE_SIZE, 1, "a.gz")
    limits.check_size(10 * FREE_SIZE, FREE_SIZE, "a.gz")
    with pytest.raises(LimitError, match="expansion"):
        limits.check_size(10 * FREE_SIZE, FREE_SIZE - 1, "a.gz")
