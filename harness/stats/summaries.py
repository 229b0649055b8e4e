"""Summaries that published benchmarks print, from the records of a run: RULER's averages, and a length relative to a base.

Both use the benchmarks' own rules of scoring where the tasks have one (`score_published`).

RULER (Hsieh et al. 2024): score at a length = plain mean of 13 tasks, 0 to 100; Avg, wAvg(inc), wAvg(dec) over lengths;
effective length = the last of the unbroken run of lengths with a score >= 85.6. NoLiMa (Modarressi et al. 2025, section 4):
base = mean over question-needle pairs of the pair's best mean among the short lengths; effective length = the largest
length of 1k or more with a score >= 0.85 x base. The best of a few noisy means is too high: from ten trials each, a true
0.90 gives an expected base of 0.97. So the trials per pair, and a base of plain means, stand beside it.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longreach.harness.record import COUNTED, Record
from longreach.harness.stats.cells import Cell
from longreach.harness.stats.effective import NOLIMA_SHARE, contiguous, effective_length
from longreach.harness.stats.groups import PAIR
from longreach.harness.stats.published import RULER_TASKS, average, mean_of_tasks, printed_form, weighted_average

RULER = "ruler."
"""What the names of RULER's tasks begin with."""
LONGEST_BASE = 1024
"""Tokens: base scores come from lengths up to here."""
SHORTEST_CLAIM = 1000
"""Tokens: effective lengths are looked for from here on (NoLiMa's 1K, which may be 1,000 or 1,024)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulerSummary:
    """RULER's figures on a scale of 0 to 100; None where a task was not tested."""

    lengths: tuple[int, ...]
    tasks: Mapping[str, tuple[float | None, ...]]
    """Label -> score at each length."""
    n: Mapping[str, tuple[int, ...]]
    """Label -> samples at each length."""
    means: tuple[float | None, ...]
    """Mean of the 13 at each length; None where one of them is missing."""
    average: float | None
    """Over the lengths that have a mean, as are the next two."""
    weighted_inc: float | None
    weighted_dec: float | None
    effective: str
    """As RULER prints it: `64K`, `<4K`, `>128K`; empty if the shortest length that holds all tasks has no mean."""
    other_text: tuple[str, ...]
    """Labels of tasks on other text than RULER's own."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "lengths": list(self.lengths),
            "tasks": {label: list(scores) for label, scores in self.tasks.items()},
            "n": {label: list(counts) for label, counts in self.n.items()},
            "mean_of_13": list(self.means),
            "avg": self.average,
            "wavg_inc": self.weighted_inc,
            "wavg_dec": self.weighted_dec,
            "effective_85.6": self.effective or None,
            "other_text": list(self.other_text),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeLength:
    """One task's scores relative to its base; scores are fractions."""

    task: str
    """Label; of several tasks together, all of them."""
    n_pairs: int
    """Question-needle pairs that were asked at a base length."""
    trials: float
    """Mean number of trials per pair and base length."""
    base_lengths: tuple[int, ...]
    base: float
    """Mean over pairs of the best of their means at the base lengths."""
    base_of_means: float
    """The same with each pair's mean in place of its best."""
    scores: Mapping[int, float]
    """Tested length -> mean score, ascending."""
    untested: tuple[int, ...]
    """Lengths that did not fit, were cut, or have no answer: each ends the unbroken run."""
    value: int | None
    """Effective length: the last of the unbroken run; None if the shortest of SHORTEST_CLAIM or more does not pass."""
    largest: int | None
    """The largest length that passes, whatever comes before it."""
    value_of_means: int | None
    """`value` by the base of means."""

    @property
    def threshold(self) -> float:
        return NOLIMA_SHARE * self.base

    def to_dict(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "n_pairs": self.n_pairs,
            "trials_per_pair_and_length": self.trials,
            "base_lengths": list(self.base_lengths),
            "base": self.base,
            "base_of_means": self.base_of_means,
            "threshold": self.threshold,
            "scores": {str(length): score for length, score in self.scores.items()},
            "untested": list(self.untested),
            "effective_0.85_base": self.value,
            "largest_passing": self.largest,
            "effective_0.85_base_of_means": self.value_of_means,
        }


def ruler_summary(cells: Sequence[Cell], config: Mapping[str, Any]) -> RulerSummary | None:
    """RULER's figures if all thirteen tasks are in the run, once each; None otherwise."""
    entries = [entry for entry in config.get("tasks") or () if str(entry["task"]).startswith(RULER)]
    names = {entry["task"] for entry in entries}
    entries = [entry for entry in entries if (entry.get("info") or {}).get("family") != "control"]
    labels = [str(entry.get("label") or entry["task"]) for entry in entries]
    if not len(names) == len(labels) == RULER_TASKS:
        return None
    scores: dict[str, dict[int, float]] = {label: {} for label in labels}
    counts: dict[str, dict[int, int]] = {label: {} for label in labels}
    for cell in cells:
        if cell.task in scores and cell.blocked_by is None and cell.mean is not None:
            value = cell.mean if cell.published is None else cell.published
            scores[cell.task][cell.length] = 100 * value
            counts[cell.task][cell.length] = cell.n
    lengths = tuple(sorted({cell.length for cell in cells if cell.task in scores}))
    means = tuple(_mean(scores, length) for length in lengths)
    known = [mean for mean in means if mean is not None]
    too_short = {entry["length"] for entry in config.get("infeasible") or () if entry["task"] in scores}
    fitting = [(length, mean) for length, mean in zip(lengths, means, strict=True) if length not in too_short]
    effective = ""
    if fitting and fitting[0][1] is not None:
        grid, tested = zip(*fitting, strict=True)
        effective = printed_form(effective_length(grid, tested, "ruler"), grid[0])
    return RulerSummary(
        lengths=lengths,
        tasks={label: tuple(own.get(length) for length in lengths) for label, own in scores.items()},
        n={label: tuple(own.get(length, 0) for length in lengths) for label, own in counts.items()},
        means=means,
        average=average(known) if known else None,
        weighted_inc=weighted_average(known, "inc") if known else None,
        weighted_dec=weighted_average(known, "dec") if known else None,
        effective=effective,
        other_text=tuple(
            str(entry.get("label") or entry["task"])
            for entry in entries
            if {"haystack", "documents"} & set(entry.get("params") or {})
        ),
    )


def _mean(scores: Mapping[str, Mapping[int, float]], length: int) -> float | None:
    here = {label: own[length] for label, own in scores.items() if length in own}
    return mean_of_tasks(here) if len(here) == RULER_TASKS else None


def relative_lengths(records: Iterable[Record], config: Mapping[str, Any]) -> tuple[RelativeLength, ...]:
    """For each task whose records name their question-needle pair (`extra["groups"]["pair"]`), and first for all pairs of
    a headline together, where that has several such tasks."""
    every: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        every[record.task].append(record)
    held = {
        task: own for task, own in every.items() if any(record.outcome in COUNTED and _pair(record) for record in own)
    }
    found = []
    for labels in (config.get("headline") or {}).values():
        own = [label for label in labels if label in held]
        if len(own) > 1:
            found.append(_relative(" + ".join(own), [record for label in own for record in held[label]]))
    found += [_relative(task, own) for task, own in held.items()]
    return tuple(item for item in found if item is not None)


def _untested(records: Sequence[Record]) -> tuple[int, ...]:
    """Lengths at which a sample did not fit or was cut, or a task has no answer: as cells are blocked."""
    blocked = {record.length for record in records if record.outcome in ("overflow", "truncated")}
    asked = {(record.task, record.length) for record in records}
    answered = {(record.task, record.length) for record in records if record.outcome in COUNTED}
    return tuple(sorted(blocked | {length for _, length in asked - answered}))


def _pair(record: Record) -> str:
    """The question-needle pair that a sample asked; empty if its task has none."""
    groups = record.extra.get("groups")
    return str(groups.get(PAIR) or "") if isinstance(groups, Mapping) else ""


def _relative(task: str, records: Sequence[Record]) -> RelativeLength | None:
    by_pair: dict[tuple[str, int], list[float]] = defaultdict(list)
    by_length: dict[int, list[float]] = defaultdict(list)
    untested = _untested(records)
    for record in records:
        if record.outcome not in COUNTED or not _pair(record) or record.length in untested:
            continue
        value = record.score_published if record.score_published is not None else record.score or 0.0
        by_pair[_pair(record), record.length].append(value)
        by_length[record.length].append(value)
    base_lengths = tuple(sorted(length for length in by_length if length <= LONGEST_BASE))
    pairs = sorted({pair for pair, length in by_pair if length in base_lengths})
    if not pairs:
        return None
    own = {pair: [by_pair[pair, length] for length in base_lengths if (pair, length) in by_pair] for pair in pairs}
    base = _plain_mean(max(map(_plain_mean, means)) for means in own.values())
    base_of_means = _plain_mean(_plain_mean(value for values in means for value in values) for means in own.values())
    scores = {length: _plain_mean(values) for length, values in sorted(by_length.items())}
    claims = [length for length in sorted((*scores, *untested)) if length >= SHORTEST_CLAIM]

    def passing(base: float) -> list[bool]:
        return [scores.get(length, -1.0) >= NOLIMA_SHARE * base - 1e-12 for length in claims]

    passes = passing(base)
    return RelativeLength(
        task=task,
        n_pairs=len(pairs),
        trials=sum(len(values) for means in own.values() for values in means) / (len(pairs) * len(base_lengths)),
        base_lengths=base_lengths,
        base=base,
        base_of_means=base_of_means,
        scores=scores,
        untested=untested,
        value=contiguous(claims, passes),
        largest=max((length for length, good in zip(claims, passes, strict=True) if good), default=None),
        value_of_means=contiguous(claims, passing(base_of_means)),
    )


def _plain_mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found)
