"""The random numbers of a fit, from generators that nothing else draws from.

Torch's global generators are shared by all threads of a process: fits that drew from them at the
same time would change each other's numbers, and the caller's. Each fit therefore owns its
generators. Two kinds of code cannot be passed one:

- torch's layers, which draw their initial weights when they are built. A function mode, which is
  local to the thread, passes them the generator of the fit;
- the user's own module, whose dropout draws from the global generators. They have the states of the
  fit while that module runs, one fit at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from annotrace.threads import GLOBAL_STATE


class Randomness:
    """The generators of a fit, on the host and on its device.

    Parameters
    ----------
    seed : int
    device : torch.device
    lends : bool
        Whether `lent` does anything: for a network that draws from the global generators.
    """

    def __init__(self, seed: int, device: torch.device, *, lends: bool = False) -> None:
        self.lends, self._device, self._is_lent = lends, device, False
        self._host = torch.Generator()
        self._on_device = self._host if device.type == "cpu" else torch.Generator(device)
        self._seed(seed)

    @property
    def generator(self) -> torch.Generator | None:
        """The generator to draw from on the device; None, for the global one, while it is lent."""
        return None if self._is_lent else self._on_device

    @contextmanager
    def initial_weights(self) -> Iterator[None]:
        """Draw the initial weights of the layers that are built in the block from the generator."""
        with _DrawFrom(self._host):
            yield

    @contextmanager
    def reseeded(self, seed: int) -> Iterator[None]:
        """Draw from another seed in the block, and continue afterwards as if it had not run."""
        state = self.state()
        self._seed(seed)
        try:
            yield
        finally:
            self.set_state(state)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let the block draw from torch's global generators, which then get their states back.

        Other fits that lend theirs wait. Nothing else should draw from the global generators in
        another thread meanwhile.
        """
        if not self.lends or self._is_lent:
            yield
            return
        with GLOBAL_STATE:
            callers = _global_states(self._device)
            try:
                _set_global_states(self.state(), self._device)
                self._is_lent = True
                yield
            finally:
                self._is_lent = False
                self.set_state(_global_states(self._device))
                _set_global_states(callers, self._device)

    def state(self) -> list[Tensor]:
        """Return the states of the generators: of the host, and of a device that is not."""
        assert not self._is_lent
        return [generator.get_state() for generator in self._generators]

    def set_state(self, state: Sequence[Tensor]) -> None:
        """Restore what `state` returned; on another kind of device, only that of the host."""
        for generator, part in zip(self._generators, state, strict=False):
            generator.set_state(part.cpu())

    def _seed(self, seed: int) -> None:
        for generator in self._generators:
            generator.manual_seed(seed)

    @property
    def _generators(self) -> list[torch.Generator]:
        is_host = self._on_device is self._host
        return [self._host] if is_host else [self._host, self._on_device]


class _DrawFrom(TorchFunctionMode):
    """Pass a generator to the functions of `torch.nn.init` that are called without one."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        if "generator" in given and given["generator"] is None:
            given["generator"] = self._generator
        return func(*args, **given)


def _global_states(device: torch.device) -> list[Tensor]:
    on_gpu = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *on_gpu]


def _set_global_states(states: Sequence[Tensor], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)
