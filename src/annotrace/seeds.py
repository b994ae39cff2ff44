"""Seeds from what scikit-learn calls a random state."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotrace.errors import InputError


def seed_of(random_state: Any) -> int:
    """Return a seed for a random state: None, an integer or a numpy generator."""
    if random_state is None:
        return _fresh_seed()
    if isinstance(random_state, int | np.integer):
        return int(random_state) if random_state < 2**32 else _hash_seed(int(random_state))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise InputError(
        f"Expected `random_state` to be None, an integer or a numpy generator, "
        f"but got {random_state!r}."
    )


def _fresh_seed() -> int:
    """Return a seed that no earlier run had."""
    return int(np.random.default_rng().integers(2**31))


def _hash_seed(seed: int) -> int:
    """Reduce a seed of any size to 32 bits, so that torch accepts multiples of it."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0])
