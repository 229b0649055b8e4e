"""Curves: mean score against length, for a task, a family or a capability.

A point is the equal-weight mean over tasks, and within a task over its depths. Its interval uses
n = min over strata of (contexts / weight): the number of contexts that an evenly filled design of the same weights
would have had. Filled evenly, that is simply the number of contexts; filled unevenly, it errs on the safe side.
Where several questions share a context, it counts once.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from longreach.harness.stats.cells import Cell, TaskFacts, add_outcomes, anytime_limits, anytime_state
from longreach.harness.stats.effective import Estimate
from longreach.harness.stats.evalues import strict_evidence
from longreach.harness.stats.intervals import Interval, State, clopper_pearson, state_of, wilson

MAX_UNANSWERED = 0.05
"""Share of refusals, or of empty answers, above which a length supports no claim."""
REASONS = ("overflow", "truncated", "missing", "failed", "not_run")
"""Why a point is not tested, worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One length of a curve."""

    length: int
    n: int
    """Contexts that count."""
    n_effective: float
    """Contexts that the interval may use."""
    mean: float | None
    best: float | None
    """Mean if every unanswered sample had been right."""
    outcomes: Mapping[str, int]
    blocked_by: str | None
    """One of `REASONS`; None if tested."""
    blocking: tuple[str, ...]
    """Tasks that block it."""
    threshold: float | None
    counts: Mapping[float, int] | None = None
    """Scores of an adaptive sample; None for a fixed grid."""
    divisor: float = 1.0
    """Tempering of their evidence, where they share contexts."""

    @property
    def tested(self) -> bool:
        return self.mean is not None

    @property
    def s(self) -> float:
        return (self.mean or 0.0) * self.n_effective

    @property
    def limits(self) -> Interval | None:
        """95%: Wilson, or the confidence sequence of an adaptive sample."""
        if not self.tested:
            return None
        return wilson(self.s, self.n_effective) if self.counts is None else anytime_limits(self.counts, self.divisor)

    @property
    def state(self) -> State:
        if not self.tested:
            return "not_tested"
        if self.threshold is None:
            return "undecided"
        if self.counts is not None:
            return anytime_state(self.counts, self.threshold, self.divisor)
        return state_of(self.s, self.n_effective, self.threshold)

    @property
    def no_answer_rate(self) -> float:
        return self.outcomes["no_answer"] / self.n if self.n else 0.0

    @property
    def refused_rate(self) -> float:
        return self.outcomes["refused"] / self.n if self.n else 0.0

    @property
    def supports_claim(self) -> bool:
        """False where too many samples were refused or left without an answer."""
        return max(self.no_answer_rate, self.refused_rate) <= MAX_UNANSWERED

    def fails_at(self, tail: float) -> bool:
        """Certainly below the threshold, with `tail` for the error; unanswered samples get the benefit of the doubt
        where there are too many of them."""
        if not self.tested or self.threshold is None:
            return False
        if self.counts is not None:
            evidence = strict_evidence(self.counts, self.threshold, self.divisor)
            return self.supports_claim and evidence.dn >= math.log(1 / tail)
        mean = self.mean if self.supports_claim else self.best
        s = (mean or 0.0) * self.n_effective
        return clopper_pearson(s, self.n_effective, tail).high < self.threshold

    def to_dict(self) -> dict[str, Any]:
        limits = self.limits
        return {
            "length": self.length,
            "n": self.n,
            "n_effective": round(self.n_effective, 6),
            "mean": self.mean,
            "low": limits.low if limits else None,
            "high": limits.high if limits else None,
            "state": self.state,
            "supports_claim": self.supports_claim,
            "blocked_by": self.blocked_by,
            "outcomes": dict(self.outcomes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Mean score against length."""

    name: str
    kind: str
    """capability, family or task."""
    capability: str
    tasks: tuple[str, ...]
    threshold: float | None
    chance: float
    points: tuple[CurvePoint, ...]
    """Ascending lengths; lengths that no prompt of a task can have are left out."""
    scan: Estimate | None = None
    """Effective length as the adaptive scan that filled this curve found it."""

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(point.length for point in self.points)

    @property
    def n(self) -> int:
        return sum(point.n for point in self.points)

    def at(self, length: int | None) -> CurvePoint | None:
        return next((point for point in self.points if point.length == length), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "capability": self.capability,
            "tasks": list(self.tasks),
            "threshold": self.threshold,
            "chance": self.chance,
            "points": [point.to_dict() for point in self.points],
        }


def runs_of(points: Sequence[CurvePoint]) -> list[list[CurvePoint]]:
    """Unbroken runs of tested points: a line never crosses a length that was not tested."""
    runs: list[list[CurvePoint]] = [[]]
    for point in points:
        if point.tested:
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def make_point(length: int, by_task: Mapping[str, Sequence[Cell]], threshold: float | None) -> CurvePoint:
    """The point at `length` from the cells of each task there; an empty sequence is a missing task."""
    cells = [cell for row in by_task.values() for cell in row]
    causes = {task: {cell.blocked_by for cell in row} - {None} if row else {"missing"} for task, row in by_task.items()}
    blocked_by = next((reason for reason in REASONS if any(reason in found for found in causes.values())), None)
    mean = best = None
    n_effective = 0.0
    if blocked_by is None:
        # Fractions: eleven depths with 9 of 10 each are 0.9, which passes a threshold of 0.9, and all of all is 1.
        weights = [Fraction(1, len(by_task) * len(row)) for row in by_task.values() for _ in row]
        pairs = list(zip(weights, cells, strict=True))
        mean = float(sum(weight * Fraction(cell.s) / cell.n for weight, cell in pairs))
        best = float(sum(weight * (Fraction(cell.s) + _unanswered(cell)) / cell.n for weight, cell in pairs))
        n_effective = min(float(cell.n / weight) / cell.sharing for weight, cell in pairs)
    return CurvePoint(
        length=length,
        n=sum(cell.n for cell in cells),
        n_effective=n_effective,
        mean=mean,
        best=best,
        outcomes=add_outcomes(cells),
        blocked_by=blocked_by,
        blocking=tuple(task for task, found in causes.items() if found),
        threshold=threshold,
        counts=_pooled(cells) if blocked_by is None else None,
        divisor=max((cell.sharing for cell in cells), default=1.0),
    )


def _pooled(cells: Sequence[Cell]) -> Counter[float] | None:
    """Scores of all cells where they are adaptive; blocks fill them evenly."""
    pooled: Counter[float] = Counter()
    for cell in cells:
        if cell.counts is None:
            return None
        pooled.update(cell.counts)
    return pooled


def _unanswered(cell: Cell) -> int:
    return cell.outcomes["no_answer"] + cell.outcomes["refused"]


def make_curve(
    name: str,
    kind: str,
    tasks: Sequence[str],
    cells: Sequence[Cell],
    facts: Mapping[str, TaskFacts],
    infeasible: frozenset[tuple[str, int]] = frozenset(),
) -> Curve:
    """The curve of `tasks`; lengths that one of them cannot have at all (`infeasible`) are left out."""
    rows = {task: [cell for cell in cells if cell.task == task] for task in tasks}
    lengths = sorted({cell.length for row in rows.values() for cell in row})
    capability = facts[tasks[0]].capability
    threshold = facts[tasks[0]].threshold
    points = []
    for length in lengths:
        here = {task: [cell for cell in row if cell.length == length] for task, row in rows.items()}
        if any(not row and (task, length) in infeasible for task, row in here.items()):
            continue
        points.append(make_point(length, here, threshold))
    return Curve(
        name=name,
        kind=kind,
        capability=capability,
        tasks=tuple(tasks),
        threshold=threshold,
        chance=math.fsum(facts[task].chance for task in tasks) / len(tasks),
        points=tuple(points),
    )
