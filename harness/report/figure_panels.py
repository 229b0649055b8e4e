"""Small multiples: one small panel of accuracy against length per family, or per model, on the same axes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longreach.harness.report.cautions import curve_words
from longreach.harness.report.figure_curve import coincide
from longreach.harness.report.figures import Drawing, drawable, length_labels, render
from longreach.harness.report.palette import CAPABILITY, INK, MUTED
from longreach.harness.stats.curves import Curve, runs_of
from longreach.harness.stats.estimates import Estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_PANELS = 12
_MARKERS = {"retrieval": "o", "reasoning": "s", "documents": "^"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One small diagram."""

    title: str
    curves: tuple[Curve, ...]
    """Drawn thick with their bands."""
    thin: tuple[Curve, ...] = ()
    """Drawn thin, without bands."""
    advertised: int | None = None


def draw_families(estimates: Estimates, title: str, advertised: int | None) -> Drawing | None:
    """A panel per task family, its tasks thin; None where the curve by capability says the same."""
    families = [curve for curve in estimates.families if curve.lengths]
    if len(families) < 2:
        return None
    panels = []
    for family in families:
        members = tuple(curve for curve in estimates.tasks if curve.name in family.tasks)
        thin = members if len(members) > 1 else ()
        panels.append(Panel(title=family.name, curves=(family,), thin=thin, advertised=advertised))
    caption = (
        "Mean score against prompt length by task family with 95% bands; thin: single tasks; dashed: threshold; dotted "
        "level: chance; dotted upright: advertised length."
    )
    return draw_panels(panels, name="accuracy-by-family", title=title, caption=caption)


def draw_panels(panels: Sequence[Panel], *, name: str, title: str, caption: str) -> Drawing | None:
    """The figure; None without a length. Call inside `figures.style()`."""
    from matplotlib.figure import Figure

    shown = [panel for panel in panels if any(curve.lengths for curve in panel.curves)][:MAX_PANELS]
    if not shown:
        return None
    lengths = sorted({length for panel in shown for curve in panel.curves for length in curve.lengths})
    ends = [*lengths, *(panel.advertised for panel in shown if panel.advertised)]
    columns = min(3, len(shown)) if len(shown) != 4 else 2
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(8.0, 0.7 + 2.25 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for number, axes in enumerate(grid.flat):
        if number >= len(shown):
            axes.set_axis_off()
            continue
        _frame(axes, lengths, ends, labelled=number >= len(shown) - columns)
        _panel(axes, shown[number], columns)
    figure.suptitle(drawable(title, 62), x=0.01, ha="left", fontweight="bold", fontsize=11)
    figure.supxlabel("prompt length with room for the answer, tokens (log2)", fontsize=10)
    figure.supylabel("mean score", fontsize=10)
    png, svg = render(figure)
    words = ". ".join(f"{panel.title}: " + "; ".join(curve_words(curve) for curve in panel.curves) for panel in shown)
    if len(shown) < len(panels):
        caption += f" {len(panels) - len(shown)} more are in the table only."
    return Drawing(name=name, caption=caption, alt=f"Accuracy against length in panels. {words}.", png=png, svg=svg)


def _frame(axes: "Axes", lengths: Sequence[int], ends: Sequence[int], *, labelled: bool) -> None:
    low, high = math.log2(min(ends)), math.log2(max(ends))
    margin = max((high - low) * 0.06, 0.35)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(-0.04, 1.06)
    axes.set_yticks([0, 0.5, 1.0], ["0%", "50%", "100%"])
    ticks = sorted({*lengths, max(ends)})
    axes.set_xticks([math.log2(tick) for tick in ticks], length_labels(ticks, ends, 0.17))
    axes.tick_params(labelsize=8.5, labelbottom=labelled)
    for height in (0.5, 1.0):
        axes.axhline(height, color=MUTED, linewidth=0.5, alpha=0.22, zorder=0)


def _panel(axes: "Axes", panel: Panel, columns: int) -> None:
    if panel.advertised:
        axes.axvline(math.log2(panel.advertised), color=INK, linewidth=1.0, linestyle=(0, (1, 2)))
    for curve in panel.thin:
        color = CAPABILITY.get(curve.capability, MUTED)
        for run in runs_of(curve.points):
            x, y = [math.log2(point.length) for point in run], [point.mean or 0.0 for point in run]
            axes.plot(x, y, color=color, linewidth=0.8, alpha=0.6, marker=".", markersize=3)
    for number, curve in enumerate(panel.curves):
        _curve(axes, curve, over=any(coincide(curve, other) for other in panel.curves[:number]))
    axes.set_title(drawable(panel.title, 90 // columns - 6), fontsize=9.5, fontweight="normal", pad=5)


def _curve(axes: "Axes", curve: Curve, *, over: bool) -> None:
    """One curve; `over` = it lies on an earlier one: dashes and open marks let that one be seen."""
    color = CAPABILITY.get(curve.capability, MUTED)
    if curve.threshold is not None:
        axes.axhline(curve.threshold, color=color, linewidth=0.9, linestyle=(0, (5, 3)), alpha=0.8, zorder=1)
    if curve.chance > 0:
        axes.axhline(curve.chance, color=color, linewidth=0.8, linestyle=(0, (1, 3)), alpha=0.6, zorder=1)
    for run in runs_of(curve.points):
        x, y = [math.log2(point.length) for point in run], [point.mean or 0.0 for point in run]
        limits = [point.limits for point in run]
        low, high = [bound.low for bound in limits if bound], [bound.high for bound in limits if bound]
        axes.vlines(x, low, high, color=color, linewidth=1.0, alpha=0.45, zorder=1)
        axes.fill_between(x, low, high, color=color, alpha=0.14, linewidth=0, zorder=1)
        marker = _MARKERS.get(curve.capability, "o")
        marks = {"markersize": 8, "markerfacecolor": "none", "markeredgewidth": 1.6} if over else {"markersize": 4.5}
        axes.plot(
            x, y, color=color, linewidth=1.8, linestyle=(0, (3, 3)) if over else "-", marker=marker, zorder=3, **marks
        )
    for point in curve.points:
        if not point.tested:
            words = "n/s" if point.blocked_by == "overflow" else "n/t"
            shift = 0.01 if curve.capability == "retrieval" else 0.1
            axes.text(math.log2(point.length), shift, words, ha="center", va="bottom", fontsize=7.5, color=color)
