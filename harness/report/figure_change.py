"""Change against a base run: one small panel per task, the paired difference at each length with its 95% limits."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from longreach.harness.lengths import format_length
from longreach.harness.report.compare_text import change_text
from longreach.harness.report.figures import Drawing, drawable, render
from longreach.harness.report.palette import INK, MUTED
from longreach.harness.stats.compare import CellChange, Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "change-by-length"
MAX_PANELS = 12
_STYLE = {
    "worse": ("#b3241f", "v"),
    "better": ("#1f7a3d", "^"),
    "within noise": (INK, "o"),
    "cannot tell": (MUTED, "o"),
}


def draw_change(comparison: Comparison) -> Drawing | None:
    """The figure; None without a pair. Call inside `figures.style()`."""
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(cell.task for cell in comparison.cells))
    if not tasks:
        return None
    shown = tasks[:MAX_PANELS]
    columns = min(3, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(8.0, 1.0 + 2.3 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    reach = max(max(abs(cell.change.low), abs(cell.change.high)) for cell in comparison.cells)
    for number, axes in enumerate(grid.flat):
        if number >= len(shown):
            axes.set_axis_off()
            continue
        cells = [cell for cell in comparison.cells if cell.task == shown[number]]
        _panel(axes, cells, comparison.margin, max(reach, comparison.margin) * 1.1)
        axes.set_title(drawable(shown[number], 90 // columns - 6), fontsize=9.5, fontweight="normal", pad=5)
    figure.suptitle(
        drawable(f"{comparison.new} against {comparison.base}: {comparison.verdict}", 74),
        x=0.01,
        ha="left",
        fontweight="bold",
        fontsize=11,
    )
    figure.supxlabel("prompt length with room for the answer, tokens", fontsize=10)
    figure.supylabel("change of the mean score, points", fontsize=10)
    png, svg = render(figure)
    caption = (
        f"Paired change against {comparison.base} with 95% limits; triangles: worse or better after correction for all "
        f"lengths of a family; grey band: {100 * comparison.margin:g} points that do not matter."
    )
    if len(shown) < len(tasks):
        caption += f" {len(tasks) - len(shown)} more tasks are in the table only."
    words = "; ".join(
        f"{cell.task} at {format_length(cell.length)} {change_text(cell.change)}, {cell.verdict}"
        for cell in comparison.cells
    )
    return Drawing(name=NAME, caption=caption, alt=f"Change in points. {words}.", png=png, svg=svg)


def _panel(axes: "Axes", cells: Sequence[CellChange], margin: float, reach: float) -> None:
    axes.axhspan(-margin, margin, color=MUTED, alpha=0.14, linewidth=0)
    axes.axhline(0.0, color=MUTED, linewidth=0.9)
    for place, cell in enumerate(cells):
        color, marker = _STYLE[cell.verdict]
        change = cell.change
        axes.vlines([place], [change.low], [change.high], color=color, linewidth=1.8)
        face = "white" if cell.verdict == "cannot tell" else color
        axes.plot([place], [change.value], color=color, marker=marker, markersize=7, markerfacecolor=face)
    axes.set_xlim(-0.6, len(cells) - 0.4)
    axes.set_ylim(-reach, reach)
    axes.set_xticks(range(len(cells)), [format_length(cell.length) for cell in cells])
    ticks = [tick for tick in axes.get_yticks() if -reach <= tick <= reach]
    axes.set_yticks(ticks, [f"{100 * tick:+.0f}" if abs(tick) > 1e-9 else "0" for tick in ticks])
    axes.tick_params(labelsize=8.5)
