"""Small multiples of several runs: a panel per run in the order of the series, its means by length over the first run's."""

import math
from typing import TYPE_CHECKING

from longreach.harness.lengths import format_length
from longreach.harness.report.figures import Drawing, drawable, render
from longreach.harness.report.palette import CAPABILITY, MUTED
from longreach.harness.report.wording import percent
from longreach.harness.stats.series import Ranked, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_PANELS = 12


def draw_series(series: Series) -> Drawing:
    """The figure. Call inside `figures.style()`."""
    from matplotlib.figure import Figure

    first, shown = series.runs[0], series.runs[:MAX_PANELS]
    if len(series.runs) > MAX_PANELS:  # the last run is what the verdict is about
        shown = (*series.runs[: MAX_PANELS - 1], series.runs[-1])
    columns = min(3, len(shown)) if len(shown) != 4 else 2
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(8.0, 0.9 + 2.25 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    ranks = {run.name: rank for rank, run in enumerate(series.ranking, start=1)}
    for number, axes in enumerate(grid.flat):
        if number >= len(shown):
            axes.set_axis_off()
            continue
        run = shown[number]
        _panel(axes, run, first, lowest=number >= len(shown) - columns)
        words = f"{run.name}\n#{ranks[run.name]}: {percent(run.mean)} ({percent(run.limits.low)} to {percent(run.limits.high)})"
        axes.set_title("\n".join(drawable(line, 96 // columns) for line in words.split("\n")), fontsize=9, loc="left")
    figure.suptitle(
        drawable(f"Last against first: {series.last.verdict}", 74), x=0.01, ha="left", fontweight="bold", fontsize=11
    )
    figure.supxlabel("prompt length with room for the answer, tokens (log2)", fontsize=10)
    figure.supylabel("mean score", fontsize=10)
    png, svg = render(figure)
    caption = (
        f"Mean score by length over the {series.n:,} samples that all runs share; dashed: the first run; above each panel "
        f"rank, mean and 95% interval."
    )
    if len(shown) < len(series.runs):
        caption += f" {len(series.runs) - len(shown)} runs are in the table only."
    return Drawing(name="series", caption=caption, alt=f"Runs in panels. {_words(series)}", png=png, svg=svg)


def _panel(axes: "Axes", run: Ranked, first: Ranked, *, lowest: bool) -> None:
    x = [math.log2(length) for length in run.by_length]
    axes.plot(x, list(first.by_length.values()), color=MUTED, linewidth=1.1, linestyle=(0, (4, 3)), zorder=1)
    axes.plot(x, list(run.by_length.values()), color=CAPABILITY["retrieval"], linewidth=1.8, marker="o", markersize=4.5)
    axes.set_ylim(-0.04, 1.06)
    axes.set_yticks([0, 0.5, 1.0], ["0%", "50%", "100%"])
    step = max(1, math.ceil(len(x) / 6))
    labels = [format_length(length) if i % step == 0 else "" for i, length in enumerate(run.by_length)]
    axes.set_xticks(x, labels)
    axes.tick_params(labelsize=8.5, labelbottom=lowest)


def _words(series: Series) -> str:
    return " ".join(
        f"{run.name}: {', '.join(f'{format_length(k)} {percent(mean)}' for k, mean in run.by_length.items())}."
        for run in series.runs
    )
