"""Heat map of one task: depth across, length down, mean and n in each cell, untested cells hatched."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longreach.harness.lengths import format_length
from longreach.harness.report.figures import Drawing, drawable, render
from longreach.harness.report.palette import INK, MUTED, heat_color, ink_on
from longreach.harness.report.wording import depth_text, percent
from longreach.harness.stats.cells import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LABELLED = 13
"""Widest grid (depths) whose cells hold n as well as the mean."""


def draw_heat(task: str, cells: Sequence[Cell], name: str, title: str) -> Drawing | None:
    """The figure of one task; None without cells. Call inside `figures.style()`.

    Args:
        name: file name without suffix.
        title: stands above the grid.
    """
    from matplotlib.figure import Figure

    if not cells:
        return None
    grid = {(cell.length, cell.depth): cell for cell in cells}
    lengths = sorted({cell.length for cell in cells})
    depths = sorted({cell.depth for cell in cells}, key=lambda depth: -1.0 if depth is None else depth)
    width = min(8.0, 2.6 + 1.05 * len(depths)) if len(depths) < 6 else 8.0
    width = max(width, 5.2)
    height = 0.52 * len(lengths)
    figure = Figure(figsize=(width, 1.75 + height), layout="constrained")
    axes, scale = figure.subplots(2, 1, height_ratios=[height, 0.36])
    wide = len(depths) > MAX_LABELLED
    for row, length in enumerate(lengths):
        for column, depth in enumerate(depths):
            _cell(axes, column, row, grid.get((length, depth)), wide=wide)
    _frame(axes, lengths, depths)
    if wide:
        counts = [{cell.n for cell in cells if cell.length == length} for length in lengths]
        axes.set_yticks(range(len(lengths)), [_row_label(*row) for row in zip(lengths, counts, strict=True)])
    axes.set_title(drawable(title, 62 if width > 7 else 40))
    _scale(scale, cells[0].threshold, width)
    png, svg = render(figure)
    return Drawing(name=name, caption=_caption(task, cells[0].threshold), alt=_alt(task, cells), png=png, svg=svg)


def _cell(axes: "Axes", column: int, row: int, cell: Cell | None, *, wide: bool) -> None:
    from matplotlib.patches import Rectangle

    place = (column - 0.5, row - 0.5)
    if cell is None:
        return
    if cell.blocked_by is not None or cell.mean is None:
        axes.add_patch(Rectangle(place, 1, 1, facecolor="white", edgecolor="#b4bcc6", hatch="////", linewidth=0.8))
        words = "n/s" if cell.blocked_by == "overflow" else "not\ntested" if not wide else ""
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
        if words:
            axes.text(column, row, words, ha="center", va="center", fontsize=8, color=MUTED, bbox=box, linespacing=0.95)
        return
    color = heat_color(cell.mean, cell.threshold)
    axes.add_patch(Rectangle(place, 1, 1, facecolor=color, edgecolor="white", linewidth=1.2))
    ink = ink_on(color)
    if wide:
        axes.text(column, row, percent(cell.mean).removesuffix("%"), ha="center", va="center", fontsize=7, color=ink)
        return
    axes.text(column, row - 0.12, percent(cell.mean), ha="center", va="center", fontsize=10, color=ink)
    axes.text(column, row + 0.26, f"n {cell.n:,}", ha="center", va="center", fontsize=7.5, color=ink)


def _row_label(length: int, counts: set[int]) -> str:
    """Length and n of a row whose cells are too narrow to hold n."""
    low, high = min(counts), max(counts)
    return f"{format_length(length)}\nn {low:,}" + (f" to {high:,}" if high > low else "")


def _frame(axes: "Axes", lengths: Sequence[int], depths: Sequence[float | None]) -> None:
    axes.set_xlim(-0.5, len(depths) - 0.5)
    axes.set_ylim(len(lengths) - 0.5, -0.5)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0)
    axes.set_yticks(range(len(lengths)), [format_length(length) for length in lengths])
    axes.set_ylabel("length, tokens")
    step = 1 if len(depths) <= MAX_LABELLED else 5
    labels = ["all samples" if depth is None else depth_text(depth) for depth in depths]
    if len(depths) > 8:
        labels = [label if label.endswith("0%") or len(label) < 4 else f"{float(label[:-1]):.0f}%" for label in labels]
    axes.set_xticks(range(0, len(depths), step), labels[::step])
    axes.set_xlabel(
        "depth of the needle in the context" if depths[0] is not None else "no depth: the task spreads over the context"
    )


def _scale(axes: "Axes", threshold: float | None, width: float) -> None:
    """The colour scale with its step, and the hatch of untested cells, on one line of their own."""
    from matplotlib.patches import Rectangle

    steps, inches = 50, 2.6
    axes.set_xlim(0, width / inches)
    axes.set_ylim(0, 1)
    axes.set_axis_off()
    for i in range(steps):
        color = heat_color((i + 0.5) / steps, threshold)
        axes.add_patch(Rectangle((i / steps, 0.55), 1 / steps, 0.45, facecolor=color, edgecolor=color, linewidth=0.4))
    marks = [(0.0, "0%", "left"), (1.0, "100%", "right" if threshold is None or threshold < 0.85 else "left")]
    if threshold is not None:
        marks.append((threshold, f"{percent(threshold)} threshold", "right"))
        axes.plot([threshold, threshold], [0.5, 1.0], color=INK, linewidth=1.2)
    for x, words, side in marks:
        axes.text(x, 0.4, words, ha=side, va="top", fontsize=8.5)
    axes.add_patch(
        Rectangle((1.2, 0.55), 0.12, 0.45, facecolor="white", edgecolor="#b4bcc6", hatch="////", linewidth=0.8)
    )
    axes.text(1.36, 0.77, "not tested", va="center", fontsize=8.5)


def _caption(task: str, threshold: float | None) -> str:
    step = f"; the colour jumps at the threshold of {percent(threshold)}" if threshold is not None else ""
    return f"{task}: mean score by depth and length{step}; hatched: not tested (n/s: not supported)."


def _alt(task: str, cells: Sequence[Cell]) -> str:
    """One sentence per length: the mean over depths, and the lowest depth if it lies below the others."""
    rows: dict[int, list[Cell]] = {}
    for cell in cells:
        rows.setdefault(cell.length, []).append(cell)
    return f"Heat map of {task}. " + " ".join(f"{format_length(k)}: {_row_words(row)}." for k, row in rows.items())


def _row_words(row: Sequence[Cell]) -> str:
    tested = [cell for cell in row if cell.blocked_by is None and cell.mean is not None]
    if not tested:
        return "not supported" if any(cell.blocked_by == "overflow" for cell in row) else "not tested"
    n = sum(cell.n for cell in tested)
    words = f"{percent(sum(cell.mean or 0.0 for cell in tested) / len(tested))} (n {n:,})"
    worst = min(tested, key=lambda cell: cell.mean or 0.0)
    if worst.depth is not None and any((cell.mean or 0.0) > (worst.mean or 0.0) for cell in tested):
        words += f", lowest {percent(worst.mean or 0.0)} at {depth_text(worst.depth)} depth"
    missing = len(row) - len(tested)
    return words + (f", {missing} of {len(row)} depths not tested" if missing else "")
