"""Scores by group as the templates read them: strings only."""

from typing import Any

from longreach.harness.report.wording import percent
from longreach.harness.stats.estimates import Estimates
from longreach.harness.stats.groups import GroupScore, GroupTable

SHOWN = 25
"""Values of one group on a card; card.json has all."""
_NAMES = {"sub_domain": "sub-domain", "length": "length, as published"}
"""Groups whose name is not what a reader would say."""


def group_view(estimates: Estimates) -> list[dict[str, Any]]:
    """Per task: task, notes (sentences), published (is there such a column), rows [group, value, score, interval,
    published, n]."""
    return [_view(table) for table in estimates.groups]


def _view(table: GroupTable) -> dict[str, Any]:
    published = table.overall.published is not None
    rows = [["overall", "", *_cells(table.overall, published)]]
    notes = _notes(table)
    for name, scores in table.groups.items():
        shown = _NAMES.get(name, name)
        rows += [[shown, score.value, *_cells(score, published)] for score in scores[:SHOWN]]
        if len(scores) > SHOWN:
            notes.append(f"{len(scores) - SHOWN:,} more values of {shown} are in card.json.")
    return {"task": table.task, "notes": notes, "published": published, "rows": rows}


def _cells(score: GroupScore, published: bool) -> list[str]:
    limits = score.limits
    found = ["not tested", "-"]
    if score.mean is not None and limits is not None:
        found = [percent(score.mean, 1), f"{percent(limits.low, 1)} to {percent(limits.high, 1)}"]
    if published:
        found.append("-" if score.published is None else percent(score.published, 1))
    return [*found, f"{score.n:,}"]


def _notes(table: GroupTable) -> list[str]:
    references = [f"a guess has {percent(table.chance)}"] if table.chance else []
    references += [f"people have {percent(table.human, 1)}"] if table.human is not None else []
    notes = [f"For comparison: {', '.join(references)}."] if references else []
    n = table.overall.n
    if table.n_rows is not None and n < table.n_rows:
        notes.append(f"{n:,} of the {table.n_rows:,} rows are scored: this is the score of those, not of the set.")
    if table.unread and n:
        told = [f"{count:,} by the {rule} rule ({percent(count / n, 1)})" for rule, count in table.unread.items()]
        notes.append(f"Answers that could not be read count as wrong: {' and '.join(told)}, of {n:,}.")
    return notes
