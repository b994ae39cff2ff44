"""Pictures of what was learned, on matplotlib axes: a door to `annotrace.report.figures`."""

from annotrace.report.figures import confusion, items, reliability, skills

__all__ = ["confusion", "items", "reliability", "skills"]
