import numpy as np
import pytest

from annotrace.data import load_digits
from annotrace.errors import InputError


def test_split_is_seeded_and_divides_the_items():
    digits = load_digits()
    train, test = digits.split(1400)
    assert (len(train.y), len(test.y)) == (1400, 397)
    np.testing.assert_array_equal(digits.split(1400)[1].X, test.X)
    assert not np.array_equal(digits.split(1400, random_state=1)[1].X, test.X)
    order = np.random.default_rng(0).permutation(1797)
    np.testing.assert_array_equal(train.y, digits.y[order[:1400]])
    np.testing.assert_array_equal(test.y, digits.y[order[1400:]])


@pytest.mark.parametrize("n_train", [0, 1797])
def test_a_split_needs_both_parts(n_train):
    with pytest.raises(InputError, match="from 1 to 1796"):
        load_digits().split(n_train)
