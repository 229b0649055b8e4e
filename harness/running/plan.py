"""Plan: which samples a battery means, in the order of sending, and which cells cannot be built.

Shortest length first and the tasks in turn, so that a broken set-up shows early and a stopped run is balanced.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longreach.harness.errors import BatteryError
from longreach.harness.lengths import format_length
from longreach.harness.running.battery import Battery
from longreach.harness.running.controls import FAMILY, Control
from longreach.harness.running.feasible import Infeasible, heaviest_of, problem_of
from longreach.harness.running.resolve import BatteryTask
from longreach.harness.sample import Grid, Point
from longreach.harness.stats.blocks import BlockTask, centres, drawn_depth, stratum
from longreach.harness.task import Loaded, Measured, task_id
from longreach.harness.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One sample to be made and asked."""

    label: str
    point: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will be asked."""

    tasks: Mapping[str, BatteryTask]
    """By label, in the battery's order."""
    items: tuple[Item, ...]
    infeasible: tuple[Infeasible, ...]
    headline: Mapping[str, tuple[str, ...]]
    """Capability -> labels of its headline."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths that hold at least one sample, ascending."""
        return tuple(sorted({item.point.length for item in self.items}))

    def cell_of(self, item: Item) -> tuple[str, int, float | None]:
        """Task, length and depth of the cell that a sample is in: the centre of its stratum where depths are drawn."""
        depth = item.point.depth
        if depth is not None and self.tasks[item.label].strata:
            depth = centres()[stratum(depth)]
        return item.label, item.point.length, depth

    def cells(self) -> list[dict[str, Any]]:
        """Planned cells as in config.yaml: task, length, depth, n."""
        counts = Counter(map(self.cell_of, self.items))
        return [{"task": task, "length": length, "depth": depth, "n": n} for (task, length, depth), n in counts.items()]


def make_plan(battery: Battery, tasks: Sequence[BatteryTask], tokenizer: Tokenizer, *, window: int | None) -> Plan:
    """The plan of a battery.

    Args:
        window: tokens of prompt plus output that the model takes; None = unknown.

    Raises:
        BatteryError: a length given by the user cannot be built, or nothing is left to test.
    """
    _check_budget(battery, tasks, window)
    infeasible: list[Infeasible] = []
    refused: list[Infeasible] = []
    by_length: dict[int, list[list[Item]]] = {}
    for task in tasks:
        if isinstance(task.task, Measured):
            for length, row in _measured(battery, task, task.task, tokenizer, window, infeasible).items():
                by_length.setdefault(length, []).append(row)
            continue
        for length in _lengths(battery, task, tokenizer, window, infeasible, refused):
            row = [Item(label=task.label, point=point) for point in points_of(task, length, battery.seed)]
            by_length.setdefault(length, []).append(row)
    if refused:
        worst = heaviest_of(refused)
        raise BatteryError(worst.reason if worst.task in worst.reason else f"{worst.task}: {worst.reason}")
    for entry in battery.tasks:
        if entry.lacks_data:
            reason = f"no data, it would be given by --set {entry.label}.data=FILE or =hf:NAME@COMMIT"
            shortest = min(entry.lengths or battery.lengths)
            infeasible.append(Infeasible(task=entry.label, length=shortest, reason=reason, minimum=None))
    items = tuple(item for length in sorted(by_length) for item in _in_turn(by_length[length]))
    if not items:
        raise BatteryError(
            f"battery {battery.name!r} leaves nothing to test: {infeasible[0].reason}" if infeasible else "no samples"
        )
    return Plan(
        tasks={task.label: task for task in tasks},
        items=items,
        infeasible=tuple(infeasible),
        headline=headline_of(battery, tasks),
    )


def points_of(task: BatteryTask, length: int, seed: int) -> Iterator[Point]:
    """The points of one task at one length; of a control arm, at the depths of the task whose questions it asks."""
    points = task.task.points(Grid(lengths=(length,), depths=task.depths, n=task.n(length), seed=seed))
    if not task.strata:
        return points
    info = task.task.info
    block = BlockTask(
        label=task.label,
        task_id=task.task.of if isinstance(task.task, Control) else task_id(task.task),
        has_depth=info.has_depth,
        one_context=info.queries > 1,
    )
    return (
        replace(point, depth=drawn_depth(block, point.index, stratum(point.depth), seed))
        if point.depth is not None
        else point
        for point in points
    )


def _measured(
    battery: Battery,
    task: BatteryTask,
    rows: Measured,
    tokenizer: Tokenizer,
    window: int | None,
    infeasible: list[Infeasible],
) -> dict[int, list[Item]]:
    """The rows of a set by length; those that are too long for every length go to `infeasible`."""
    limit = _limit(battery, window)
    lengths = tuple(length for length in task.lengths if not limit or length <= limit)
    if not lengths:
        infeasible.append(_above(battery, task.label, min(task.lengths), limit))
        return {}
    most = {length: task.n(length) for length in lengths}
    grid = Grid(lengths=lengths, depths=task.depths, n=max(most.values()), seed=battery.seed)
    found: dict[int, list[Item]] = {}
    for point in rows.measured_points(grid, tokenizer):
        here = found.setdefault(point.length, [])
        if len(here) < most[point.length] * len(task.depths):
            here.append(Item(label=task.label, point=point))
    for left in rows.left_out(grid, tokenizer) if isinstance(rows, Loaded) else ():
        infeasible.append(
            Infeasible(
                task=task.label,
                length=left.length,
                reason=left.reason,
                minimum=left.length,
                n_rows=left.n,
                is_refused=left.is_refused,
            )
        )
    return found


def headline_of(battery: Battery, tasks: Sequence[BatteryTask]) -> dict[str, tuple[str, ...]]:
    """Labels by capability: as the battery declares, else every task of the capability."""
    found = {}
    for capability in ("retrieval", "reasoning"):
        own = [task for task in tasks if task.task.info.family != FAMILY]
        every = tuple(task.label for task in own if task.task.info.capability == capability)
        labels = battery.headline.get(capability, every)
        if labels:
            found[capability] = labels
    return found


def _in_turn(groups: list[list[Item]]) -> Iterator[Item]:
    for row in itertools.zip_longest(*groups):
        yield from (item for item in row if item is not None)


def _check_budget(battery: Battery, tasks: Sequence[BatteryTask], window: int | None) -> None:
    if not window or not battery.explicit_lengths or not battery.reasoning_budget:
        return
    longest = max(length for task in tasks for length in task.lengths)
    room = window - battery.reasoning_budget
    if room < longest <= window:
        raise BatteryError(
            f"length {longest} and a reasoning budget of {battery.reasoning_budget} need {longest + battery.reasoning_budget} "
            f"tokens, but the model's window is {window}; the longest length that fits is {max(room, 0)}"
        )


def _lengths(
    battery: Battery,
    task: BatteryTask,
    tokenizer: Tokenizer,
    window: int | None,
    infeasible: list[Infeasible],
    refused: list[Infeasible],
) -> list[int]:
    """Lengths of the task that can be built; the others go to `infeasible`, or to `refused` if the user gave them."""
    limit = _limit(battery, window)
    is_asked = battery.explicit_lengths and task.task.info.family != FAMILY
    kept: list[int] = []
    for length in task.lengths:
        if limit and length > limit:
            infeasible.append(_above(battery, task.label, length, limit))
        elif kept or (problem := problem_of(task, length, _points_at(task, battery.seed), tokenizer)) is None:
            kept.append(length)  # what fits a short prompt fits a longer one
        else:
            (refused if is_asked else infeasible).append(problem)
    return kept


def _points_at(task: BatteryTask, seed: int) -> Callable[[int], Iterator[Point]]:
    return lambda length: points_of(task, length, seed)


def _limit(battery: Battery, window: int | None) -> int:
    """Tokens above which the battery leaves lengths out; 0 = no limit."""
    if not battery.cut_at_window:
        return 0
    return battery.advertised or max((window or 0) - battery.reasoning_budget, 0)


def _above(battery: Battery, label: str, length: int, limit: int) -> Infeasible:
    what = "advertised window" if battery.advertised else "model's window less the reasoning budget"
    reason = f"{format_length(length)} is above the {what} of {limit} tokens"
    return Infeasible(task=label, length=length, reason=reason, minimum=None)
