"""Accuracy against the position of the needle: one panel per length, with intervals and the line of 0.95."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from longreach.harness.lengths import format_length
from longreach.harness.report.figures import Drawing, drawable, render
from longreach.harness.report.palette import CAPABILITY, INK, MUTED
from longreach.harness.report.wording import depth_text, join_words, percent
from longreach.harness.stats.cells import Cell
from longreach.harness.stats.curves import CurvePoint, make_point
from longreach.harness.stats.estimates import Estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RECALL = 0.95
MAX_PANELS = 12
Profile = Mapping[float, CurvePoint]
"""Depth -> mean over the tasks there."""


def profiles(estimates: Estimates) -> dict[int, dict[str, Profile]]:
    """Length -> capability -> profile over depth, of the headline tasks that have depth; untested points left out."""
    found: dict[int, dict[str, Profile]] = {}
    for capability, curve in estimates.headline.items():
        tasks = [task for task in curve.tasks if estimates.facts[task].has_depth]
        cells = [cell for cell in estimates.cells if cell.task in tasks and cell.depth is not None]
        for length in sorted({cell.length for cell in cells}):
            here = [cell for cell in cells if cell.length == length]
            points = {
                depth: _point(length, depth, tasks, here)
                for depth in sorted({c.depth for c in here if c.depth is not None})
            }
            tested = {depth: point for depth, point in points.items() if point.tested}
            if tested:
                found.setdefault(length, {})[capability] = tested
    return dict(sorted(found.items()))


def _point(length: int, depth: float, tasks: Sequence[str], cells: Sequence[Cell]) -> CurvePoint:
    rows = {task: [cell for cell in cells if cell.task == task and cell.depth == depth] for task in tasks}
    return make_point(length, rows, None)


def draw_position(estimates: Estimates, title: str) -> Drawing | None:
    """The figure; None unless some length was tested at two depths. Call inside `figures.style()`."""
    from matplotlib.figure import Figure

    every = {k: v for k, v in profiles(estimates).items() if any(len(profile) > 1 for profile in v.values())}
    if not every:
        return None
    step = math.ceil(len(every) / MAX_PANELS)
    shown = dict(list(every.items())[::-1][::step][::-1])  # the largest lengths are the ones that matter
    rows = math.ceil(len(shown) / 4)
    columns = math.ceil(len(shown) / rows)
    figure = Figure(figsize=(8.0, 0.75 + 1.85 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    capabilities = list(dict.fromkeys(name for here in shown.values() for name in here))
    for number, axes in enumerate(grid.flat):
        if number >= len(shown):
            axes.set_axis_off()
            continue
        length, here = list(shown.items())[number]
        _panel(axes, length, here, capabilities, labelled=number >= len(shown) - columns)
    if len(capabilities) > 1:
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2, fontsize=9)
    figure.suptitle(drawable(title, 48), x=0.01, ha="left", fontweight="bold", fontsize=11)
    figure.supxlabel("depth of the (first) needle in the context", fontsize=10)
    figure.supylabel("mean score", fontsize=10)
    png, svg = render(figure)
    left_out = f" {len(every) - len(shown)} lengths are left out here." if len(shown) < len(every) else ""
    caption = (
        f"Mean score of the {join_words(capabilities)} headline by depth of the needle, a panel per length, with 95% "
        f"intervals; dashed: 95%.{left_out}"
    )
    return Drawing(name="accuracy-by-position", caption=caption, alt=_alt(shown), png=png, svg=svg)


def _panel(
    axes: "Axes", length: int, here: Mapping[str, Profile], capabilities: Sequence[str], *, labelled: bool
) -> None:
    axes.axhline(RECALL, color=INK, linewidth=0.9, linestyle=(0, (5, 3)), alpha=0.8, zorder=1)
    for capability, profile in here.items():
        color = CAPABILITY.get(capability, MUTED)
        shift = 0.008 * (capabilities.index(capability) * 2 - (len(capabilities) - 1))
        x = [depth + shift for depth in profile]
        means = [point.mean or 0.0 for point in profile.values()]
        limits = [point.limits for point in profile.values()]
        axes.vlines(
            x, [b.low for b in limits if b], [b.high for b in limits if b], color=color, alpha=0.5, linewidth=1.2
        )
        marker = "o" if capability == "retrieval" else "s"
        axes.plot(x, means, color=color, linewidth=1.4, marker=marker, markersize=4, label=capability, zorder=3)
    axes.set_xlim(-0.06, 1.06)
    axes.set_ylim(-0.04, 1.06)
    axes.set_yticks([0, 0.5, 1.0], ["0%", "50%", "100%"])
    axes.set_xticks([0, 0.5, 1.0], ["0%", "50%", "100%"])
    axes.tick_params(labelsize=8.5, labelbottom=labelled)
    axes.set_title(format_length(length), fontsize=9.5, fontweight="normal", pad=4)


def _alt(shown: Mapping[int, Mapping[str, Profile]]) -> str:
    sentences = []
    for length, here in shown.items():
        for capability, profile in here.items():
            worst = min(profile, key=lambda depth: profile[depth].mean or 0.0)
            best = max(profile, key=lambda depth: profile[depth].mean or 0.0)
            words = f"{format_length(length)}, {capability}: {percent(profile[best].mean or 0.0)} at best"
            if (profile[worst].mean or 0.0) < (profile[best].mean or 0.0):
                words += f", lowest {percent(profile[worst].mean or 0.0)} at {depth_text(worst)} depth"
            sentences.append(f"{words}.")
    return f"Accuracy by depth of the needle. {' '.join(sentences)}"
