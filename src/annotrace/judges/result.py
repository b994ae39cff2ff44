"""The result of an evaluation of judges, as frames, text, a dict and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotrace.crowd.dependence import ErrorDependence
from annotrace.judges.accuracy import ClassRate
from annotrace.judges.agreement import Agreement
from annotrace.judges.drift import Drift, PeriodScore
from annotrace.judges.estimates import UNKNOWN, Estimate, flatten_row, frame_of
from annotrace.judges.models import ModelRuns
from annotrace.judges.panel import Panel
from annotrace.judges.people import PersonAgreement
from annotrace.judges.prevalence import ClassShare, Unlike
from annotrace.judges.replacement import Comparison, Replacement
from annotrace.judges.wording import describe_panel
from annotrace.labels.frames import POLARS, convert_frame
from annotrace.labels.table import LabelTable


class Judge(NamedTuple):
    """One judge; what cannot be known is NaN, or None.

    Attributes
    ----------
    accuracy, kappa : Estimate
        Against gold.
    is_powered : bool
        Whether items without gold made the interval of the accuracy narrower.
    people, people_kappa : Estimate
        Agreement with people.
    adds : Estimate
        What the accuracy of the panel's vote would lose without the judge.
    winning_rate, advantage, may_replace
        Of the alternative annotator test; see `Replacement`.
    """

    judge: Any
    n_labels: int
    n_gold: int = 0
    accuracy: Estimate = UNKNOWN
    kappa: Estimate = UNKNOWN
    is_powered: bool = False
    people: Estimate = UNKNOWN
    people_kappa: Estimate = UNKNOWN
    adds: Estimate = UNKNOWN
    cost: float = 1.0
    adds_per_cost: float = float("nan")
    winning_rate: float = float("nan")
    advantage: float = float("nan")
    may_replace: bool | None = None


@dataclass(frozen=True, eq=False, repr=False)
class JudgePanel:
    """What is known of a panel of judges; see `annotrace.judges.evaluate`.

    Attributes
    ----------
    table : LabelTable
        Labels of the judges alone.
    n_gold : int
        Gold items with labels of judges.
    rows : sequence of Judge
    rates : sequence of ClassRate
        How often each judge recognises each class.
    counts : ndarray of shape (n_judges, n_classes, n_classes), int64
        [judge, true, reported], on gold items.
    dependence : ErrorDependence or None
        How far the judges err together; None if it cannot be known.
    is_measured : bool
        Whether `dependence` was measured on gold items, not estimated from labels alone.
    panel : Panel or None
        The panel against its members; None without gold.
    shares : sequence of ClassShare
        Corrected share of each class, by the panel and by each judge.
    unlike : Unlike or None
        How gold items differ from a random sample of all items, if significantly.
    people_together : Agreement or None
        Of two people on one item; None if there are no people.
    people_rows : sequence of PersonAgreement
    replacements, comparisons
        The alternative annotator test of each judge, and of each judge and person.
    epsilon : float
        That of the test.
    drifts, period_rows
        The trend of each judge, and its agreement in each period.
    model_rows : sequence of ModelRuns
        Runs by model.
    """

    table: LabelTable
    n_gold: int
    rows: Sequence[Judge]
    rates: Sequence[ClassRate] = ()
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0, 0), np.int64))
    dependence: ErrorDependence | None = None
    is_measured: bool = False
    panel: Panel | None = None
    shares: Sequence[ClassShare] = ()
    unlike: Unlike | None = None
    people_together: Agreement | None = None
    people_rows: Sequence[PersonAgreement] = ()
    replacements: Sequence[Replacement] = ()
    comparisons: Sequence[Comparison] = ()
    epsilon: float = 0.0
    drifts: Sequence[Drift] = ()
    period_rows: Sequence[PeriodScore] = ()
    model_rows: Sequence[ModelRuns] = ()

    @property
    def judges(self) -> Any:
        """A frame with one row per judge."""
        return self._frame(self.rows)

    @property
    def class_rates(self) -> Any:
        """A frame of recall and precision, one row per judge and class."""
        return self._frame(self.rates)

    @property
    def prevalence(self) -> Any:
        """A frame of corrected class shares, one row per source and class."""
        return self._frame(self.shares)

    def ranked(self) -> list[Judge]:
        """Return the judges by accuracy, else by agreement with people, the highest first."""
        return sorted(self.rows, key=_score, reverse=True)

    def frames(self) -> dict[str, Any]:
        """Return everything as polars frames by name, without those that have no rows."""
        named: dict[str, Sequence[Any]] = {
            "judges": self.rows,
            "rates": self.rates,
            "panels": () if self.panel is None else self.panel.steps,
            "prevalence": self.shares,
            "people": self.people_rows,
            "replacement": self.comparisons,
            "periods": self.period_rows,
            "drift": self.drifts,
            "models": self.model_rows,
        }
        return {name: frame_of(rows) for name, rows in named.items() if rows}

    def as_dict(self) -> dict[str, Any]:
        """Return everything in plain types, for JSON; what is unknown is None."""
        found: dict[str, Any] = {
            "n_items": self.table.n_items,
            "n_labels": self.table.n_labels,
            "n_gold": self.n_gold,
            "classes": self.table.classes.tolist(),
            "summary": str(self),
            "dependence": self._dependence_as_dict(),
            "panel": None,
            "unlike": None if self.unlike is None else self.unlike._asdict(),
            "people": None if self.people_together is None else flatten_row(self.people_together),
            "epsilon": self.epsilon,
        }
        if self.panel is not None:
            panel = flatten_row(self.panel)
            found["panel"] = {k: panel[k] for k in panel if k not in ("steps", "contributions")}
        return found | {f"{name}_rows": frame.to_dicts() for name, frame in self.frames().items()}

    def save(self, folder: str | Path, *, raw: bool = False) -> None:
        """Write csv files and judges.json to a folder; an earlier evaluation is replaced.

        Parameters
        ----------
        folder : str or Path
        raw : bool
            Write names to csv as they are, even if a spreadsheet would take them for formulas; see
            `LabelTable.write`.
        """
        from annotrace.judges.saving import save_panel

        save_panel(self, Path(folder), raw=raw)

    def __str__(self) -> str:
        return "\n".join(describe_panel(self))

    def __repr__(self) -> str:
        sizes = f"{len(self.rows)} judges, {self.table.n_items:,} items, {self.n_gold:,} gold items"
        return f"JudgePanel({sizes})"

    def _frame(self, rows: Sequence[Any]) -> Any:
        return convert_frame(frame_of(rows), self.table.frame_library or POLARS)

    def _dependence_as_dict(self) -> dict[str, Any] | None:
        if self.dependence is None:
            return None
        names = self.table.annotators
        groups = [
            {
                "judges": names[list(group.annotators)].tolist(),
                "correlation": group.correlation,
            }
            for group in self.dependence.groups
        ]
        parts = ("correlation", "low", "high", "n_votes", "effective_votes")
        values: dict[str, Any] = {p: float(getattr(self.dependence, p)) for p in parts}
        return values | {
            "is_measured": self.is_measured,
            "groups": groups,
        }


def _score(row: Judge) -> float:
    known = [part.value for part in (row.accuracy, row.people) if part.is_known]
    return known[0] if known else -1.0
