"""Label tables, and the reading and writing of label files."""

from annotrace.labels.table import LabelTable

__all__ = ["LabelTable"]
