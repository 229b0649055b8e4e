"""Whether a task can be asked at a length at all, and the shortest length that is known to hold it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from longreach.harness.errors import InfeasibleCell
from longreach.harness.running.resolve import BatteryTask
from longreach.harness.sample import Point
from longreach.harness.task import Uneven
from longreach.harness.tokenizer import Tokenizer

TRIED_TOKENS = 1 << 15
"""Tokens of prompts that are made to see whether a length holds a task: many where it is short and they cost little."""
STEPS = 32
"""Longer lengths tried before none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasible:
    """A task at a length that is left out, and why."""

    task: str
    length: int
    reason: str
    minimum: int | None
    """A length that was seen to do (tokens), about the shortest one; None where none is known."""
    n_rows: int = 0
    """Rows of a loaded set that are too long; 0: the length is too short for the task."""
    is_refused: bool = False
    """Rows without which the run is incomplete."""


def problem_of(
    task: BatteryTask, length: int, points_at: Callable[[int], Iterable[Point]], tokenizer: Tokenizer
) -> Infeasible | None:
    """Why some sample of the task cannot be built at a length, and a length at which each sample that is tried can.

    What a sample needs may change with its length, for what is drawn does: so the length that an error names is tried,
    and that which the next error names, until there is none.

    Args:
        points_at: the task's points at a length.
    """
    if (first := _error(task, length, points_at, tokenizer)) is None:
        return None
    error: InfeasibleCell | None = first
    minimum = length
    for _ in range(STEPS):
        if error is None or error.minimum is None:
            break
        minimum = max(error.minimum, minimum + 1)
        error = _error(task, minimum, points_at, tokenizer)
    named = InfeasibleCell(first.reason, minimum=minimum if error is None else None)
    return Infeasible(task=task.label, length=length, reason=str(named), minimum=named.minimum)


def heaviest_of(problems: Sequence[Infeasible]) -> Infeasible:
    """That of the task that needs the longest prompts: the length that it names holds the others too."""
    return max(problems, key=lambda problem: (problem.minimum is None, problem.minimum or 0))


def _error(
    task: BatteryTask, length: int, points_at: Callable[[int], Iterable[Point]], tokenizer: Tokenizer
) -> InfeasibleCell | None:
    for point in _tried(task, list(points_at(length)), length):
        try:
            task.task.sample(point, tokenizer)
        except InfeasibleCell as error:
            return error
    return None


def _tried(task: BatteryTask, points: Sequence[Point], length: int) -> list[Point]:
    """The first point and the last, some between where that costs little, and the heaviest."""
    if not points:
        return []
    n = min(len(points), max(2, TRIED_TOKENS // max(length, 1)))
    found = [points[rank * (len(points) - 1) // max(n - 1, 1)] for rank in range(n)]
    if isinstance(task.task, Uneven):
        found += task.task.heaviest(points)
    return list({point.key: point for point in found}.values())
