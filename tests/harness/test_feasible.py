"""A length that a refusal names is one that can be asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longreach.harness.errors import ConfigError, InfeasibleCell
from longreach.harness.registry import get_task, tasks
from longreach.harness.running.feasible import STEPS, TRIED_TOKENS, problem_of
from longreach.harness.running.plan import points_of
from longreach.harness.running.prepare import prepare
from longreach.harness.running.resolve import BatteryTask
from longreach.harness.sample import Point, Sample
from longreach.harness.task import Task
from longreach.harness.tokenizer import BytesTokenizer, Tokenizer, WordsTokenizer
from tests.harness.test_run import wanted

DEPTHS = (0.0, 0.5, 1.0)


def _entry(task: Task, n: int = 3) -> BatteryTask:
    return BatteryTask(label=task.info.name, task=task, params={}, lengths=(16,), depths=DEPTHS, samples=n)


def _offline(name: str) -> Task:
    task = get_task(name)
    if hasattr(task, "documents"):
        return get_task(name, documents="generated")
    return get_task(name, haystack="mixed") if getattr(task, "haystack", "") == "ruler-essays" else task


@pytest.mark.parametrize("tokenizer", [WordsTokenizer(), BytesTokenizer()], ids=lambda found: found.name)
@pytest.mark.parametrize("name", [name for name, task in tasks().items() if not hasattr(task, "data")])
def test_the_named_length_holds_every_sample(name: str, tokenizer: Tokenizer) -> None:
    entry = _entry(_offline(name))

    def points_at(length: int) -> Iterator[Point]:
        return points_of(entry, length, 5)

    problem = problem_of(entry, 16, points_at, tokenizer)
    assert problem is not None
    assert problem.minimum is not None
    assert problem.reason.endswith(f"; the shortest length that can is about {problem.minimum:,}")
    for point in points_at(problem.minimum):
        assert entry.task.sample(point, tokenizer).n_tokens <= problem.minimum


class _Growing:
    """A task that needs more the longer it is; `most` steps of `by` tokens, without end if 0."""

    def __init__(self, by: int, most: int) -> None:
        self.info = get_task("niah.single").info
        self.by, self.most = by, most
        self.asked: list[int] = []

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        self.asked.append(point.length)
        if self.most and point.length >= 16 + self.by * self.most:
            return Sample(point=point, messages=(), target=(), n_tokens=1, tokenizer=tokenizer.name)
        raise InfeasibleCell("too short", minimum=point.length + self.by)


def _points(length: int) -> Iterator[Point]:
    return (Point(task="t", length=length, depth=None, index=index, seed=0) for index in range(3000))


@pytest.mark.parametrize(("by", "most", "minimum"), [(7, 3, 37), (0, 0, None), (100, STEPS + 1, None), (1, STEPS, 48)])
def test_each_named_length_is_tried_until_one_holds(by: int, most: int, minimum: int | None) -> None:
    problem = problem_of(_entry(_Growing(by, most)), 16, _points, WordsTokenizer())  # type: ignore[arg-type]
    assert problem is not None
    assert problem.minimum == minimum
    assert ("shortest length" in problem.reason) == (minimum is not None)


@pytest.mark.parametrize(("length", "n"), [(1000, 32), (20_000, 2), (10**6, 2), (64, 512)])
def test_short_lengths_are_tried_at_many_points_and_long_ones_at_both_ends(length: int, n: int) -> None:
    task = _Growing(1, -(10**9))
    assert problem_of(_entry(task), length, _points, WordsTokenizer()) is None  # type: ignore[arg-type]
    assert len(task.asked) == n == max(2, TRIED_TOKENS // length)


def test_of_several_tasks_the_one_that_needs_most_is_named(tmp_path: Path) -> None:
    options = {"tasks": "niah.single,ruler.vt,babi.qa1"}
    with pytest.raises(ConfigError, match=r"'ruler.vt@1'.* is about \d+") as refusal:
        prepare(wanted(tmp_path / "a", lengths="32,1k", **options))
    named = str(refusal.value).rpartition(" ")[2]
    assert prepare(wanted(tmp_path / "a", lengths=named, **options)).plan.infeasible == ()
