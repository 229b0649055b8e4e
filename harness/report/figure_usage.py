"""Time to the first token and cost per query against length; cold and cached prompts apart, unknown is no point."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longreach.harness.lengths import format_length
from longreach.harness.report.figures import Drawing, drawable, length_labels, render
from longreach.harness.report.palette import INK, MUTED
from longreach.harness.report.wording import seconds, usd
from longreach.harness.stats.estimates import Estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CACHE = {
    "cold": ("cold", "#2457a7", "o"),
    "cached": ("cached", "#b3700a", "s"),
    "unknown": ("cache not reported", MUTED, "^"),
}


def draw_usage(estimates: Estimates, title: str) -> Drawing | None:
    """The figure; None where neither a time nor a cost is known. Call inside `figures.style()`."""
    from matplotlib.figure import Figure

    rows = estimates.latency["by_length"]
    first = any(row["ttft_p50_s"] is not None for row in rows)
    kind = "ttft" if first else "latency"
    timed = [row for row in rows if row[f"{kind}_p50_s"] is not None]
    costs = [row for row in estimates.cost["by_length"] if row["per_query_usd"] is not None]
    panels = [bool(timed), bool(costs)]
    if not any(panels):
        return None
    figure = Figure(figsize=(8.0, 2.9), layout="constrained")
    grid = list(figure.subplots(1, sum(panels), squeeze=False).flat)
    if timed:
        _times(grid.pop(0), timed, kind, "seconds to first token" if first else "seconds to whole answer")
    if costs:
        _costs(grid.pop(0), costs)
    figure.suptitle(drawable(title, 62), x=0.01, ha="left", fontweight="bold", fontsize=11)
    figure.supxlabel("prompt length with room for the answer, tokens (log2)", fontsize=9.5)
    png, svg = render(figure)
    what = "Time to the first token" if first else "Time to the whole answer (no first-token times were reported)"
    parts = [f"{what} by length: line the median, upper mark the 95th percentile; cold and cached prompts apart."]
    parts = parts if timed else []
    parts += ["Mean cost per query by length, USD."] if costs else []
    return Drawing(name="time-and-cost", caption=" ".join(parts), alt=_alt(timed, kind, costs), png=png, svg=svg)


def _length_axis(axes: "Axes", lengths: Sequence[int]) -> None:
    axes.set_xticks([math.log2(length) for length in lengths], length_labels(lengths, lengths, 0.12))
    low, high = math.log2(lengths[0]), math.log2(lengths[-1])
    margin = max((high - low) * 0.07, 0.35)
    axes.set_xlim(low - margin, high + margin)
    axes.tick_params(labelsize=9)
    axes.grid(axis="y", color=MUTED, linewidth=0.5, alpha=0.22)


def _times(axes: "Axes", rows: Sequence[Mapping[str, Any]], kind: str, label: str) -> None:
    for cache, (name, color, marker) in _CACHE.items():
        own = [row for row in rows if row["cache"] == cache]
        if not own:
            continue
        x = [math.log2(row["length"]) for row in own]
        p50, p95 = [row[f"{kind}_p50_s"] for row in own], [row[f"{kind}_p95_s"] for row in own]
        axes.vlines(x, p50, p95, color=color, linewidth=1.1, alpha=0.6)
        axes.plot(x, p95, color=color, linestyle="none", marker="_", markersize=8)
        axes.plot(x, p50, color=color, linewidth=1.8, marker=marker, markersize=5, label=name)
    _length_axis(axes, sorted({row["length"] for row in rows}))
    axes.set_ylim(bottom=0)
    axes.set_title(label, fontsize=9.5, fontweight="normal", pad=5)
    axes.legend(fontsize=8.5, loc="upper left")


def _costs(axes: "Axes", rows: Sequence[Mapping[str, Any]]) -> None:
    x, y = [math.log2(row["length"]) for row in rows], [row["per_query_usd"] for row in rows]
    axes.plot(x, y, color=INK, linewidth=1.8, marker="D", markersize=4.5)
    _length_axis(axes, [row["length"] for row in rows])
    axes.set_ylim(bottom=0)
    axes.set_yticks(ticks := [tick for tick in axes.get_yticks() if tick >= 0], [f"${tick:g}" for tick in ticks])
    axes.set_title("cost per query", fontsize=9.5, fontweight="normal", pad=5)


def _alt(timed: Sequence[Mapping[str, Any]], kind: str, costs: Sequence[Mapping[str, Any]]) -> str:
    what = "Time to first token" if kind == "ttft" else "Time to whole answer"
    parts = [
        f"{format_length(row['length'])} {_CACHE[row['cache']][0]} {seconds(row[f'{kind}_p50_s'])} "
        f"(95th percentile {seconds(row[f'{kind}_p95_s'])}, n {row['n']:,})"
        for row in timed
    ]
    text = f"{what}: {', '.join(parts)}." if parts else ""
    money = ", ".join(f"{format_length(row['length'])} {usd(row['per_query_usd'])}" for row in costs)
    return f"{text} Cost per query: {money}.".strip() if money else text
