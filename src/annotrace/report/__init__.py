"""The HTML reports and the figures."""

from annotrace.report.judges import write_judges_report
from annotrace.report.page import write_report

__all__ = ["write_judges_report", "write_report"]
