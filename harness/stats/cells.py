"""Cells: records of one (task, length, depth) counted, averaged and given a state."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from longreach.harness.record import COUNTED, OUTCOMES, Record
from longreach.harness.stats.evalues import confidence_sequence, count
from longreach.harness.stats.intervals import Interval, State, state_of, wilson
from longreach.harness.task import THRESHOLDS, place_in_context

UNTESTABLE = ("overflow", "truncated")
"""Outcomes that make a whole cell not tested: the model never read what was meant for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """What the configuration says of one task of the battery."""

    label: str
    capability: str
    family: str
    chance: float
    version: int
    has_depth: bool
    source: str
    license: str
    params: Mapping[str, Any]
    queries: int = 1
    """Samples that share one context."""
    human: float | None = None
    """Score of people, where it is published."""

    @property
    def shared(self) -> bool:
        """Item i is the same in every cell: for contrasts between cells, not for the level of a length."""
        return bool(self.params.get("shared"))

    @property
    def threshold(self) -> float | None:
        """Mean score that its capability asks for; None for documents, which have no headline."""
        return THRESHOLDS.get(self.capability)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the grid."""

    task: str
    length: int
    depth: float | None
    planned: int
    """Samples that the plan asked for."""
    n: int
    """Samples that count: scored, no_answer, refused."""
    s: float
    """Sum of their scores."""
    published: float | None
    """Mean by the benchmark's published rule, where it has one."""
    outcomes: Mapping[str, int]
    """All seven, zeros included."""
    threshold: float | None
    counts: Mapping[float, int] | None = None
    """Score -> how often, where the sample chose its own size (an adaptive scan): limits are valid at any stop then."""
    sharing: float = 1.0
    """What a sample counts for less once the cells of a length are pooled: how many of them share each context, or what
    a scan divides its evidence by."""

    @property
    def mean(self) -> float | None:
        return self.s / self.n if self.n else None

    @property
    def limits(self) -> Interval | None:
        """95%: Wilson, or the confidence sequence of an adaptive sample."""
        if not self.n:
            return None
        return wilson(self.s, self.n) if self.counts is None else anytime_limits(self.counts)

    @property
    def blocked_by(self) -> str | None:
        """Why it is not tested: overflow, truncated, not_run, failed; None if it is tested."""
        for outcome in UNTESTABLE:
            if self.outcomes[outcome]:
                return outcome
        if self.n:
            return None
        return "failed" if self.outcomes["failed"] else "not_run"

    @property
    def state(self) -> State:
        if self.blocked_by:
            return "not_tested"
        if self.threshold is None:
            return "undecided"
        return (
            state_of(self.s, self.n, self.threshold)
            if self.counts is None
            else anytime_state(self.counts, self.threshold)
        )

    @property
    def partial(self) -> bool:
        """Tested, but with fewer samples than planned."""
        return self.blocked_by is None and self.n < self.planned

    def to_dict(self) -> dict[str, Any]:
        limits = self.limits
        return {
            "task": self.task,
            "length": self.length,
            "depth": self.depth,
            "n": self.n,
            "planned": self.planned,
            "mean": self.mean,
            "low": limits.low if limits else None,
            "high": limits.high if limits else None,
            "score_published": self.published,
            "threshold": self.threshold,
            "state": self.state,
            "partial": self.partial,
            "outcomes": dict(self.outcomes),
        }


def anytime_limits(counts: Mapping[float, int], divisor: float = 1.0) -> Interval:
    """Limits that hold at any stop, 0.025 on each side.

    Args:
        divisor: tempering of scores that share contexts.
    """
    return _sequence(tuple(sorted(counts.items())), divisor)


@lru_cache(maxsize=4096)
def _sequence(counts: tuple[tuple[float, int], ...], divisor: float) -> Interval:
    return confidence_sequence(dict(counts), divisor=divisor)


def anytime_state(counts: Mapping[float, int], threshold: float, divisor: float = 1.0) -> State:
    """The state of an adaptive sample."""
    limits = anytime_limits(counts, divisor)
    return "pass" if limits.low > threshold else "fail" if limits.high < threshold else "undecided"


def task_facts(config: Mapping[str, Any], records: Iterable[Record]) -> dict[str, TaskFacts]:
    """Facts by label, in the battery's order; tasks that only imported records know come last."""
    found: dict[str, TaskFacts] = {}
    for entry in config.get("tasks") or ():
        info = entry.get("info") or {}
        label = entry.get("label") or entry["task"]
        found[label] = TaskFacts(
            label=label,
            capability=info.get("capability", "retrieval"),
            family=info.get("family", "needle"),
            chance=float(info.get("chance") or 0.0),
            version=int(info.get("version") or 1),
            has_depth=bool(info.get("has_depth", True)),
            source=info.get("source") or "",
            license=info.get("license") or "",
            params=entry.get("params") or {},
            queries=int(info.get("queries") or 1),
            human=info.get("human"),
        )
    for record in records:
        if record.task not in found:
            found[record.task] = TaskFacts(
                label=record.task,
                capability=record.capability,
                family=record.family,
                chance=0.0,
                version=record.version,
                has_depth=record.depth is not None,
                source="",
                license="",
                params=record.params,
            )
    return found


def last_states(records: Sequence[Record]) -> list[Record]:
    """One record per sample, the last one; order of first appearance."""
    return list({record.key: record for record in records}.values())


def build_cells(
    records: Sequence[Record],
    config: Mapping[str, Any],
    facts: Mapping[str, TaskFacts],
    tempered: Mapping[str, float] | None = None,
) -> tuple[Cell, ...]:
    """Every planned cell and every cell that has records: task by task, then length, then depth.

    Args:
        tempered: the tasks of adaptive scans, and what these divide their evidence by.
    """
    held: dict[tuple[str, int, float | None], list[Record]] = defaultdict(list)
    for record in records:
        held[record.task, record.length, record.depth].append(record)
    planned: Counter[tuple[str, int, float | None]] = Counter()
    for entry in config.get("planned") or ():
        planned[entry["task"], entry["length"], entry.get("depth")] += int(entry["n"])
    order = {label: rank for rank, label in enumerate(facts)}
    keys = [key for key in planned.keys() | held.keys() if key[0] in order]
    keys.sort(key=lambda key: (order[key[0]], key[1], -1.0 if key[2] is None else key[2]))
    tempered = tempered or {}
    cells = [
        _cell(key, held.get(key, []), planned.get(key, 0), facts[key[0]].threshold, adaptive=key[0] in tempered)
        for key in keys
    ]
    fixed = iter(_sharing([cell for cell in cells if cell.task not in tempered], facts))
    return tuple(replace(cell, sharing=tempered[cell.task]) if cell.task in tempered else next(fixed) for cell in cells)


def _sharing(cells: Sequence[Cell], facts: Mapping[str, TaskFacts]) -> Iterator[Cell]:
    """The cells of a fixed grid, with the number of cells that share each context."""
    alike = Counter(place for cell in cells if (place := _context_place(cell, facts)))
    for cell in cells:
        place = _context_place(cell, facts)
        yield replace(cell, sharing=float(alike[place])) if place else cell


def _context_place(cell: Cell, facts: Mapping[str, TaskFacts]) -> tuple[str, int, float] | None:
    """What the cells that share their contexts have in common; None where samples have contexts of their own."""
    if facts[cell.task].queries == 1 or cell.depth is None:
        return None
    return cell.task, cell.length, place_in_context(cell.depth)[1]


def _cell(
    key: tuple[str, int, float | None],
    records: Sequence[Record],
    planned: int,
    threshold: float | None,
    *,
    adaptive: bool,
) -> Cell:
    counts = Counter(record.outcome for record in records)
    outcomes: dict[str, int] = {outcome: counts.get(outcome, 0) for outcome in OUTCOMES}
    outcomes["not_run"] += max(0, planned - len(records))
    counted = [record for record in records if record.outcome in COUNTED]
    has_published = any(record.score_published is not None for record in counted)
    published = math.fsum(record.score_published or 0.0 for record in counted)
    return Cell(
        task=key[0],
        length=key[1],
        depth=key[2],
        planned=max(planned, len(records)),
        n=len(counted),
        s=math.fsum(record.score or 0.0 for record in counted),
        published=published / len(counted) if has_published else None,
        outcomes=outcomes,
        threshold=threshold,
        counts=count(record.score or 0.0 for record in counted) if adaptive else None,
    )


def add_outcomes(cells: Iterable[Cell]) -> dict[str, int]:
    """All seven outcomes, summed over cells."""
    total: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    for cell in cells:
        for outcome in OUTCOMES:
            total[outcome] += cell.outcomes[outcome]
    return total
