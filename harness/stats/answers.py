"""What the answers look like: distractors against no answers, one example per cell, notes on the prompts."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from longreach.harness.record import COUNTED, Record
from longreach.harness.report.wording import plain

EXAMPLE_CHARS = 160
"""Longest example answer that goes into card.json and card.html, in characters."""

CellKey = tuple[str, int, float | None]


def wrong_answers(records: Sequence[Record]) -> list[dict[str, Any]]:
    """By task and length, for tasks whose scorer tells distractors apart: right, distractor, other, unanswered."""
    groups: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    named = {record.task for record in records if "distractor" in record.parts}
    for record in records:
        if record.task in named and record.outcome in COUNTED:
            groups[record.task, record.length][_kind(record)] += 1
    kinds = ("right", "distractor", "other", "no_answer", "refused")
    return [
        {"task": task, "length": length, "n": counts.total(), **{kind: counts[kind] for kind in kinds}}
        for (task, length), counts in sorted(groups.items())
    ]


def _kind(record: Record) -> str:
    if record.outcome != "scored":
        return record.outcome
    if record.score == 1.0:
        return "right"
    return "distractor" if record.parts.get("distractor", 0.0) > 0 else "other"


def examples(records: Sequence[Record]) -> dict[CellKey, dict[str, Any]]:
    """One answer per cell, the first wrong one if there is any: what was expected, what came, what it scored."""
    chosen: dict[CellKey, Record] = {}
    for record in records:
        if record.outcome not in COUNTED:
            continue
        key = (record.task, record.length, record.depth)
        held = chosen.get(key)
        if held is None or ((held.score or 0.0) == 1.0 and (record.score or 0.0) < 1.0):
            chosen[key] = record
    return {
        key: {
            "outcome": record.outcome,
            "score": record.score,
            "target": plain(", ".join(record.target), EXAMPLE_CHARS),
            "text": plain(record.text, EXAMPLE_CHARS),
        }
        for key, record in chosen.items()
    }


def recycled_shares(records: Sequence[Record]) -> dict[int, tuple[int, int]]:
    """Length -> (samples whose filler repeats a part of the corpus, samples), where there are any."""
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for record in records:
        counts[record.length][0] += bool(record.extra.get("recycled"))
        counts[record.length][1] += 1
    return {length: (some, n) for length, (some, n) in sorted(counts.items()) if some}


def prompt_notes(records: Sequence[Record]) -> list[tuple[str, int]]:
    """Notes that the prompt builder left on samples, with how many samples carry them; most frequent first."""
    counts: Counter[str] = Counter()
    for record in records:
        notes = record.extra.get("notes") or ()
        counts.update({plain(note, 200) for note in ([notes] if isinstance(notes, str) else notes)})
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def too_large(records: Sequence[Record]) -> dict[int, int]:
    """Length -> overflows that a limit on the size of one request caused, not the model's window."""
    counts: Counter[int] = Counter()
    for record in records:
        if record.outcome == "overflow" and record.attempts and record.attempts[-1].status == "too_large":
            counts[record.length] += 1
    return dict(sorted(counts.items()))
