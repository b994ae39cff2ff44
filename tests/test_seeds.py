import numpy as np
import pytest

from annotrace.errors import InputError
from annotrace.seeds import seed_of


def test_seeds():
    assert seed_of(5) == seed_of(np.int64(5)) == 5
    large = [seed_of(2**power) for power in (31, 32, 45, 62, 64, 100)]
    assert large[0] == 2**31
    assert len(set(large)) == 6
    assert max(large) < 2**32
    for make in (np.random.default_rng, np.random.RandomState):
        assert seed_of(make(0)) == seed_of(make(0))
    with pytest.raises(InputError, match="an integer or a numpy generator"):
        seed_of("one")


def test_no_random_state_gives_fresh_seeds(monkeypatch):
    monkeypatch.undo()
    assert seed_of(None) != seed_of(None)
