"""Aggregation by several processes, which divide the items."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from annotrace.aggregation.base import Aggregation, check_labels
from annotrace.aggregation.registry import AGGREGATIONS
from annotrace.crowd.problem import CrowdProblem
from annotrace.crowd.shared_problem import SharedProblem, item_part
from annotrace.distributed import Processes
from annotrace.errors import InputError
from annotrace.labels.gold import Gold, known_classes
from annotrace.labels.table import LabelTable


def check_together(aggregation: Aggregation, processes: Processes) -> None:
    """Check that several processes can fit an aggregation.

    Raises
    ------
    InputError
    """
    if processes.size > 1 and not aggregation.adds_up:
        able = [entry.name for entry in AGGREGATIONS.values() if entry.factory().adds_up]
        raise InputError(
            f"The method {aggregation.method} runs in one process: start it without torchrun, or "
            f"choose another method ({', '.join(able)})."
        )


def fit_together(
    aggregation: Aggregation, table: LabelTable | None, gold: Gold, processes: Processes
) -> None:
    """Fit an aggregation with the items divided among processes; the first has the result.

    Parameters
    ----------
    aggregation : Aggregation
    table : LabelTable or None
        All labels, in the first process; not used in others.
    gold : mapping from item to class, or array-like of shape (n_items,), or None
        As in `Aggregation.fit`, in the first process.
    processes : Processes
    """
    if processes.size == 1:
        assert table is not None
        aggregation.fit(table, gold)
        return
    check_together(aggregation, processes)
    known = None
    if table is not None:
        check_labels(table)
        known = known_classes(table, gold)

    def part(rank: int) -> tuple[LabelTable, NDArray[Any]]:
        assert table is not None
        assert known is not None
        return item_part(table, known, rank, processes.size)

    own = SharedProblem(*processes.hand_out(part), processes)
    model, state = aggregation.estimate(own)
    states = processes.rows_at_first(state)
    if table is not None:
        aggregation.conclude(CrowdProblem(table, known), model, states)
