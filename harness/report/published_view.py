"""What a card says of published benchmarks: RULER's summary, lengths relative to a base score, departures of the tasks."""

from collections.abc import Mapping
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.report.wording import counts_text, join_words, percent
from longreach.harness.stats.effective import NOLIMA_SHARE, RULER_THRESHOLD
from longreach.harness.stats.estimates import Estimates
from longreach.harness.stats.published import RULER_TASKS
from longreach.harness.stats.summaries import SHORTEST_CLAIM, RelativeLength, RulerSummary

PUBLISHED_TRIALS = 130
"""Trials per pair and length of NoLiMa: five haystacks at 26 depths."""


def published_view(estimates: Estimates, config: Mapping[str, Any]) -> dict[str, Any]:
    """The names `ruler`, `relative` and `departures` of the templates; None or empty where there is nothing to say."""
    return {
        "ruler": _ruler(estimates.ruler) if estimates.ruler else None,
        "relative": [_relative(item) for item in estimates.relative],
        "relative_notes": _relative_notes(estimates.relative),
        "departures": departures(config),
    }


def _ruler(summary: RulerSummary) -> dict[str, Any]:
    """Rows as strings, on RULER's scale of 0 to 100."""
    rows = [
        [label, *map(_score, scores), counts_text(filter(None, summary.n[label]))]
        for label, scores in summary.tasks.items()
    ]
    figures = [
        ("Avg", summary.average),
        ("wAvg(inc)", summary.weighted_inc),
        ("wAvg(dec)", summary.weighted_dec),
    ]
    known = [length for length, mean in zip(summary.lengths, summary.means, strict=True) if mean is not None]
    notes = []
    if len(known) < len(summary.lengths):
        lost = [format_length(length) for length in summary.lengths if length not in known]
        notes.append(
            f"At {join_words(lost)} not all {RULER_TASKS} tasks were tested: no mean there, and none of the averages uses it "
            f"(RULER's table counts 0 where a model takes no prompt)."
        )
    if summary.other_text:
        notes.append(
            f"On other text than RULER's own, and not to be compared with its table: {join_words(summary.other_text)}."
        )
    return {
        "lengths": [format_length(length) for length in summary.lengths],
        "rows": rows,
        "means": list(map(_score, summary.means)),
        "figures": [f"{name} {_score(value)}" for name, value in figures if value is not None],
        "effective": f"effective length at {RULER_THRESHOLD}: {summary.effective or 'not stated, the shortest length that holds all tasks has no mean'}",
        "notes": notes,
    }


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _relative(item: RelativeLength) -> list[str]:
    """Task, base, base of means, threshold, effective length, the same by the base of means, trials per pair, scores."""
    return [
        item.task,
        percent(item.base, 1),
        percent(item.base_of_means, 1),
        percent(item.threshold, 1),
        _length(item, item.value),
        _length(item, item.value_of_means),
        f"{item.trials:.1f} x {item.n_pairs:,} pairs",
        ", ".join(f"{format_length(length)} {percent(score)}" for length, score in item.scores.items()),
    ]


def _length(item: RelativeLength, value: int | None) -> str:
    claims = [length for length in sorted((*item.scores, *item.untested)) if length >= SHORTEST_CLAIM]
    if not claims or claims[0] in item.untested:
        return "not tested"
    if value is None:
        return f"< {format_length(claims[0])}"
    longer = [length for length in claims if length > value]
    return f">= {format_length(value)}" if not longer or longer[0] in item.untested else format_length(value)


def _relative_notes(items: tuple[RelativeLength, ...]) -> list[str]:
    if not items:
        return []
    lengths = join_words([format_length(length) for length in items[0].base_lengths])
    share = f"{NOLIMA_SHARE:g}"
    notes = [
        (
            f"Base: the mean over question-needle pairs of each pair's best mean at {lengths}. Effective length: the last of "
            f"1k or more whose score, and every shorter one's, is at least {share} x base."
        )
    ]
    few = min(item.trials for item in items)
    if few < PUBLISHED_TRIALS:
        notes.append(
            f"With {few:.1f} trials per pair and length ({PUBLISHED_TRIALS} as published) the best of several means lies above "
            f"the truth: the threshold is too high and the length too short. The base of plain means has no such bias."
        )
    notes += [
        f"{item.task} passes again at {format_length(item.largest)}, the largest length that does."
        for item in items
        if item.largest is not None and item.largest != item.value
    ]
    return notes


def departures(config: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Tasks of the run with the sentences that say in what they differ from their source; what is shared stands once."""
    by_sentence: dict[str, list[str]] = {}
    labels = []
    for entry in config.get("tasks") or ():
        own = (entry.get("info") or {}).get("departures") or ()
        if own and (entry.get("info") or {}).get("family") != "control":
            labels.append(str(entry.get("label") or entry["task"]))
            for sentence in own:
                by_sentence.setdefault(str(sentence), []).append(labels[-1])
    groups: dict[tuple[str, ...], list[str]] = {}
    for sentence, tasks in by_sentence.items():
        groups.setdefault(tuple(tasks), []).append(sentence)
    many = len(labels) > 1
    return [
        (f"all {len(labels)} of them" if many and len(tasks) == len(labels) else ", ".join(tasks), sentences)
        for tasks, sentences in groups.items()
    ]
