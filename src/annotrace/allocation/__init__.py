"""Which labels to collect next, from whom, and which items an expert should check."""

from annotrace.allocation.gold_items import gold_items, gold_needed
from annotrace.allocation.next_labels import Fitted, allocate

__all__ = ["Fitted", "allocate", "gold_items", "gold_needed"]
