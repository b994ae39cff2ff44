"""The HTML report and the figures."""

from annotrace.report.page import write_report

__all__ = ["write_report"]
