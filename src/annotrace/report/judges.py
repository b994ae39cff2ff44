"""The page about a panel of judges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annotrace.atomic import atomic_write
from annotrace.errors import count
from annotrace.judges import Judge, JudgePanel
from annotrace.judges.drift import PeriodScore
from annotrace.judges.wording import describe_drifts, describe_model, listed
from annotrace.report.annotators import MAX_MATRIX_CLASSES, Cell
from annotrace.report.curves import Curve, make_curve
from annotrace.report.overview import Headline
from annotrace.report.page import render_template
from annotrace.version import __version__

# With fewer gold items than this, intervals of accuracy are wider than .15.
FEW_GOLD = 100
MAX_CURVES = 12


class JudgeRow(NamedTuple):
    """A judge as the page shows it: its estimates, and its matrix [true][reported]."""

    judge: Judge
    matrix: list[list[Cell]]


class JudgesOverview(NamedTuple):
    """What the first screen says: the headline, and what to do next."""

    headline: Headline
    steps: list[str]


def write_judges_report(panel: JudgePanel, path: str | Path, *, title: str = "Judges") -> None:
    """Write an evaluation of judges as one HTML page.

    Parameters
    ----------
    panel : JudgePanel
        The result of `annotrace.judges.evaluate`.
    path : str or Path
        The file to write; it needs no other file and no network.
    title : str
    """
    page = render_judges(panel, title=title)
    with atomic_write(Path(path)) as file:
        file.write(page.encode("utf-8"))


def render_judges(panel: JudgePanel, *, title: str = "Judges") -> str:
    """Return the page as text; parameters as in `write_judges_report`."""
    names = [str(name) for name in panel.table.classes.tolist()]
    return render_template(
        "judges.html.jinja",
        title=title,
        version=__version__,
        panel=panel,
        overview=JudgesOverview(_headline(panel), list(_steps(panel))),
        rows=_rows(panel),
        classes=names,
        groups=_groups(panel),
        sizes=_size_curve(panel),
        shares=[share for share in panel.shares if share.source == "panel"],
        periods=list(_period_curves(panel)),
        drifts=list(describe_drifts(panel)),
        models=[describe_model(model) for model in panel.model_rows],
        with_cost=len({row.cost for row in panel.rows}) > 1,
    )


def _headline(panel: JudgePanel) -> Headline:
    votes = panel.panel
    if votes is not None:
        best, n_gold = votes.best_judge, count(votes.n_gold, "gold item")
        if votes.is_better:
            lead = f"Its majority vote is significantly more accurate than {best}, on {n_gold}."
            return Headline("good", "The panel is better than its best judge", lead)
        if votes.is_worse:
            lead = f"{best} alone is significantly more accurate than the vote, on {n_gold}."
            return Headline("care", "One judge is better than the panel", lead)
        lead = f"{n_gold} show no significant difference between the vote and {best}."
        return Headline("good", "The panel is as good as its best judge", lead)
    if panel.replacements:
        passing = [each.judge for each in panel.replacements if each.passes]
        tone = "good" if passing else "care"
        may = f"{len(passing)} of {count(len(panel.rows), 'judge')} may stand in for a person"
        lead = f"By the alternative annotator test: {listed(passing) or 'none'}."
        return Headline(tone, may, lead)
    return Headline(
        "unknown",
        "The accuracy of the judges is unknown",
        "Without gold items or labels by people, labels show only how far judges agree with each "
        "other, and judges that err together agree too.",
    )


def _steps(panel: JudgePanel) -> Iterator[str]:
    """Yield what to do next."""
    if panel.n_gold < FEW_GOLD:
        have = f"There are {panel.n_gold} gold items" if panel.n_gold else "There is no gold"
        yield (
            f"{have}: have {FEW_GOLD} items or more, drawn at random, labelled by an expert, and "
            "evaluate again."
        )
    if panel.unlike is not None:
        yield (
            "Draw gold items at random: for these, judges report other classes than for the rest, "
            "so that accuracies hold for items like these only."
        )
    votes = panel.panel
    if votes is not None and len(votes.smallest) < len(panel.rows):
        cost = votes.steps[len(votes.smallest) - 1].cost
        total = sum(row.cost for row in panel.rows)
        yield (
            f"Use {listed(votes.smallest)}: as good as all judges within noise, at a cost of "
            f"{cost:g} instead of {total:g} per item."
        )
    for group in _groups(panel):
        yield f"Do not count {listed(group)} as separate opinions: they err together."
    if panel.shares:
        yield "Report the corrected class shares, not the shares of the labels."
    moving = [each.judge for each in panel.drifts if each.is_significant]
    if moving:
        yield f"Find out what changed over time for {listed(moving)}."


def _rows(panel: JudgePanel) -> list[JudgeRow]:
    """Return the judges, the best first, with their matrices if these are readable."""
    shown = panel.table.n_classes <= MAX_MATRIX_CLASSES and panel.n_gold > 0
    names = panel.table.annotators.tolist()
    return [
        JudgeRow(row, _matrix(panel.counts[names.index(row.judge)]) if shown else [])
        for row in panel.ranked()
    ]


def _matrix(counts: Any) -> list[list[Cell]]:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return [[Cell(float(share)) for share in row] for row in shares]


def _groups(panel: JudgePanel) -> list[list[Any]]:
    """Return the names of judges that err together."""
    found = panel.dependence
    groups = () if found is None else found.groups
    return [panel.table.annotators[list(group.annotators)].tolist() for group in groups]


def _size_curve(panel: JudgePanel) -> Curve | None:
    votes = panel.panel
    if votes is None or len(votes.steps) < 2:
        return None
    points = [(step.n_judges, step.validated) for step in votes.steps]
    size = len(votes.smallest)
    summary = f"The smallest panel that is as good as all judges within noise has {size}, marked."
    title = "Accuracy of the vote, by number of judges (cross-validated)"
    return make_curve(title, summary, [points], points[size - 1])


def _period_curves(panel: JudgePanel) -> Iterator[Curve]:
    """Yield the agreement of each judge by period, all on one scale."""
    by_judge: dict[Any, list[PeriodScore]] = {}
    for score in panel.period_rows:
        by_judge.setdefault(score.judge, []).append(score)
    values = [score.agreement.value for score in panel.period_rows]
    for judge, scores in list(by_judge.items())[:MAX_CURVES]:
        if len(scores) > 1:
            points = [(place, score.agreement.value) for place, score in enumerate(scores, 1)]
            summary = f"From {scores[0].period} to {scores[-1].period}."
            yield make_curve(str(judge), summary, [points], y_range=(min(values), max(values)))
