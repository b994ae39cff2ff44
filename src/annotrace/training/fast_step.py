"""The training step, recorded once and replayed.

A step on a small network is a hundred operations of a few microseconds, and a GPU waits for Python
between them. Recorded as a CUDA graph it is launched in one call. A graph repeats what was recorded
on the same addresses and in the same shapes, so here

- a graph is kept for each shape of batch: items, and labels among them. Dense tables and those of
  one label an item have one shape, and a second for the last batch of an epoch;
- the first steps run as they are. They are steps of the training like any other, so that nothing
  has to be undone, and they show whether a graph may take over: it may not where a step waits for
  the GPU or draws random numbers outside it, since neither would happen again;
- learning rates are tensors, which a schedule changes in place.
"""

from __future__ import annotations

import contextlib
import logging
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from annotrace.training.optimizers import RowAdam

Step: TypeAlias = Callable[[Tensor, int], None]
"""Learns from some items, which have so many labels."""

WARM_UP = 3
"""Steps before the first recording: libraries make their choices and optimisers their moments."""

MAX_GRAPHS = 64
"""Shapes to record at most; where items differ much in their labels, the rest run as they are."""

_log = logging.getLogger(__name__)


class Recorder(Protocol):
    """Something that can record operations and do them again."""

    def aside(self) -> contextlib.AbstractContextManager[None]:
        """Give the context in which steps run before they are recorded."""
        ...

    def waits(self) -> contextlib.AbstractContextManager[list[str]]:
        """Give a context that lists the times the program waited for the device."""
        ...

    def record(self, operations: Callable[[], None]) -> Callable[[], None]:
        """Record operations without doing them; give what does them."""
        ...


class FastStep:
    """A step that is replayed where it can be.

    Parameters
    ----------
    step : Step
        The step as it is.
    optimizers : sequence of Optimizer
        Those that it steps.
    recorder : Recorder

    Attributes
    ----------
    refusal : str or None
        Why the step is not recorded, once that is known.
    """

    def __init__(self, step: Step, optimizers: Sequence[Optimizer], recorder: Recorder) -> None:
        self._step, self._optimizers, self._recorder = step, optimizers, recorder
        self._met: Counter[tuple[int, int]] = Counter()
        self._replays: dict[tuple[int, int], _Replay] = {}
        self.refusal: str | None = None
        hold_rates(optimizers)

    @property
    def n_recorded(self) -> int:
        """Number of shapes that are replayed."""
        return len(self._replays)

    def __call__(self, item: Tensor, n_labels: int) -> None:
        """Learn from some items, which have so many labels."""
        shape = len(item), n_labels
        if shape not in self._replays and self._is_due(shape):
            self._record(item, n_labels)
        if shape in self._replays:
            self._replays[shape](item)
            return
        with self._recorder.aside():
            self._run(item, n_labels)
        self._met[shape] += 1

    def _is_due(self, shape: tuple[int, int]) -> bool:
        return (
            self.refusal is None
            and self._met[shape] > 0
            and self._met.total() >= WARM_UP
            and self.n_recorded < MAX_GRAPHS
        )

    def _run(self, item: Tensor, n_labels: int) -> None:
        if self._met.total() != WARM_UP - 1:
            self._step(item, n_labels)
            return
        before = _randomness_of_the_host()
        with self._recorder.waits() as waits:
            self._step(item, n_labels)
        if waits:
            self._refuse(f"it waits for the device ({waits[0]})")
        elif before != _randomness_of_the_host():
            self._refuse("it draws random numbers on the host")

    def _record(self, item: Tensor, n_labels: int) -> None:
        held = item.clone()
        try:
            replay = self._recorder.record(lambda: self._step(held, n_labels))
        except RuntimeError as error:
            self._refuse(str(error).splitlines()[0])
        else:
            self._replays[len(item), n_labels] = _Replay(held, replay)
        for optimizer in self._optimizers:
            optimizer.zero_grad(set_to_none=True)

    def _refuse(self, why: str) -> None:
        self.refusal = why
        _log.info("The training step is not replayed: %s.", why)


class _Replay:
    """A recorded step and the items it reads."""

    def __init__(self, item: Tensor, replay: Callable[[], None]) -> None:
        self._item, self._replay = item, replay

    def __call__(self, item: Tensor) -> None:
        self._item.copy_(item)
        self._replay()


class CudaRecorder:
    """Records CUDA graphs, all in one pool of memory, since they never run at the same time.

    Parameters
    ----------
    device : torch.device
    """

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Run on the stream of the recording: what libraries keep, they keep by stream."""
        around = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(around)
        with torch.cuda.stream(self._stream):
            yield
        around.wait_stream(self._stream)

    @contextlib.contextmanager
    def waits(self) -> Iterator[list[str]]:
        """List the times the program waited for the GPU, as far as torch tells."""
        waits: list[str] = []
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                yield waits
            finally:
                torch.cuda.set_sync_debug_mode(before)
        for warning in caught:
            if "synchronizing CUDA operation" in str(warning.message):
                waits.append(f"{warning.filename}:{warning.lineno}")
            else:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )

    def record(self, operations: Callable[[], None]) -> Callable[[], None]:
        """Record a graph; if that fails, randomness is as it was before."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self._stream.device):
            generator = torch.cuda.default_generators[torch.cuda.current_device()]
            # A recording that fails leaves the generator in the middle of it, of no further use.
            spare = generator.clone_state()
            try:
                with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                    operations()
            except RuntimeError:
                generator.graphsafe_set_state(spare)
                raise
        return graph.replay


def recorder_for(
    device: torch.device, optimizers: Sequence[Optimizer], *, resident: bool, scaled: bool
) -> Recorder | None:
    """Give what records the steps of a training, or None where they cannot be.

    Parameters
    ----------
    device : torch.device
    optimizers : sequence of Optimizer
        `RowAdam` looks for the rows that a batch touched, which differ in number.
    resident : bool
        Whether the data are on the device; batches from elsewhere come by the host.
    scaled : bool
        Whether the loss is scaled, by a factor that depends on whether the last step overflowed.
    """
    by_row = any(isinstance(optimizer, RowAdam) for optimizer in optimizers)
    if device.type != "cuda" or by_row or scaled or not resident:
        return None
    return CudaRecorder(device)


def hold_rates(optimizers: Sequence[Optimizer]) -> None:
    """Make learning rates tensors on the device, which a recorded step reads each time."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            device = group["params"][0].device
            group["lr"] = torch.tensor(float(group["lr"]), dtype=torch.float32, device=device)
            group["capturable"] = True


def _randomness_of_the_host() -> tuple[object, ...]:
    """Give the state of all generators outside the device, in a form that can be compared."""
    numpy = np.random.get_state(legacy=True)  # noqa: NPY002 - a network of the user's may use it
    return torch.get_rng_state().numpy().tobytes(), random.getstate(), repr(numpy)
