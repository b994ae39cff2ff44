"""Labels come in: the table, the readers and the checks."""

from annotrace.labels.table import LabelTable

__all__ = ["LabelTable"]
