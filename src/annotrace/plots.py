"""Figures of a fitted crowd on matplotlib axes, from `annotrace.report.figures`."""

from annotrace.report.figures import confusion, items, reliability, skills

__all__ = ["confusion", "items", "reliability", "skills"]
