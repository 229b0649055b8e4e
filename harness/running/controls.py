"""Control arms: the same questions without the haystack, and in a short context. They never feed a headline.

A model that answers without the haystack knows or guesses the answer; one that fails in a short context fails at the
task, not at the length. `controls: true` in a battery adds both arms of each task.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from longreach.harness.errors import InfeasibleCell
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Point, Sample
from longreach.harness.task import Loaded, Measured, Score, Task, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer

FAMILY = "control"
NO_CONTEXT, SHORT_CONTEXT = "no context", "short context"
WHOLE = 1 << 40
"""A length that holds any row, tokens."""
SHORT = 1024
"""Length of the short context, tokens: that of NoLiMa's base score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One arm of a task."""

    arm: str = ""
    """NO_CONTEXT or SHORT_CONTEXT."""
    of: str = ""
    """Task id of the task whose questions are asked."""

    @property
    def base(self) -> Task:
        """The task itself."""
        name, _, rest = self.of.partition("@")
        params: dict[str, Any] = json.loads(rest.partition("?")[2] or "{}")
        return get_task(name, **{key: tuple(v) if isinstance(v, list) else v for key, v in params.items()})

    @property
    def info(self) -> TaskInfo:
        """That of the task, under a family of its own."""
        return replace(self.base.info, family=FAMILY)

    def points(self, grid: Grid) -> Iterator[Point]:
        """The points of the task, under this arm's id."""
        name = task_id(self)
        return (replace(point, task=name) for point in self.base.points(grid))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        """The task's own sample; without a context, the haystack is cut out of it."""
        found = self.base.sample(replace(point, task=self.of), tokenizer)
        found = replace(found, point=point, extra={**found.extra, "arm": self.arm})
        return _without_haystack(found, tokenizer) if self.arm == NO_CONTEXT else found

    def score(self, sample: Sample, response: Response) -> Score:
        """By the task's own rule."""
        return self.base.score(sample, response)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsControl(Control):
    """The rows of a loaded task without their documents, all at the one length that holds them."""

    @property
    def bare(self) -> Loaded | None:
        """The task in its own form without documents; None: the document is cut out of each prompt."""
        found: Loaded | None = getattr(self.base, "without_context", lambda: None)()
        return found

    def measured_points(self, grid: Grid, tokenizer: Tokenizer) -> Iterator[Point]:
        """Every row at the smallest length that holds the longest of them, or the largest."""
        whole = replace(grid, lengths=(WHOLE,))
        points = list(cast(Measured, self.bare or self.base).measured_points(whole, tokenizer))
        need = max((self.sample(point, tokenizer).n_tokens for point in points), default=0) + self.info.reserve
        length = next((length for length in sorted(grid.lengths) if length >= need), max(grid.lengths))
        name = task_id(self)
        return (replace(point, task=name, length=length) for point in points)

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        bare = self.bare
        task = cast(Task, bare or self.base)
        found = task.sample(replace(point, task=task_id(task), length=WHOLE), tokenizer)
        found = replace(found, point=point, extra={**found.extra, "arm": self.arm})
        if bare is None and {"context", "turns"} & found.extra.keys():
            found = _without_haystack(found, tokenizer)
        need = found.n_tokens + self.info.reserve
        if point.length not in (WHOLE, 0) and need > point.length:
            raise InfeasibleCell(
                f"row {point.index + 1:,} needs {need:,} tokens even without its document, more than {point.length:,}",
                minimum=need,
            )
        return found


def _without_haystack(sample: Sample, tokenizer: Tokenizer) -> Sample:
    kept = "turns" if "turns" in sample.extra else "context"
    start, end = sample.extra[kept]
    last = sample.messages[-1]
    if kept == "turns":
        messages = sample.messages[:start] + sample.messages[end:]
    else:
        messages = (*sample.messages[:-1], replace(last, content=last.content[:start] + last.content[end:]))
    return replace(
        sample,
        messages=messages,
        n_tokens=tokenizer.count(tokenizer.render(messages) + sample.answer_prefix),
        placed=(),
        extra={**sample.extra, kept: [start, start], "recycled": False},
    )


def open_task(name: str, /, **params: Any) -> Task:
    """`get_task`, and the arms of a task."""
    if not {"arm", "of"} <= params.keys():
        return get_task(name, **params)
    control = Control(**params)
    return RowsControl(**params) if isinstance(control.base, Loaded) else control


def arms(task: Task, lengths: Sequence[int]) -> Iterator[tuple[Control, int]]:
    """The arms of a synthetic task and the length of each: without context at the task's shortest length, whose questions are
    asked; a short context only where that is shorter than the task's lengths."""
    shortest = min(lengths)
    yield Control(arm=NO_CONTEXT, of=task_id(task)), shortest
    if shortest > SHORT:
        yield Control(arm=SHORT_CONTEXT, of=task_id(task)), SHORT
