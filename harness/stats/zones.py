"""Dead zones: runs of adjacent depths at one length that certainly score below the threshold."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.report.wording import depth_text, percent
from longreach.harness.stats.cells import Cell
from longreach.harness.stats.intervals import TAIL, clopper_pearson


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """One run of adjacent depths of one task at one length."""

    task: str
    length: int
    depth_from: float
    depth_to: float
    everywhere: bool
    """The run holds every tested depth of this length."""
    n: int
    mean: float
    high: float
    """Clopper-Pearson upper bound of the pooled cells, at 0.025 / number of cells."""
    threshold: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "length": self.length,
            "depth_from": self.depth_from,
            "depth_to": self.depth_to,
            "n": self.n,
            "mean": self.mean,
            "high": self.high,
            "threshold": self.threshold,
        }


def dead_zones(cells: Sequence[Cell]) -> tuple[Zone, ...]:
    """All dead zones, task by task, shortest length first."""
    tested = [c for c in cells if c.depth is not None and c.blocked_by is None and c.threshold is not None]
    rows: dict[tuple[str, int], list[Cell]] = {}
    for cell in tested:
        rows.setdefault((cell.task, cell.length), []).append(cell)
    return tuple(zone for row in rows.values() for zone in _zones(row, TAIL / len(tested)))


def _zones(row: Sequence[Cell], tail: float) -> list[Zone]:
    """Zones of one length: the longest run that qualifies, then what is left on either side of it."""
    for size in range(len(row), 0, -1):
        found = [zone for start in range(len(row) - size + 1) if (zone := _zone(row, start, size, tail))]
        if found:
            best = min(found, key=lambda zone: (zone.mean, zone.depth_from))
            start = next(i for i, cell in enumerate(row) if cell.depth == best.depth_from)
            return [*_zones(row[:start], tail), best, *_zones(row[start + size :], tail)]
    return []


def _zone(row: Sequence[Cell], start: int, size: int, tail: float) -> Zone | None:
    run = row[start : start + size]
    threshold = run[0].threshold
    first, last = run[0].depth, run[-1].depth
    if threshold is None or first is None or last is None or any(cell.s >= threshold * cell.n for cell in run):
        return None
    n, s = sum(cell.n for cell in run), math.fsum(cell.s for cell in run)
    alike = min(size, max(cell.sharing for cell in run))  # questions per context
    high = clopper_pearson(s / alike, n / alike, tail).high
    if high >= threshold:
        return None
    return Zone(
        task=run[0].task,
        length=run[0].length,
        depth_from=first,
        depth_to=last,
        everywhere=size == len(row) and size > 1,
        n=n,
        mean=s / n,
        high=high,
        threshold=threshold,
    )


def zone_sentences(zones: Sequence[Zone], lengths: Mapping[str, Sequence[int]]) -> list[str]:
    """One sentence per task; equal depths at neighbouring lengths are said once.

    Args:
        lengths: tested lengths by task, ascending.
    """
    groups: dict[str, dict[tuple[float, float], list[Zone]]] = {}
    for zone in zones:
        groups.setdefault(zone.task, {}).setdefault((zone.depth_from, zone.depth_to), []).append(zone)
    sentences = []
    for task, places in groups.items():
        parts = [_part(run, lengths[task]) for group in places.values() for run in _runs(group, list(lengths[task]))]
        threshold = next(iter(places.values()))[0].threshold
        noun = "Dead zone" if len(parts) == 1 else "Dead zones"
        sentences.append(f"{noun} of {task} (below {percent(threshold)} at 97.5% confidence): {'; '.join(parts)}.")
    return sentences


def _runs(group: Sequence[Zone], grid: Sequence[int]) -> list[list[Zone]]:
    """Zones at neighbouring lengths together."""
    runs = [[group[0]]]
    for zone in group[1:]:
        if grid.index(zone.length) == grid.index(runs[-1][-1].length) + 1:
            runs[-1].append(zone)
        else:
            runs.append([zone])
    return runs


def _part(run: Sequence[Zone], grid: Sequence[int]) -> str:
    zone = run[0]
    n = sum(item.n for item in run)
    mean = math.fsum(item.mean * item.n for item in run) / n
    if zone.everywhere:
        where = "at every depth"
    elif zone.depth_from == zone.depth_to:
        where = f"at {depth_text(zone.depth_from)} depth"
    else:
        where = f"between {depth_text(zone.depth_from)} and {depth_text(zone.depth_to)} depth"
    first, last = format_length(zone.length), format_length(run[-1].length)
    if len(run) > 1 and run[-1].length == grid[-1]:
        when = f"from {first} on"
    else:
        when = f"at {first}" if len(run) == 1 else f"from {first} to {last}"
    return f"{where} {when}: {percent(mean)} (n {n:,})"
