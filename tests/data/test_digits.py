import numpy as np
from sklearn import datasets

from annotrace.data import load_digits


def test_digits_are_those_of_scikit_learn():
    digits = load_digits()
    expected = datasets.load_digits()
    assert digits.X.dtype == np.float32
    np.testing.assert_array_equal(digits.X, expected.data)
    np.testing.assert_array_equal(digits.classes[digits.y], expected.target)
    np.testing.assert_array_equal(load_digits(images=True).X, expected.images)
