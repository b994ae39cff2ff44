import numpy as np
import pytest

from annotrace.errors import InputError
from annotrace.training import Settings


def test_schedules():
    constant = Settings(epochs=10)
    step = Settings(epochs=10, schedule="step", step_every=4)
    cosine = Settings(epochs=10, schedule="cosine")
    warm = Settings(epochs=10, schedule="warm-cosine")
    assert [constant.rate(e) for e in (0, 5, 10)] == [1, 1, 1]
    assert [step.rate(e) for e in (0, 3.9, 4, 8)] == pytest.approx([1, 1, 0.1, 0.01])
    assert [cosine.rate(e) for e in (0, 5, 10)] == pytest.approx([1, 0.5, 0])
    assert [warm.rate(e) for e in (0, 0.5, 1, 5.5, 10)] == pytest.approx([0, 0.5, 1, 0.5, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "`epochs` to be a whole number larger than 0, but got 0"),
        ({"batch_size": 2.5}, r"`batch_size` to be a whole number larger than 0, but got 2\.5"),
        ({"lr": -1}, "`lr` to be a number larger than 0, but got -1"),
        ({"weight_decay": -1}, "`weight_decay` to be a number of at least 0"),
        ({"patience": 0}, "`patience` to be a whole number larger than 0 or None"),
        ({"schedule": "linear"}, "'step', 'cosine' or 'warm-cosine', but got 'linear'"),
        ({"precision": "fp8"}, "'float32', 'bf16' or 'fp16', but got 'fp8'"),
    ],
)
def test_invalid_settings_are_errors(options, message):
    with pytest.raises(InputError, match=message):
        Settings(**options)


def test_numpy_integers_are_accepted():
    assert Settings(epochs=np.int64(3)).epochs == 3
