"""Label Studio, community edition 1.23, over its HTTP API."""

from annotrace.connect.label_studio.project import LabelStudio

__all__ = ["LabelStudio"]
