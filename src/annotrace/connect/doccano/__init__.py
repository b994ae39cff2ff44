"""doccano 1.8, over its HTTP API."""

from annotrace.connect.doccano.project import Doccano

__all__ = ["Doccano"]
