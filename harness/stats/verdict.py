"""Effective lengths of a run: the best estimate and its 95% bracket for the tasks of one headline.

low = last length k where Wilson and Clopper-Pearson both lie above the threshold at every length up to k; high = the
length before the first whose Clopper-Pearson upper bound at 0.025 / K is below it (K lengths). The bracket holds the
true contiguous length with at least 95% for any shape of curve.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.report.wording import depth_text, join_words, percent
from longreach.harness.stats.curves import MAX_UNANSWERED, Curve, CurvePoint
from longreach.harness.stats.effective import NOLIMA_SHARE, RULER_THRESHOLD, Censored, Estimate, Verdict, contiguous
from longreach.harness.stats.intervals import TAIL

BASE_LENGTH = 1024
"""Longest length (tokens) that counts as short context for a threshold relative to a base score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRules:
    """Effective lengths of the same means by published rules; None where nothing passes or the rule cannot be used."""

    ruler: int | None
    nolima: int | None
    nolima_base: float | None
    """Mean at the lengths up to 1k; None if there is none, and then the rule cannot be used."""
    largest_passing: int | None
    complete: bool
    """False: some length was not tested, so that "largest passing" says nothing."""
    stated: bool
    """False: the shortest length was not tested, so that no rule says anything."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "ruler_85.6": self.ruler,
            "nolima_0.85_base": self.nolima,
            "nolima_base": self.nolima_base,
            "largest_passing": self.largest_passing,
            "complete": self.complete,
        }


def _definition(curve: Curve, depths: Sequence[float]) -> str:
    places = f"equal-weight mean over depths {join_words([depth_text(depth) for depth in depths])}" if depths else ""
    tasks = join_words(list(curve.tasks))
    parts = [f"equal-weight mean of {tasks}" if len(curve.tasks) > 1 else f"mean score of {tasks}"]
    if places:
        parts.append(places)
    parts.append(f">= {percent(curve.threshold or 0)} at every tested length up to it")
    return "; ".join(parts)


def not_measured(definition: str, threshold: float, note: str) -> Estimate:
    """The estimate of a capability that nothing was measured for."""
    return Estimate(
        value=None,
        low=None,
        high=None,
        censored=None,
        state="not_measured",
        definition=definition,
        threshold=threshold,
        level=None,
        method="gate",
        n=0,
        notes=(note,),
    )


def effective(curve: Curve, depths: Sequence[float] = ()) -> Estimate:
    """Best estimate and bracket of one headline curve.

    Args:
        depths: named in the definition; empty for tasks without depth.
    """
    if curve.scan is not None:
        return curve.scan
    points = curve.points
    threshold = curve.threshold
    if threshold is None:
        raise ValueError(f"the curve {curve.name!r} has no threshold")
    definition = _definition(curve, depths)
    if not any(point.tested for point in points):
        note = f"No length could be tested: {_why_not(points[0])}." if points else "No length was planned."
        return not_measured(definition, threshold, note)
    usable = [point.tested and point.supports_claim for point in points]
    grid = [point.length for point in points]
    above = [ok and (point.mean or 0.0) >= threshold for ok, point in zip(usable, points, strict=True)]
    certain = [ok and point.state == "pass" for ok, point in zip(usable, points, strict=True)]
    value = contiguous(grid, above)
    low = contiguous(grid, certain)
    tail = TAIL / len(points)
    ceiling = next((i for i, p in enumerate(points) if p.fails_at(tail) or p.blocked_by == "overflow"), len(points))
    stop = grid.index(value) + 1 if value is not None else 0
    blocker = points[stop] if stop < len(points) else None
    high = grid[max(ceiling - 1, 0)]
    censored: Censored | None = None
    if value is None:
        censored = "below grid" if points[0].tested and points[0].supports_claim else None
        censored = "below grid" if ceiling == 0 and points[0].tested else censored
    elif blocker is None or (not blocker.tested and not any(p.fails_at(tail) for p in points)):
        censored = "above grid"
    return Estimate(
        value=value,
        low=low,
        high=high,
        censored=censored,
        state=_verdict(blocker, tail, single=(low == high if ceiling else points[0].tested)),
        definition=definition,
        threshold=threshold,
        level=1 - 2 * TAIL,
        method="gate",
        n=curve.n,
        notes=tuple(_notes(curve, blocker, tail)),
        first=grid[0],
        high_found=ceiling < len(points),
    )


def _verdict(blocker: CurvePoint | None, tail: float, *, single: bool) -> Verdict:
    if blocker is not None and blocker.tested and not blocker.supports_claim and not blocker.fails_at(tail):
        return "refused"
    return "measured" if single else "undecided"


def _why_not(point: CurvePoint) -> str:
    """Why a length is not tested, as half a sentence."""
    length, counts = format_length(point.length), point.outcomes
    if point.blocked_by == "missing":
        return f"{join_words(list(point.blocking))} has no samples at {length}"
    if point.blocked_by in ("overflow", "truncated"):
        count = counts[point.blocked_by]
        what = "did not fit the model" if point.blocked_by == "overflow" else "reached the model cut short"
        return f"{count} {'sample' if count == 1 else 'samples'} at {length} {what}"
    what = "failed in transport" if point.blocked_by == "failed" else "were not run"
    return f"samples at {length} {what}"


def _notes(curve: Curve, blocker: CurvePoint | None, tail: float) -> list[str]:
    notes = []
    for point in curve.points:
        length = format_length(point.length)
        if point.blocked_by == "overflow":
            notes.append(f"Not supported from {length} on: {_why_not(point)}.")
            break
        if not point.tested:
            notes.append(f"Lengths from {length} on cannot be claimed: {_why_not(point)}.")
            break
        if point.fails_at(tail):
            break
        if not point.supports_claim:
            notes.append(unanswered_note(point))
            break
    if blocker is not None and blocker.tested and (again := _passes_again(curve, blocker)):
        notes.append(_non_monotone(blocker, again))
    return notes


def _non_monotone(lost: CurvePoint, again: CurvePoint) -> str:
    """The words pass and fail only where the intervals say so."""
    where, later = format_length(lost.length), format_length(again.length)
    if lost.state == "fail" and again.state == "pass":
        return f"Non-monotone: fails at {where}, passes again at {later}."
    return (
        f"Perhaps non-monotone: the mean is below the threshold at {where} ({lost.state}, n {lost.n:,}) and not below "
        f"it at {later} ({again.state}, n {again.n:,})."
    )


def unanswered_note(point: CurvePoint) -> str:
    """Which share went unanswered at a length, and what to raise."""
    length = format_length(point.length)
    if point.no_answer_rate > MAX_UNANSWERED:
        return (
            f"{length} supports no claim: {percent(point.no_answer_rate)} of {point.n} answers there were empty; raise "
            f"--reasoning-budget or the answer budget, or check the chat template."
        )
    return (
        f"{length} supports no claim: {percent(point.refused_rate)} of {point.n} samples there were refused; use another "
        f"corpus or needle kind, or a model without this filter."
    )


def _passes_again(curve: Curve, lost: CurvePoint) -> CurvePoint | None:
    threshold = curve.threshold or 0.0
    if (lost.mean or 0.0) >= threshold:
        return None
    return next((p for p in curve.points if p.length > lost.length and (p.mean or 0.0) >= threshold), None)


def other_rules(curve: Curve) -> OtherRules:
    """RULER, NoLiMa and "largest passing" on the means of the same runs."""
    tested = [point for point in curve.points if point.mean is not None]
    grid = [point.length for point in curve.points]
    complete = len(tested) == len(grid) and bool(grid)

    def unbroken(threshold: float) -> int | None:
        return contiguous(grid, [(point.mean or 0.0) >= threshold - 1e-12 for point in curve.points])

    short = [point for point in tested if point.length <= BASE_LENGTH]
    total = sum(point.n_effective for point in short)
    base = sum(point.s for point in short) / total if total else None
    passing = [point.length for point in tested if (point.mean or 0.0) >= (curve.threshold or 0.0)]
    return OtherRules(
        ruler=unbroken(RULER_THRESHOLD / 100),
        nolima=unbroken(NOLIMA_SHARE * base) if base else None,
        nolima_base=base,
        largest_passing=max(passing, default=None) if complete else None,
        complete=complete,
        stated=bool(curve.points) and curve.points[0].tested,
    )


def headline_tasks(config: Mapping[str, Any], capability: str, labels: Sequence[str]) -> tuple[str, ...]:
    """Tasks of the headline: those that the battery names, else every task of the capability in `labels`."""
    named = (config.get("headline") or {}).get(capability)
    return tuple(named) if named else tuple(labels)
