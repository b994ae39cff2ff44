"""The HTML reports and the figures."""

from typing import TYPE_CHECKING, Any

from annotrace.report.page import write_report

if TYPE_CHECKING:
    from annotrace.report.judges import write_judges_report

__all__ = ["write_judges_report", "write_report"]


def __getattr__(name: str) -> Any:
    # Judges need scikit-learn and scipy.stats, which take longer to import than most reports.
    if name == "write_judges_report":
        from annotrace.report.judges import write_judges_report

        return write_judges_report
    raise AttributeError(f"module 'annotrace.report' has no attribute {name!r}")
