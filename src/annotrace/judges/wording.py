"""An evaluation of judges in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from annotrace.errors import count
from annotrace.judges.estimates import Estimate

if TYPE_CHECKING:
    from annotrace.judges.drift import Drift
    from annotrace.judges.models import ModelRuns
    from annotrace.judges.panel import Panel
    from annotrace.judges.prevalence import Unlike
    from annotrace.judges.result import JudgePanel

# Names and classes that are listed in a sentence.
_NAMED = 6


def describe_panel(panel: JudgePanel) -> Iterator[str]:
    """Yield sentences about a panel, the most important first."""
    table = panel.table
    known = count(panel.n_gold, "gold item") if panel.n_gold else "no gold items"
    yield f"{count(len(panel.rows), 'judge')}, {count(table.n_items, 'item')}, {known}."
    if panel.panel is not None:
        yield from describe_votes(panel.panel)
    yield from describe_shared_errors(panel)
    yield from describe_prevalence(panel)
    if panel.unlike is not None:
        yield describe_unlike(panel.unlike)
    yield from describe_people(panel)
    yield from map(describe_model, panel.model_rows)
    yield from describe_drifts(panel)


def describe_votes(panel: Panel) -> Iterator[str]:
    """Yield sentences about the panel's vote, its best member and smaller panels."""
    yield (
        f"The majority vote of all judges is correct on {with_interval(panel.accuracy)} of the "
        f"{count(panel.n_gold, 'gold item')}."
    )
    yield (
        f"The vote is {compare(panel)} its best member ({panel.best_judge}): difference "
        f"{with_interval(panel.against_best, signed=True)}, the best member chosen on other items."
    )
    yield (
        f"The default aggregation of the labels, without gold: {with_interval(panel.aggregated)}, "
        f"difference {with_interval(panel.aggregated_against_best, signed=True)}."
    )
    everybody = len(panel.contributions)
    if len(panel.smallest) < everybody:
        names = listed(panel.smallest)
        yield (
            f"The smallest panel that is as good as all {everybody}, within noise: "
            f"{count(len(panel.smallest), 'judge')} ({names})."
        )
    else:
        yield f"No smaller panel is as good as all {everybody}."
    best = panel.steps[len(panel.best) - 1]
    if best.against_all.low > 0:
        yield (
            f"A panel of {len(panel.best)} is significantly better than all, by "
            f"{with_interval(best.against_all, signed=True)}: {listed(panel.best)}."
        )


def compare(panel: Panel) -> str:
    """Return how a panel compares with its best member."""
    if panel.is_better:
        return "significantly better than"
    return "significantly worse than" if panel.is_worse else "not significantly different from"


def describe_shared_errors(panel: JudgePanel) -> Iterator[str]:
    """Yield sentences about errors that judges share."""
    found = panel.dependence
    if found is None:
        return
    interval = with_interval(Estimate(found.correlation, found.low, found.high))
    yield (
        f"{found.n_votes:.1f} labels per item count as about {found.effective_votes:.1f} "
        f"independent votes: the errors of two judges have a correlation of {interval}"
        f"{'' if panel.is_measured else ', estimated without gold'}."
    )
    for group in found.groups:
        names = panel.table.annotators[list(group.annotators)].tolist()
        yield f"Judges that err together ({group.correlation:.2f}): {listed(names)}."


def describe_prevalence(panel: JudgePanel) -> Iterator[str]:
    """Yield a sentence about the share of each class, by the votes of the panel."""
    own = [each for each in panel.shares if each.source == "panel"]
    for each in own[:_NAMED]:
        inverted = f" or {with_interval(each.rogan_gladen)} (Rogan-Gladen)"
        yield (
            f"Class {each.label}: {each.reported:.3f} of the votes, corrected "
            f"{with_interval(each.prediction_powered)} (prediction-powered)"
            f"{inverted if each.rogan_gladen.is_known else ''}."
        )


def describe_unlike(unlike: Unlike) -> str:
    """Return a sentence about gold items that are no random sample."""
    return (
        f"Gold items are not a random sample of all items: class {unlike.label} has "
        f"{unlike.gold:.3f} of their votes, and {unlike.others:.3f} of the others'. Accuracies and "
        "prediction-powered shares hold for items like the gold ones."
    )


def describe_people(panel: JudgePanel) -> Iterator[str]:
    """Yield sentences about agreement with people, and who may stand in for them."""
    if panel.people_together is None:
        return
    together = panel.people_together
    if together.share.is_known:
        yield (
            f"Two people agree on {with_interval(together.share)} of the items that both labelled "
            f"(kappa {with_interval(together.kappa)})."
        )
    compared = [row for row in panel.rows if row.people.is_known]
    if compared:
        best = max(compared, key=lambda row: row.people.value)
        yield f"Of the judges {best.judge} agrees best with people: {with_interval(best.people)}."
    tested = [each for each in panel.replacements if each.n_people]
    if tested:
        passing = [each.judge for each in tested if each.passes]
        yield (
            f"May stand in for a person (alternative annotator test, epsilon {panel.epsilon:g}): "
            f"{listed(passing) if passing else 'no judge'}."
        )


def describe_model(model: ModelRuns) -> str:
    """Return a sentence about the runs of one model."""
    if len(model.runs) == 1:
        return f"Model {model.model}: one run."
    votes = ""
    if model.effective_votes == model.effective_votes:
        votes = f"; they count as about {model.effective_votes:.1f} independent votes"
    return (
        f"Model {model.model}: two of its {len(model.runs)} runs agree on "
        f"{with_interval(model.consistency)} of the items, and with other models on "
        f"{with_interval(model.others)}{votes}."
    )


def describe_drifts(panel: JudgePanel) -> Iterator[str]:
    """Yield sentences about judges that change over time."""
    if not panel.drifts:
        return
    moving = [each for each in panel.drifts if each.is_significant]
    if not moving:
        yield "No judge changes significantly over time."
    elif len(moving) == len(panel.drifts) > 2:
        yield "All judges change over time: the items may have changed rather than the judges."
    yield from map(describe_drift, moving)


def describe_drift(drift: Drift) -> str:
    """Return a sentence about a judge that changes over time."""
    becomes = "better" if drift.change > 0 else "worse"
    return (
        f"{drift.judge} becomes {becomes} over time: {drift.change:+.3f} from the first to the "
        f"last period (p = {drift.p_value:.2g})."
    )


def with_interval(estimate: Estimate, *, signed: bool = False) -> str:
    """Return an estimate with its interval, as in "0.812 (0.733 to 0.871)"."""
    if not estimate.is_known:
        return "unknown"
    sign = "+" if signed else ""
    value, low, high = (format(part, f"{sign}.3f") for part in estimate)
    return f"{value} ({low} to {high})"


def listed(names: list[Any]) -> str:
    """Return the first names and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(str, names[:_NAMED])) + more
