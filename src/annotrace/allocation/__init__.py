"""Which labels to collect next, and from whom."""

from annotrace.allocation.next_labels import Fitted, allocate

__all__ = ["Fitted", "allocate"]
