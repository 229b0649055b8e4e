"""Tables and lists of a card as plain strings: outcomes, scores by task and length, time and money, sample sizes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longreach.harness.lengths import format_length, format_threshold
from longreach.harness.record import OUTCOMES, Record
from longreach.harness.report.wording import counts_text, join_words, percent, seconds, usd
from longreach.harness.stats.contrasts import Contrast
from longreach.harness.stats.curves import Curve, CurvePoint
from longreach.harness.stats.estimates import Estimates
from longreach.harness.stats.intervals import Interval, cannot_show, clopper_pearson, min_n, state_of, wilson

RECALL = 0.95
"""Second threshold for retrieval that people ask for in gates; the card says which sample sizes can show it."""
WORDS = {"no_answer": "no answer", "not_run": "not run"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCell:
    """One cell of the score table."""

    text: str
    state: str
    """pass, fail, undecided, not_tested; `plain` where there is no threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One curve as a row."""

    name: str
    kind: str
    capability: str
    tasks: tuple[str, ...]
    """Members, for a family of several tasks."""
    cells: tuple[ScoreCell, ...]
    loss: str
    """Change in points from the shortest tested length to the largest."""
    n: str
    """Contexts per length."""


def outcome_counts(estimates: Estimates) -> list[tuple[str, int, str]]:
    """(word, count, remark) for all seven outcomes."""
    counts = estimates.outcomes
    total = sum(counts[name] for name in ("scored", "no_answer", "refused"))
    rows = []
    for name in OUTCOMES:
        remark = ""
        if name in ("no_answer", "refused") and counts[name]:
            remark = percent(counts[name] / total, 1)
        elif name != "scored" and counts[name]:
            lengths = sorted({cell.length for cell in estimates.cells if cell.outcomes[name]})
            remark = ", ".join(format_length(length) for length in lengths)
            remark += ": not supported" if name == "overflow" else ": not tested" if name == "truncated" else ""
        rows.append((WORDS.get(name, name), counts[name], remark))
    return rows


def score_lengths(estimates: Estimates) -> list[int]:
    """Columns of the score table."""
    return sorted({point.length for curve in estimates.tasks for point in curve.points})


def score_rows(estimates: Estimates) -> list[ScoreRow]:
    """Families with their tasks below them; a family of one task is one row."""
    lengths = score_lengths(estimates)
    rows = []
    for family in estimates.families:
        members = [curve for curve in estimates.tasks if curve.name in family.tasks]
        if len(members) > 1:
            rows.append(_row(family, lengths, members))
        rows += [_row(curve, lengths) for curve in members]
    return rows


def _row(curve: Curve, lengths: Sequence[int], members: Sequence[Curve] = ()) -> ScoreRow:
    """One row; `members` are the tasks of a family, which has a mean only where all of them were run."""
    some = {point.length for member in members for point in member.points if point.tested}
    tested = [point for point in curve.points if point.mean is not None]
    loss = "-"
    if len(tested) > 1:
        change = 100 * ((tested[-1].mean or 0.0) - (tested[0].mean or 0.0))
        loss = f"{change:+.0f} at {format_length(tested[-1].length)}" if round(change) else "none"
    return ScoreRow(
        name=curve.name,
        kind=curve.kind,
        capability=curve.capability,
        tasks=tuple(member.name for member in members),
        cells=tuple(score_cell(curve.at(length), curve.threshold, part=length in some) for length in lengths),
        loss=loss,
        n=counts_text(point.n for point in tested),
    )


def score_cell(point: CurvePoint | None, threshold: float | None, *, part: bool = False) -> ScoreCell:
    """One point as it stands in a table; `part` = some tasks of the mean were run there."""
    if point is None or (point.blocked_by in ("missing", "not_run") and part):
        return ScoreCell(text="part" if part else "-", state="not_tested")
    limits = point.limits
    if point.mean is None or limits is None:
        words = {"overflow": "n/s", "truncated": "n/t"}
        return ScoreCell(text=words.get(point.blocked_by or "", "-"), state="not_tested")
    half = 50 * (limits.high - limits.low)
    return ScoreCell(
        text=f"{percent(point.mean).removesuffix('%')} \u00b1{half:.0f}",
        state=point.state if threshold is not None else "plain",
    )


def size_sentences(estimates: Estimates) -> list[str]:
    """What the sample sizes of the headline cannot show, and how many samples would."""
    sentences = []
    for capability, curve in estimates.headline.items():
        if capability in estimates.scans:
            continue  # a scan has no sample size of its own
        own = curve.threshold or 0.0
        for threshold in sorted({own, RECALL} if capability == "retrieval" else {own}):
            for point in curve.points:
                if sentence := _size_sentence(capability, point, threshold):
                    sentences.append(sentence)
    return sentences


def _size_sentence(capability: str, point: CurvePoint, threshold: float) -> str | None:
    if not point.tested:
        return None
    length, n = format_length(point.length), math.floor(point.n_effective + 1e-9)
    if state_of(point.s, point.n_effective, threshold) == "fail":
        return None  # more samples are not what is missing
    word = "recall" if capability == "retrieval" else "reasoning"
    uneven = ""
    if n < point.n:
        uneven = f" ({point.n:,} samples, spread unevenly over tasks and depths, weigh like {n:,}.)"
    if text := cannot_show(length, n, threshold):
        return f"{word.capitalize()}: {text}{uneven}"
    mean = point.mean or 0.0
    bound = min(wilson(point.s, point.n_effective).low, clopper_pearson(point.s, point.n_effective).low)
    if mean < threshold or bound > threshold:
        return None
    misses = math.ceil(n - point.s - 1e-9)
    needed = min_n(threshold, misses)
    missed = f"{misses} miss" if misses == 1 else f"{misses} misses"
    return (
        f"{word.capitalize()}: {length} with {n} samples and {missed} leaves > {format_threshold(threshold)} undecided (lower bound "
        f"{math.floor(bound * 1000) / 1000:.3f}); with {missed} it takes {needed} samples.{uneven}"
    )


def control_rows(estimates: Estimates) -> list[list[str]]:
    """Task, mean without context, mean in a short context, what that says; one row per task."""
    rows: dict[str, list[str]] = {}
    for curve in estimates.controls:
        task, _, arm = curve.name.rpartition(" (")
        row = rows.setdefault(task, [task, "-", "-", ""])
        column = 1 if arm.startswith("no ") else 2
        row[column] = "; ".join(_control_text(point) for point in curve.points)
        words = [row[3], *(_control_word(curve, column, point.limits) for point in curve.points if point.limits)]
        row[3] = "; ".join(word for word in words if word)
    return list(rows.values())


def _control_text(point: CurvePoint) -> str:
    limits = point.limits
    if point.mean is None or limits is None:
        return "not tested"
    span = f"{percent(limits.low)} to {percent(limits.high)}"
    return f"{percent(point.mean)} ({span}, n {point.n:,}) at {format_length(point.length)}"


def _control_word(curve: Curve, column: int, limits: Interval) -> str:
    if column == 1:
        return "some answers are known or guessed without the haystack" if limits.low > curve.chance else ""
    return "fails even in a short context: the task, not the length" if limits.high < (curve.threshold or 0.0) else ""


def condition_rows(estimates: Estimates) -> list[tuple[str, list[ScoreCell]]]:
    """Label, then difference from the plain form at each length of the score table and over all, in points."""
    lengths = score_lengths(estimates)
    return [
        (found.label, [_difference(found.by_length.get(length)) for length in lengths] + [_difference(found.overall)])
        for found in estimates.conditions
    ]


def _difference(found: Contrast | None) -> ScoreCell:
    """`-12 (-20 to -4)`; state pass or fail where the interval leaves out zero."""
    if found is None:
        return ScoreCell(text="-", state="not_tested")
    state = "fail" if found.high < 0 else "pass" if found.low > 0 else "undecided"
    numbers = [
        f"{points:+.0f}" if (points := round(100 * value)) else "0" for value in (found.value, found.low, found.high)
    ]
    return ScoreCell(text=f"{numbers[0]} ({numbers[1]} to {numbers[2]})", state=state)


def time_rows(estimates: Estimates) -> list[list[str]]:
    """Length, cache, n, first token p50, p95, whole answer p50, p95."""
    words = {"unknown": "not reported"}
    return [
        [
            format_length(row["length"]),
            words.get(row["cache"], row["cache"]),
            f"{row['n']:,}",
            *(seconds(row[name]) for name in ("ttft_p50_s", "ttft_p95_s", "latency_p50_s", "latency_p95_s")),
        ]
        for row in estimates.latency["by_length"]
    ]


def money_lines(estimates: Estimates) -> list[str]:
    """Cost and tokens, in sentences."""
    cost = estimates.cost
    if not cost["n"]:
        return ["Nothing was sent."]
    tokens = cost["tokens"]
    counted = " (our own count: the server reports none)" if tokens["prompt_estimated"] else ""
    lines = [
        f"Cost: {usd(cost['total_usd'])} for {cost['n']:,} samples, {usd(cost['per_query_usd'])} per query."
        if cost["total_usd"] is not None
        else f"Cost: unknown for {cost['n']:,} samples; give --price-in, --price-cached and --price-out to have it."
        if not cost["n_priced"]
        else f"Cost: {usd(cost['known_usd'])} for {cost['n_priced']:,} of {cost['n']:,} samples, unknown for the rest."
    ]
    low, total = cost["total_low_usd"], cost["total_usd"]
    if low is not None and total is not None and low < total:
        lines.append(
            f"The server does not tell what came from its cache: the bill lies between {usd(low)} (every prompt cached) "
            f"and {usd(total)} (none)."
        )
    by_length = [row for row in cost["by_length"] if row["per_query_usd"] is not None]
    if len(by_length) > 1:
        parts = [f"{format_length(row['length'])} {usd(row['per_query_usd'])}" for row in by_length]
        lines.append(f"Cost per query by length: {', '.join(parts)}.")
    lines.append(
        f"Tokens: {_count(tokens['prompt'], 'an unknown number')} in prompts{counted}, "
        f"{_count(tokens['output'], 'an unknown number')} in answers"
        f"{_reasoning(tokens['reasoning'])}; {_cached(tokens['cached'])}."
    )
    return lines


def _count(value: int | None, unknown: str) -> str:
    return unknown if value is None else f"{value:,}"


def _reasoning(value: int | None) -> str:
    return " (how many of them are reasoning is not reported)" if value is None else f", {value:,} of them reasoning"


def _cached(value: int | None) -> str:
    if value is None:
        return "how many of the prompts' tokens came from a cache is not reported"
    return (
        f"{value:,} of the prompts' tokens came from a cache"
        if value
        else "none of the prompts' tokens came from a cache"
    )


def reported_rows(estimates: Estimates) -> list[list[str]]:
    """Task, length, mean, n (as stated) and reporter of means without samples."""
    return [
        [
            record.task,
            format_length(record.length),
            percent(record.score, 1) if record.score is not None else "-",
            f"{record.extra['n']:,}" if record.extra.get("n") else "not stated",
            reporter(record),
        ]
        for record in sorted(estimates.reported, key=lambda record: (record.task, record.length, record.origin))
    ]


def reporter(record: Record) -> str:
    """Who reported a mean: the vendor, or the tool that wrote it."""
    return "vendor" if record.origin == "vendor" else record.origin.partition(":")[2]


def infeasible_lines(config: Mapping[str, Any]) -> list[str]:
    """Lengths that a task cannot have, in sentences."""
    lines = []
    for entry in config.get("infeasible") or ():
        if entry.get("rows"):
            if not entry.get("refused"):  # those that were refused are among the warnings
                lines.append(f"{entry['task']}: {entry['reason']}.")
            continue
        minimum = entry.get("minimum")
        if entry["reason"].startswith("no data"):
            lines.append(f"{entry['task']}: left out, {entry['reason']}.")
            continue
        least = f" (at least {minimum:,} tokens)" if minimum else ""
        lines.append(f"{entry['task']} does not fit into {format_length(entry['length'])}{least}.")
    return lines


def tested_text(lengths: Sequence[int]) -> str:
    """Lengths in words."""
    return join_words([format_length(length) for length in lengths]) if lengths else "no length"
