"""Scores by group: what rows of a published set belong to (domain, difficulty, number of needles), pooled over lengths.

Intervals are Wilson's, 95%, n = rows. A row that was not scored is in no group's n; it is counted apart.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longreach.harness.record import COUNTED, Record
from longreach.harness.stats.cells import TaskFacts
from longreach.harness.stats.intervals import Interval, wilson

UNREAD = {"unparsed": "strict", "unparsed_published": "published"}
"""Part of a score that is 1 where no answer could be read -> the rule that could not read it."""
PAIR = "pair"
"""The group that names one question-needle pair: `summaries` reads it, a table of its hundreds of values says nothing."""
_FIRST = ("easy", "hard", "short", "medium", "long")
"""Values that have an order of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScore:
    """One value of one group."""

    value: str
    n: int
    s: float
    """Sum of the scores."""
    published: float | None
    """Mean by the published rule, where every row has one."""
    untested: int
    """Rows that were asked and not scored."""

    @property
    def mean(self) -> float | None:
        return self.s / self.n if self.n else None

    @property
    def limits(self) -> Interval | None:
        """95%, Wilson."""
        return wilson(self.s, self.n) if self.n else None

    def to_dict(self) -> dict[str, Any]:
        limits = self.limits
        return {
            "value": self.value,
            "n": self.n,
            "mean": self.mean,
            "low": limits.low if limits else None,
            "high": limits.high if limits else None,
            "score_published": self.published,
            "untested": self.untested,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTable:
    """All groups of one task."""

    task: str
    chance: float
    human: float | None
    n_rows: int | None
    """Rows of the set, where it is known."""
    overall: GroupScore
    groups: Mapping[str, tuple[GroupScore, ...]]
    unread: Mapping[str, int]
    """Rule (strict, published) -> answers that it could not read."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "chance": self.chance,
            "human": self.human,
            "rows": self.n_rows,
            "overall": self.overall.to_dict(),
            "groups": {name: [row.to_dict() for row in rows] for name, rows in self.groups.items()},
            "unread": dict(self.unread),
        }


def group_tables(
    records: Sequence[Record], config: Mapping[str, Any], facts: Mapping[str, TaskFacts]
) -> tuple[GroupTable, ...]:
    """A table for each task whose records belong to groups, in the order of the tasks."""
    sizes = {entry["task"]: int(entry["rows"]) for entry in config.get("data") or ()}
    found = []
    for label, fact in facts.items():
        own = [record for record in records if record.task == label and record.extra.get("groups")]
        if own:
            found.append(_table(own, fact, sizes.get(label)))
    return tuple(found)


def _table(records: Sequence[Record], fact: TaskFacts, n_rows: int | None) -> GroupTable:
    held: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        for name, value in record.extra["groups"].items():
            if name == PAIR:
                continue
            held.setdefault(str(name), {}).setdefault(str(value), []).append(record)
    counted = [record for record in records if record.outcome in COUNTED]
    unread = Counter(
        {
            rule: sum(record.parts.get(part, 1.0 if record.outcome != "scored" else 0.0) > 0 for record in counted)
            for part, rule in UNREAD.items()
            if any(part in record.parts for record in counted)
        }
    )
    return GroupTable(
        task=fact.label,
        chance=fact.chance,
        human=fact.human,
        n_rows=n_rows,
        overall=_score("overall", records),
        groups={
            name: tuple(_score(value, values[value]) for value in sorted(values, key=_order))
            for name, values in held.items()
        },
        unread=dict(unread),
    )


def _score(value: str, records: Iterable[Record]) -> GroupScore:
    records = list(records)
    counted = [record for record in records if record.outcome in COUNTED]
    # An empty answer or a refusal is worth nothing by any rule.
    published = [0.0 if record.outcome != "scored" else record.score_published for record in counted]
    known = [score for score in published if score is not None]
    has_rule = any(record.score_published is not None for record in counted) and len(known) == len(counted)
    return GroupScore(
        value=value,
        n=len(counted),
        s=sum(record.score or 0.0 for record in counted),
        published=sum(known) / len(known) if has_rule else None,
        untested=len(records) - len(counted),
    )


def _order(value: str) -> tuple[int, list[tuple[int, int, str]]]:
    """Known orders first; numbers within a text by their value, `8k` before `16k`."""
    rank = _FIRST.index(value) if value in _FIRST else len(_FIRST)
    parts = re.findall(r"\d+|\D+", value)
    return rank, [(0, int(part), "") if part.isdigit() else (1, 0, part.casefold()) for part in parts]
