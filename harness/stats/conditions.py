"""Conditions of one task against its plain form: `niah.single[language=zh]` against `niah.single`, with intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longreach.harness.stats.cells import Cell
from longreach.harness.stats.contrasts import Contrast, Term, mover


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One changed form of a task."""

    label: str
    plain: str
    """Label of the form that it is compared with: the task without parameters."""
    by_length: Mapping[int, Contrast]
    """Mean of the condition minus mean of the plain form, with 95% limits (MOVER), where both were tested."""
    overall: Contrast | None
    """Equal-weight mean over those lengths."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "plain": self.plain,
            "by_length": [{"length": length, **_numbers(found)} for length, found in self.by_length.items()],
            "overall": _numbers(self.overall) if self.overall else None,
        }


def _numbers(found: Contrast) -> dict[str, Any]:
    return {"value": found.value, "low": found.low, "high": found.high, "n": found.n}


def conditions(cells: Sequence[Cell], config: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Every task with parameters in its label whose plain form is in the same run."""
    known = {cell.task for cell in cells}  # control arms are none of them
    task_of = {entry.get("label") or entry["task"]: entry["task"] for entry in config.get("tasks") or ()}
    found = []
    for label, task in task_of.items():
        if label == task or label not in known or task_of.get(task) != task:
            continue
        by_length = {}
        lengths = sorted({cell.length for cell in cells if cell.task == label})
        every: list[Term] = []
        for length in lengths:
            terms = _terms([c for c in cells if c.length == length and c.task == label], 1.0)
            terms += _terms([c for c in cells if c.length == length and c.task == task], -1.0)
            if {math.copysign(1.0, term.weight) for term in terms} == {1.0, -1.0}:
                by_length[length] = mover(terms)
                every += terms
        share = 1 / len(by_length) if by_length else 0.0
        scaled = [Term(weight=term.weight * share, s=term.s, n=term.n) for term in every]
        overall = mover(scaled) if scaled else None
        found.append(Condition(label=label, plain=task, by_length=by_length, overall=overall))
    return tuple(found)


def _terms(cells: Sequence[Cell], sign: float) -> list[Term]:
    """The cells of one task at one length, equally weighted; none where one of them is not tested."""
    if not cells or any(cell.blocked_by for cell in cells):
        return []
    return [Term(weight=sign / len(cells), s=cell.s / cell.sharing, n=cell.n / cell.sharing) for cell in cells]
