"""Who labels what next."""

from annotrace.allocation.next_labels import Fitted, allocate

__all__ = ["Fitted", "allocate"]
