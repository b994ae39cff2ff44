"""Figures of a fitted crowd on matplotlib axes.

Every function draws on the given axes, or on those of a new figure, and returns the axes:
``at.plots.skills(model).figure.savefig("skills.png")``. Nothing global is set, and pyplot does not
register the figures. Names are shown literally: ``$x$`` is a name, not a formula.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.crowd.pool import pooled_confusion
from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis import (
    calibrated_posterior,
    calibration_error,
    describe_flags,
    reliability_curve,
)
from annotrace.diagnosis.calibration import share_interval
from annotrace.diagnosis.flags import Flags
from annotrace.errors import InputError, first_few
from annotrace.estimators import check_fitted
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import as_names, look_up
from annotrace.report.canvas import (
    ALARM,
    INK,
    OTHERS,
    PALE,
    PALETTE,
    draw_matrix,
    make_plain,
    new_axes,
    shown,
    write_title,
)
from annotrace.report.view import Fitted, annotator_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def confusion(model: Fitted, annotator: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the confusion matrix of an annotator: true classes down, reported classes across.

    Parameters
    ----------
    model : fitted classifier or aggregation with `confusion_`
    annotator : str or int, optional
        By name; without it the mean of all annotators is drawn, weighted by their labels.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes
    """
    result = _annotated_result(model)
    table, matrices, skill = result.table, result.matrices(), result.annotators.skill
    n_labels = table.labels_per_annotator()
    if annotator is None:
        matrix = pooled_confusion(matrices, n_labels)
        mean_skill = np.average(skill, weights=n_labels)
        name, n_shown = f"All {table.n_annotators:,} annotators", table.n_labels
    else:
        who = _find_annotator(table, annotator)
        matrix, mean_skill, n_shown = matrices[who], skill[who], int(n_labels[who])
        name = f"Annotator {shown(annotator)}"
    side = np.clip(0.42 * table.n_classes + 1.6, 3.2, 7.5)
    axes = new_axes(ax, side + 0.4, side)
    draw_matrix(axes, matrix, table.classes.tolist(), percent=True)
    axes.set_xlabel("reported class", color=PALE)
    axes.set_ylabel("true class", color=PALE)
    write_title(axes, name, f"skill {mean_skill:.2f}, {n_shown:,} labels")
    return axes


def skills(model: Fitted, ax: Axes | None = None, top: int = 30) -> Axes:
    """Draw annotators by skill, the best first, with 90 % intervals.

    Flags are written beside their annotator, whose mark is hollow: a diamond, or a circle for few
    labels. The dashed line is the skill of guesses.

    Parameters
    ----------
    model : fitted classifier or aggregation with `annotators_`
    ax : matplotlib axes, optional
    top : int
        Maximum number of annotators. If there are more, half are the best and half the worst.

    Returns
    -------
    matplotlib axes
    """
    result = _annotated_result(model)
    table, order = result.table, annotator_order(result)
    low, high = result.annotators.skill_interval()
    flags = model.diagnosis_.flags
    rows = _both_ends(len(order), top)
    axes = new_axes(ax, 6.4, 0.26 * len(rows) + 1.1)
    axes.axvline(1 / table.n_classes, color=PALE, linestyle=(0, (4, 3)), linewidth=1)
    names = []
    for place, row in enumerate(rows):
        if row is None:
            names.append(f"{len(order) - len(rows) + 1:,} more")
            continue
        who = order[row]
        names.append(shown(table.annotators[who]))
        numbers = (result.annotators.skill[who], low[who], high[who])
        _draw_annotator(axes, place, numbers, flags[who], describe_flags(flags[who], table))
    axes.set_yticks(range(len(names)), names, color=INK, parse_math=False)
    axes.set(xlim=(0, 1), ylim=(len(names) - 0.4, -0.6))
    axes.set_xlabel("skill, with its 90 % interval (dashed: a guess)", color=PALE)
    make_plain(axes)
    write_title(axes, "Annotators by skill", f"{len(order):,} annotators")
    return axes


def _both_ends(n: int, top: int) -> list[int | None]:
    """Return the rows to show; None stands for those that are left out."""
    if top < 2:
        raise InputError(f"Expected `top` to be at least 2, but got {top!r}.")
    if n <= top:
        return list(range(n))
    worst = top // 2
    return [*range(top - worst), None, *range(n - worst, n)]


def _draw_annotator(
    axes: Axes, place: int, numbers: tuple[float, float, float], flags: Flags, remark: str
) -> None:
    skill, low, high = numbers
    marker, colour = _mark(flags)
    look: Any = {"markerfacecolor": "white" if flags else colour, "markeredgewidth": 1.6}
    axes.plot([low, high], [place, place], color=colour, linewidth=2.2, alpha=0.45, zorder=2)
    axes.plot(skill, place, marker, color=colour, markersize=6, zorder=3, **look)
    if not remark:
        return
    # On the side of the interval that has more room.
    right = 1 - high > low
    axes.annotate(
        shown(remark, 64),
        (high if right else low, place),
        (7 if right else -7, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="center",
        fontsize=8,
        color=colour,
        parse_math=False,
        bbox={"facecolor": axes.get_facecolor(), "edgecolor": "none", "pad": 1},
    )


def _mark(flags: Flags) -> tuple[str, str]:
    """Return marker and colour: few labels are not a fault."""
    if any(flag.needs_attention for flag in flags):
        return "D", ALARM
    return "o", PALE if flags else PALETTE[0]


def reliability(
    posterior: ArrayLike,
    truth: ArrayLike,
    ax: Axes | None = None,
    *,
    confidence: ArrayLike | None = None,
    n_bins: int = 10,
) -> Axes:
    """Draw how often items are correct against their confidence.

    Bins have equally many items; bars are 90 % intervals of the share of correct items. Points
    below the diagonal are overconfident.

    Parameters
    ----------
    posterior : array of shape (n_items, n_classes)
        `posterior_` of a model, or the result of `predict_proba`.
    truth : array of int, shape (n_items,)
        The class of each item as a code, -1 if unknown.
    ax : matplotlib axes, optional
    confidence : array of shape (n_items,), optional
        `confidence_` of a model; the highest probability by default.
    n_bins : int

    Returns
    -------
    matplotlib axes
    """
    given = None if confidence is None else np.asarray(confidence)
    compared = (np.asarray(posterior), np.asarray(truth), n_bins, given)
    curve = reliability_curve(*compared)
    low, high = share_interval(curve.accuracy, curve.n_items)
    axes = new_axes(ax, 4.4, 4.4)
    axes.plot([0, 1], [0, 1], color=PALE, linestyle=(0, (4, 3)), linewidth=1)
    axes.vlines(curve.confidence, low, high, color=PALETTE[0], linewidth=2.2, alpha=0.45)
    axes.plot(curve.confidence, curve.accuracy, "o-", color=PALETTE[0], markersize=6, linewidth=1.4)
    least = max(0.0, float(min(low.min(), curve.confidence.min())) - 0.05)
    axes.set(xlim=(least, 1.01), ylim=(least, 1.01), aspect="equal")
    axes.set_xlabel("confidence", color=PALE)
    axes.set_ylabel("share of correct items", color=PALE)
    make_plain(axes)
    sizes = " or ".join(f"{size:,}" for size in sorted(set(curve.n_items.tolist())))
    error = f"Calibration error {calibration_error(*compared):.3f}"
    write_title(axes, error, f"{curve.n_items.sum():,} items, {sizes} per point")
    return axes


def items(model: Fitted, ax: Axes | None = None, top: int = 12) -> Axes:
    """Draw the least certain items: the probabilities of their classes, and their labels.

    The lowest by `confidence_`, as in the report; items without labels are left out.

    Parameters
    ----------
    model : fitted classifier or aggregation
    ax : matplotlib axes, optional
    top : int
        How many, the least certain first.

    Returns
    -------
    matplotlib axes
    """
    check_fitted(model)
    result, table = model.result_, model.result_.table
    posterior = calibrated_posterior(result)
    labelled = np.flatnonzero(table.labels_per_item() > 0)
    confidence = posterior[labelled, result.estimate[labelled]]
    worst = labelled[np.argsort(confidence, kind="stable")[:top]]
    parts, names = _likely_classes(posterior[worst], table.classes.tolist())
    axes = new_axes(ax, 6.4, 0.5 * len(worst) + 1.1)
    for place, (item, shares) in enumerate(zip(worst, parts, strict=True)):
        _draw_shares(axes, place, shares, names)
        labels = table.label[table.offsets[item] : table.offsets[item + 1]]
        text = shown(_votes(table.classes[labels].tolist()), 90)
        axes.text(0, place - 0.3, text, fontsize=7.5, color=PALE, va="center", parse_math=False)
    ticks: Any = [shown(name) for name in table.items[worst].tolist()]
    axes.set_yticks(range(len(ticks)), ticks, color=INK, parse_math=False)
    axes.set(xlim=(0, 1), ylim=(len(ticks) - 0.4, -0.6))
    axes.set_xlabel("probability of each class; above it, the labels", color=PALE)
    make_plain(axes)
    axes.grid(visible=False)
    write_title(axes, "Least certain items", f"{len(ticks):,} of {len(labelled):,}")
    return axes


def _likely_classes(
    posterior: NDArray[Any], classes: Sequence[Any]
) -> tuple[NDArray[Any], list[str]]:
    """Keep the most probable classes, as many as there are colours."""
    if len(classes) <= len(PALETTE):
        return posterior, [shown(name) for name in classes]
    kept = np.sort(np.argsort(-posterior.sum(axis=0), kind="stable")[: len(PALETTE)])
    parts = posterior[:, kept]
    others = np.clip(1 - parts.sum(axis=1, keepdims=True), 0, 1)
    return np.hstack([parts, others]), [*(shown(classes[k]) for k in kept), "others"]


def _draw_shares(axes: Axes, place: int, shares: NDArray[Any], names: Sequence[str]) -> None:
    """Draw one stacked bar, with the name of each class if it fits."""
    starts = np.cumsum(shares) - shares
    for share, start, name, colour in zip(shares, starts, names, (*PALETTE, OTHERS), strict=False):
        look: Any = {"color": colour, "edgecolor": "white", "linewidth": 0.8}
        bar = axes.barh(place + 0.12, share, 0.46, start, **look)[0]
        text = f"{name} {100 * share:.0f} %"
        if share > 0.012 * len(text) + 0.02:
            ink = "white" if colour in ("#0072B2", "#009E73", "#D55E00") else INK
            where: Any = {"ha": "center", "va": "center", "clip_path": bar, "parse_math": False}
            axes.text(start + share / 2, place + 0.13, text, fontsize=7.5, color=ink, **where)


def _votes(labels: Sequence[Any]) -> str:
    """Count labels in words: "cat x 2, dog"."""
    counts = Counter(map(str, labels)).most_common()
    return ", ".join(label if n == 1 else f"{label} x {n}" for label, n in counts)


def _annotated_result(model: Fitted) -> CrowdResult:
    check_fitted(model)
    if not model.result_.models_annotators:
        raise InputError(
            f"{type(model).__name__} does not model annotators, or there is one class only: draw a "
            "fitted method that has `confusion_`."
        )
    return model.result_


def _find_annotator(table: LabelTable, annotator: Any) -> int:
    place = int(look_up(as_names([annotator]), table.annotators)[0])
    if place < 0:
        names = first_few(table.annotators)
        raise InputError(f"There is no annotator {annotator!r}; there are {names}.")
    return place
