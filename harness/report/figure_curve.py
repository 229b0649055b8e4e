"""Accuracy against length: one line per capability with its 95% band, families thin, thresholds dashed."""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from longreach.harness.lengths import format_length
from longreach.harness.report.cautions import curve_words
from longreach.harness.report.figures import Drawing, drawable, length_labels, render
from longreach.harness.report.palette import CAPABILITY, INK, MUTED
from longreach.harness.report.wording import percent
from longreach.harness.stats.curves import Curve, CurvePoint, runs_of
from longreach.harness.stats.effective import Estimate
from longreach.harness.stats.estimates import Estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = {"retrieval": "o", "reasoning": "s", "documents": "^"}
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_STRIP = {"retrieval": -0.065, "reasoning": -0.125}
"""Height of the effective-length bar below the axis, in score units."""


def lines(estimates: Estimates) -> list[tuple[Curve, bool]]:
    """Curves to draw; True marks the thick ones. Thin: families, and tasks where a family would only repeat the
    headline or where the headline leaves them out."""
    thick = list(estimates.headline.values())
    thick += [curve for curve in estimates.families if curve.capability == "documents"]
    drawn = {frozenset(curve.tasks) for curve in thick}
    repeated = {task for curve in estimates.families if frozenset(curve.tasks) in drawn for task in curve.tasks}
    inside = {task for curve in thick for task in curve.tasks} - repeated
    thin = []
    for curve in (*estimates.families, *estimates.tasks):
        wanted = curve.kind == "family" or curve.name not in inside
        if wanted and frozenset(curve.tasks) not in drawn:
            drawn.add(frozenset(curve.tasks))
            thin.append(curve)
    return [(curve, True) for curve in thick] + [(curve, False) for curve in thin]


def draw_curve(estimates: Estimates, title: str, advertised: int | None) -> Drawing | None:
    """The figure; None if there is no length at all. Call inside `figures.style()`."""
    from matplotlib.figure import Figure

    curves = lines(estimates)
    lengths = sorted({length for curve, _ in curves for length in curve.lengths})
    if not lengths:
        return None
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    _frame(axes, lengths, advertised)
    seen: dict[str, int] = {}
    for number, (curve, thick) in enumerate(curves):
        rank = seen.get(curve.capability, 0)
        seen[curve.capability] = rank + 1
        before = [other for other, is_thick in curves[:number] if is_thick]
        _line(axes, curve, thick, rank, over=any(coincide(curve, other) for other in before))
    _references(axes, estimates, lengths)
    _documents(axes, estimates)
    for capability, found in estimates.effective.items():
        _effective(axes, capability, found)
    axes.set_title(drawable(title, 62))
    axes.set_xlabel("prompt length with room for the answer, tokens (log2)")
    axes.set_ylabel("mean score")
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower left", ncols=3, handlelength=2.6, columnspacing=1.6)
    png, svg = render(figure)
    words = ". ".join(curve_words(curve) for curve, _ in curves)
    caption = (
        "Mean score against prompt length with 95% bands; dashed: thresholds; bars below the axis: brackets of the "
        "effective lengths (filled mark: reliable, hollow mark: best estimate); n/t: not tested, n/s: not supported."
    )
    return Drawing(
        name="accuracy-by-length", caption=caption, alt=f"Accuracy against length. {words}.", png=png, svg=svg
    )


def _frame(axes: "Axes", lengths: Sequence[int], advertised: int | None) -> None:
    ends = [*lengths, advertised] if advertised else lengths
    low, high = math.log2(min(ends)), math.log2(max(ends))
    margin = max((high - low) * 0.05, 0.35)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(-0.17, 1.06)
    axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1.0], ["0%", "20%", "40%", "60%", "80%", "100%"])
    ticks = sorted({*lengths, *([advertised] if advertised else [])})
    axes.set_xticks([math.log2(tick) for tick in ticks], length_labels(ticks, ends, 0.06))
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.annotate(
        "effective\nlength",
        (0.0, -0.095),
        xycoords=("axes fraction", "data"),
        xytext=(-8, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        linespacing=1.0,
        fontsize=8.5,
        color=MUTED,
    )
    for height in (0.2, 0.4, 0.6, 0.8, 1.0):
        axes.axhline(height, color=MUTED, linewidth=0.5, alpha=0.22, zorder=0)
    if advertised:
        x = math.log2(advertised)
        axes.axvline(x, color=INK, linewidth=1.2, linestyle=(0, (1, 2)))
        axes.annotate(
            f"advertised {format_length(advertised)}",
            (x, 0.30),
            xytext=(-4, 0),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="center",
            fontsize=9,
            color=MUTED,
        )


def coincide(curve: Curve, other: Curve) -> bool:
    """Whether one line would hide a part of the other."""
    for run in runs_of(curve.points):
        same = [
            abs((found.mean or 0.0) - (p.mean or 0.0)) < 0.012 if (found := _tested(other, p)) else False for p in run
        ]
        if any(a and b for a, b in itertools.pairwise(same)) or (same == [True]):
            return True
    return False


def _tested(curve: Curve, point: CurvePoint) -> CurvePoint | None:
    found = curve.at(point.length)
    return found if found is not None and found.tested else None


def _line(axes: "Axes", curve: Curve, thick: bool, rank: int, *, over: bool = False) -> None:
    """One curve; `over` = it lies on an earlier one: dashes and open marks let that one be seen."""
    color = CAPABILITY.get(curve.capability, MUTED)
    label = drawable(curve.name if curve.kind != "capability" else f"{curve.name} (headline)", 40)
    dashes = "-" if thick else _DASHES[rank % len(_DASHES)]
    if over:  # a thin line would only cover the dashes of a thick one: its marks are enough
        dashes = (0, (3, 3)) if thick else ""
    size = 3.5 if not thick else 11 if over else 6.5
    face = color if thick else "white"
    for run in runs_of(curve.points):
        x = [math.log2(point.length) for point in run]
        y = [point.mean or 0.0 for point in run]
        axes.plot(
            x,
            y,
            color=color,
            linestyle=dashes,
            linewidth=2.2 if thick else 1.1,
            marker=_MARKERS.get(curve.capability, "o"),
            markersize=size,
            markerfacecolor="none" if over and thick else face,
            markeredgewidth=2.0 if over and thick else 1.0,
            alpha=1.0 if thick else 0.85,
            label=label,
            zorder=3 if thick else 4 if over else 2,
        )
        label = "_nolegend_"
        limits = [point.limits for point in run]
        low = [bound.low for bound in limits if bound]
        high = [bound.high for bound in limits if bound]
        if thick and len(run) > 1:
            axes.fill_between(x, low, high, color=color, alpha=0.14, linewidth=0, zorder=1)
        elif thick:
            axes.vlines(x, low, high, color=color, linewidth=1.4, alpha=0.6, zorder=1)
    for point in curve.points:
        if thick and not point.tested:
            words = "n/s" if point.blocked_by == "overflow" else "n/t"
            shift = 0.02 if curve.capability == "retrieval" else 0.08
            axes.text(math.log2(point.length), shift, words, ha="center", va="bottom", fontsize=8.5, color=color)


def _references(axes: "Axes", estimates: Estimates, lengths: Sequence[int]) -> None:
    for capability, curve in estimates.headline.items():
        if curve.threshold is None:
            continue
        color = CAPABILITY[capability]
        axes.axhline(curve.threshold, color=color, linewidth=1.0, linestyle=(0, (5, 3)), alpha=0.8, zorder=1)
        axes.annotate(
            f"{percent(curve.threshold)}\n{capability}",
            (1.0, curve.threshold),
            xycoords=("axes fraction", "data"),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=color,
        )
        if curve.chance > 0:
            axes.axhline(curve.chance, color=color, linewidth=0.9, linestyle=(0, (1, 3)), alpha=0.6, zorder=1)
            axes.annotate(
                f"chance {percent(curve.chance)}",
                (0.0, curve.chance),
                xycoords=("axes fraction", "data"),
                xytext=(3, 2),
                textcoords="offset points",
                fontsize=8,
                color=MUTED,
            )


def _documents(axes: "Axes", estimates: Estimates) -> None:
    """Chance and people as lines, where all tasks on documents share them."""
    facts = [fact for fact in estimates.facts.values() if fact.capability == "documents"]
    for word, values in (("chance", {fact.chance for fact in facts}), ("people", {fact.human for fact in facts})):
        value = values.pop() if len(values) == 1 else None
        if not value:
            continue
        color = CAPABILITY.get("documents", MUTED)
        axes.axhline(value, color=color, linewidth=0.9, linestyle=(0, (1, 3)), alpha=0.7, zorder=1)
        axes.annotate(
            f"{word} {percent(value, 1)}",
            (1.0, value),
            xycoords=("axes fraction", "data"),
            xytext=(-3, 2),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=MUTED,
        )


def _effective(axes: "Axes", capability: str, found: Estimate) -> None:
    """The bracket as a bar below the axis: filled mark at its reliable end, hollow mark at the best estimate."""
    if found.high is None or found.state in ("not_measured", "refused"):
        return
    color, y = CAPABILITY[capability], _STRIP[capability]
    left, _ = axes.get_xlim()
    start = math.log2(found.low) if found.low else left
    end = math.log2(found.high)
    if found.low is None and found.value is None and found.state == "measured":
        end = (left + end) / 2  # "< first length": the bar stays to the left of it
    axes.plot([start, end], [y, y], color=color, linewidth=4, alpha=0.35, solid_capstyle="butt", zorder=2)
    if not found.high_found:
        axes.plot([end], [y], marker=">", color=color, markersize=6, alpha=0.5, zorder=2)
    if found.value and found.value != found.low:
        x = math.log2(found.value)
        axes.plot([x], [y], marker="v", color=color, markerfacecolor="white", markersize=8, zorder=4)
    if found.low:
        axes.plot([start], [y], marker="v", color=color, markersize=8, zorder=5)
