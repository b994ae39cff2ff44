"""For people: the HTML page, and figures."""

from annotrace.report.page import write_report

__all__ = ["write_report"]
