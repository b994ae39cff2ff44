"""Training steps captured as CUDA graphs.

A step on a small network launches about a hundred kernels of a few microseconds each, and the GPU
idles while Python launches them. A CUDA graph launches them all in one call. A graph repeats the
captured kernels on the same addresses with the same shapes. Therefore

- there is one graph per batch shape (number of items, number of labels). Dense tables and tables
  with one label per item have one shape, plus one for the last batch of an epoch;
- the first steps run eagerly. They are ordinary training steps, so nothing has to be undone, and
  they show whether a graph would repeat the step correctly. It would not if the step synchronises
  with the GPU or draws random numbers on the host;
- learning rates are tensors, which the schedule changes in place.
"""

from __future__ import annotations

import contextlib
import logging
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from annotrace.threads import GLOBAL_STATE
from annotrace.training.optimizers import make_capturable

Step: TypeAlias = Callable[[Tensor, int], None]
"""A training step on items, LongTensor of shape (n_rows,), with a given number of labels."""

WARM_UP_STEPS = 3
"""Eager steps before the first capture: libraries select kernels, optimisers allocate moments."""

MAX_GRAPHS = 64
"""Maximum number of captured shapes; batches of further shapes run eagerly."""

_log = logging.getLogger(__name__)


class CudaCapturer:
    """Captures CUDA graphs in one memory pool, because they never run at the same time.

    Parameters
    ----------
    device : torch.device
    generator : torch.Generator, optional
        From which the operations draw on the device, beside torch's global generator.
    """

    def __init__(self, device: torch.device, generator: torch.Generator | None = None) -> None:
        self._stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()
        self._generator = generator

    @contextlib.contextmanager
    def warm_up(self) -> Iterator[None]:
        """Run on the stream of the capture, because libraries keep their workspaces per stream."""
        current = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            yield
        current.wait_stream(self._stream)

    @contextlib.contextmanager
    def synchronizations(self) -> Iterator[list[str]]:
        """List where the host waits for the GPU, as far as torch reports it."""
        places: list[str] = []
        # The mode and the warning filters are those of all threads.
        with GLOBAL_STATE, warnings.catch_warnings(record=True) as caught:
            previous_mode = torch.cuda.get_sync_debug_mode()
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                yield places
            finally:
                torch.cuda.set_sync_debug_mode(previous_mode)
        for warning in caught:
            message = str(warning.message)
            if "synchronizing CUDA operation" in message:
                places.append(f"{warning.filename}:{warning.lineno}")
            elif "Synchronization debug mode is a prototype" not in message:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )

    def capture(self, operations: Callable[[], None]) -> Callable[[], None]:
        """Capture a graph; if that fails, restore the random states of the GPU."""
        graph = torch.cuda.CUDAGraph()
        # Every capture involves the global generator, so that only one thread captures at a time.
        with GLOBAL_STATE, torch.cuda.device(self._stream.device):
            generators = [torch.cuda.default_generators[torch.cuda.current_device()]]
            if self._generator is not None:
                generators.append(self._generator)
                graph.register_generator_state(self._generator)
            # A failed capture leaves a generator in capture mode, where it is unusable.
            saved_states = [generator.clone_state() for generator in generators]
            try:
                # "thread_local": other threads may allocate memory and wait for their streams.
                with torch.cuda.graph(
                    graph,
                    pool=self._pool,
                    stream=self._stream,
                    capture_error_mode="thread_local",
                ):
                    operations()
            except RuntimeError:
                for generator, state in zip(generators, saved_states, strict=True):
                    generator.graphsafe_set_state(state)
                raise
        return graph.replay


class GraphedStep:
    """A training step that is replayed from a CUDA graph where possible.

    Parameters
    ----------
    step : Step
        The eager step.
    optimizers : sequence of Optimizer
        The optimisers that `step` uses.
    capturer : CudaCapturer

    Attributes
    ----------
    eager_reason : str or None
        Why no graph can be captured, once that is known.
    """

    def __init__(self, step: Step, optimizers: Sequence[Optimizer], capturer: CudaCapturer) -> None:
        self._step, self._optimizers, self._capturer = step, optimizers, capturer
        self._n_eager: Counter[tuple[int, int]] = Counter()
        self._graphs: dict[tuple[int, int], tuple[Tensor, Callable[[], None]]] = {}
        self.eager_reason: str | None = None
        make_capturable(optimizers)

    @property
    def n_graphs(self) -> int:
        """Number of captured shapes."""
        return len(self._graphs)

    def __call__(self, item: Tensor, n_labels: int) -> None:
        """Train on a batch.

        Parameters
        ----------
        item : LongTensor of shape (n_rows,)
        n_labels : int
            The number of labels of these items.
        """
        shape = len(item), n_labels
        if shape not in self._graphs and self._should_capture(shape):
            self._capture(item, n_labels)
        if shape in self._graphs:
            graph_item, replay = self._graphs[shape]
            graph_item.copy_(item)
            replay()
            return
        with self._capturer.warm_up():
            self._run_eagerly(item, n_labels)
        self._n_eager[shape] += 1

    def _should_capture(self, shape: tuple[int, int]) -> bool:
        return (
            self.eager_reason is None
            and self._n_eager[shape] > 0
            and self._n_eager.total() >= WARM_UP_STEPS
            and self.n_graphs < MAX_GRAPHS
        )

    def _run_eagerly(self, item: Tensor, n_labels: int) -> None:
        if self._n_eager.total() != WARM_UP_STEPS - 1:
            self._step(item, n_labels)
            return
        rng_states = _host_rng_states()
        with self._capturer.synchronizations() as synchronizations:
            self._step(item, n_labels)
        if synchronizations:
            self._stay_eager(f"it waits for the device ({synchronizations[0]})")
        elif rng_states != _host_rng_states():
            self._stay_eager("it draws random numbers on the host")

    def _capture(self, item: Tensor, n_labels: int) -> None:
        graph_item = item.clone()
        try:
            replay = self._capturer.capture(lambda: self._step(graph_item, n_labels))
        except RuntimeError as error:
            self._stay_eager(str(error).splitlines()[0])
        else:
            self._graphs[len(item), n_labels] = graph_item, replay
        for optimizer in self._optimizers:
            optimizer.zero_grad(set_to_none=True)

    def _stay_eager(self, reason: str) -> None:
        self.eager_reason = reason
        _log.info("The training step is not captured as a CUDA graph: %s.", reason)


def make_capturer(
    device: torch.device,
    generator: torch.Generator | None = None,
    *,
    resident: bool,
    scaled: bool,
) -> CudaCapturer | None:
    """Return the capturer for a training, or None if its steps cannot be captured.

    Parameters
    ----------
    device : torch.device
    generator : torch.Generator, optional
        As in `CudaCapturer`.
    resident : bool
        Whether the data are on the device; otherwise every batch is copied from the host.
    scaled : bool
        Whether the loss is scaled by a factor that depends on overflow in the previous step.
    """
    if device.type != "cuda" or scaled or not resident:
        return None
    return CudaCapturer(device, generator)


def _host_rng_states() -> tuple[object, ...]:
    """Return the states of all random generators of the host, in a comparable form."""
    numpy = np.random.get_state(legacy=True)  # noqa: NPY002 - the user's network may use it
    return torch.get_rng_state().numpy().tobytes(), random.getstate(), repr(numpy)
