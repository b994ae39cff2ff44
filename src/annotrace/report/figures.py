"""Pictures of what was learned: axes in, axes out.

Every function takes the axes to draw on, or makes a figure of its own, and gives the axes back:
``at.plots.skills(model).figure.savefig("skills.png")``. Nothing global is set, and pyplot knows of
no figure that it would keep. Names are shown letter by letter: ``$x$`` is a name, not a formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotrace.diagnosis import calibration_error, pooled_confusion, reliability_curve
from annotrace.diagnosis import skills as mean_diagonals
from annotrace.diagnosis.calibration import share_interval
from annotrace.diagnosis.diagnosed import Diagnosed
from annotrace.errors import InputError, first_few
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import as_names, look_up
from annotrace.report.canvas import (
    ALARM,
    INK,
    OTHERS,
    PALE,
    PALETTE,
    make_plain,
    new_axes,
    shown,
    write_title,
)
from annotrace.report.matrix import draw_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Fitted(Protocol):
    """A fitted classifier or aggregation, or a run that was read back."""

    table_: LabelTable
    posterior_: NDArray[Any]


def confusion(model: Fitted, annotator: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the confusion matrix of an annotator: true classes down, reported across.

    Parameters
    ----------
    model : fitted classifier or aggregation with `confusion_`
    annotator : str or int, optional
        By name; without it the pool is drawn, in which everybody counts by their labels.
    ax : matplotlib axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib axes
    """
    table, matrices = model.table_, _matrices(model)
    n_labels = table.labels_per_annotator()
    if annotator is None:
        matrix = pooled_confusion(matrices, n_labels)
        name, n_shown = f"All {table.n_annotators:,} annotators", table.n_labels
    else:
        who = _place(table, annotator)
        matrix, n_shown = matrices[who], int(n_labels[who])
        name = f"Annotator {shown(annotator)}"
    side = np.clip(0.42 * table.n_classes + 1.6, 3.2, 7.5)
    axes = new_axes(ax, side + 0.4, side)
    draw_matrix(axes, matrix, table.classes.tolist(), percent=True)
    axes.set_xlabel("reported class", color=PALE)
    axes.set_ylabel("true class", color=PALE)
    skill = float(mean_diagonals(matrix[None])[0])
    write_title(axes, name, f"skill {skill:.2f}, {n_shown:,} labels")
    return axes


def skills(model: Diagnosed, ax: Axes | None = None, top: int = 30) -> Axes:
    """Draw annotators by skill, the best first, with 90 % intervals.

    A flag stands beside its annotator in words, and hollows the mark: a diamond, or a circle for
    few labels. The dashed line is the skill of somebody who guesses.

    Parameters
    ----------
    model : fitted classifier or aggregation with `annotators_`
    ax : matplotlib axes, optional
    top : int
        How many to show at most. Of more, half are the best and half the worst.

    Returns
    -------
    matplotlib axes
    """
    _matrices(model)
    people = model._people().sort("skill", descending=True, maintain_order=True)
    rows = _both_ends(len(people), top)
    axes = new_axes(ax, 6.4, 0.26 * len(rows) + 1.1)
    axes.axvline(1 / model.table_.n_classes, color=PALE, linestyle=(0, (4, 3)), linewidth=1)
    names = []
    for place, row in enumerate(rows):
        if row is None:
            names.append(f"{len(people) - len(rows) + 1:,} more")
            continue
        person = people.row(row, named=True)
        names.append(shown(person["annotator"]))
        _draw_person(axes, place, person)
    axes.set_yticks(range(len(names)), names, color=INK, parse_math=False)
    axes.set(xlim=(0, 1), ylim=(len(names) - 0.4, -0.6))
    axes.set_xlabel("skill, with its 90 % interval (dashed: a guess)", color=PALE)
    make_plain(axes)
    write_title(axes, "Annotators by skill", f"{len(people):,} annotators")
    return axes


def _both_ends(n_people: int, top: int) -> list[int | None]:
    """Give the rows to show; None stands for those that are left out."""
    if top < 2:
        raise InputError(f"Expected `top` to be at least 2, but got {top!r}.")
    if n_people <= top:
        return list(range(n_people))
    worst = top // 2
    return [*range(top - worst), None, *range(n_people - worst, n_people)]


def _draw_person(axes: Axes, place: int, person: dict[str, Any]) -> None:
    low, high, flags = person["low"], person["high"], person["flags"]
    marker, colour = _mark(flags)
    look: Any = {"markerfacecolor": "white" if flags else colour, "markeredgewidth": 1.6}
    axes.plot([low, high], [place, place], color=colour, linewidth=2.2, alpha=0.45, zorder=2)
    axes.plot(person["skill"], place, marker, color=colour, markersize=6, zorder=3, **look)
    if not flags:
        return
    # On whichever side of the interval there is more room.
    right = 1 - high > low
    axes.annotate(
        shown(flags, 48),
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


def _mark(flags: str) -> tuple[str, str]:
    """Give marker and colour: to have given few labels is no fault."""
    if flags in ("few labels", "no labels"):
        return "o", PALE
    return ("D", ALARM) if flags else ("o", PALETTE[0])


def reliability(
    posterior: ArrayLike,
    truth: ArrayLike,
    ax: Axes | None = None,
    *,
    confidence: ArrayLike | None = None,
    n_bins: int = 10,
) -> Axes:
    """Draw how often items are right against how sure they are said to be.

    Bins have equally many items; bars are 90 % intervals of the share that is right. Points below
    the diagonal are too sure of themselves.

    Parameters
    ----------
    posterior : array of shape (n_items, n_classes)
        `posterior_` of a model, or what `predict_proba` gives.
    truth : array of int, shape (n_items,)
        The class of each item as a code, -1 where it is unknown.
    ax : matplotlib axes, optional
    confidence : array of shape (n_items,), optional
        `confidence_` of a model; the highest probability unless given.
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
    axes.set_xlabel("how sure", color=PALE)
    axes.set_ylabel("how often right", color=PALE)
    make_plain(axes)
    sizes = sorted({int(size) for size in curve.n_items})
    many = " or ".join(f"{size:,}" for size in sizes)
    write_title(
        axes,
        f"Calibration error {calibration_error(*compared):.3f}",
        f"{curve.n_items.sum():,} items, {many} a point",
    )
    return axes


def items(model: Diagnosed, ax: Axes | None = None, top: int = 12) -> Axes:
    """Draw the items in most doubt: what each may be, and the labels it was given.

    The least sure by `confidence_`, as in the report; items without labels are left out.

    Parameters
    ----------
    model : fitted classifier or aggregation
    ax : matplotlib axes, optional
    top : int
        How many, those in most doubt first.

    Returns
    -------
    matplotlib axes
    """
    table, chances = model.table_, model._chances()
    labelled = np.flatnonzero(table.labels_per_item() > 0)
    sure = chances[labelled, model._estimate()[labelled]]
    doubtful = labelled[np.argsort(sure, kind="stable")[:top]]
    parts, names = _likely_classes(chances[doubtful], table.classes.tolist())
    axes = new_axes(ax, 6.4, 0.5 * len(doubtful) + 1.1)
    for place, (item, shares) in enumerate(zip(doubtful, parts, strict=True)):
        _draw_shares(axes, place, shares, names)
        said = table.label[table.offsets[item] : table.offsets[item + 1]]
        text = shown(_votes(table.classes[said].tolist()), 90)
        axes.text(0, place - 0.3, text, fontsize=7.5, color=PALE, va="center", parse_math=False)
    ticks: Any = [shown(name) for name in table.items[doubtful].tolist()]
    axes.set_yticks(range(len(ticks)), ticks, color=INK, parse_math=False)
    axes.set(xlim=(0, 1), ylim=(len(ticks) - 0.4, -0.6))
    axes.set_xlabel("probability of each class; above it, the labels given", color=PALE)
    make_plain(axes)
    axes.grid(visible=False)
    write_title(axes, "Items in doubt", f"{len(ticks):,} of {len(labelled):,}")
    return axes


def _likely_classes(
    posterior: NDArray[Any], classes: Sequence[Any]
) -> tuple[NDArray[Any], list[str]]:
    """Keep the classes with most of the probability, as many as there are colours."""
    if len(classes) <= len(PALETTE):
        return posterior, [shown(name) for name in classes]
    kept = np.sort(np.argsort(-posterior.sum(axis=0), kind="stable")[: len(PALETTE)])
    parts = posterior[:, kept]
    others = np.clip(1 - parts.sum(axis=1, keepdims=True), 0, 1)
    return np.hstack([parts, others]), [*(shown(classes[k]) for k in kept), "others"]


def _draw_shares(axes: Axes, place: int, shares: NDArray[Any], names: Sequence[str]) -> None:
    """Draw one bar of class after class, each with its name where it fits."""
    starts = np.cumsum(shares) - shares
    for share, start, name, colour in zip(shares, starts, names, (*PALETTE, OTHERS), strict=False):
        look: Any = {"color": colour, "edgecolor": "white", "linewidth": 0.8}
        bar = axes.barh(place + 0.12, share, 0.46, start, **look)[0]
        said = f"{name} {100 * share:.0f} %"
        if share > 0.012 * len(said) + 0.02:
            ink = "white" if colour in ("#0072B2", "#009E73", "#D55E00") else INK
            where: Any = {"ha": "center", "va": "center", "clip_path": bar, "parse_math": False}
            axes.text(start + share / 2, place + 0.13, said, fontsize=7.5, color=ink, **where)


def _votes(labels: Iterable[Any]) -> str:
    """Count labels in words: "cat x 2, dog"."""
    counts: dict[str, int] = {}
    for label in labels:
        counts[str(label)] = counts.get(str(label), 0) + 1
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    said = (label if count == 1 else f"{label} x {count}" for label, count in ordered)
    return ", ".join(said)


def _matrices(model: Fitted) -> NDArray[Any]:
    matrices: NDArray[Any] | None = getattr(model, "confusion_", None)
    if matrices is None:
        raise InputError(
            f"{type(model).__name__} has learned nothing of annotators: draw a fitted method that "
            "has `confusion_`."
        )
    return matrices


def _place(table: LabelTable, annotator: Any) -> int:
    place = int(look_up(as_names([annotator]), table.annotators)[0])
    if place < 0:
        names = first_few(table.annotators)
        raise InputError(f"There is no annotator {annotator!r}; there are {names}.")
    return place
