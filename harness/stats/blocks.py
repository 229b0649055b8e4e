"""Blocks of a scan as points and records: one sample per task and depth stratum, made and found again by number.

Depths are drawn inside equal strata, five as a rule, from the seed alone, so that a repeated command asks the same.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from longreach.harness.record import COUNTED, Record
from longreach.harness.sample import Point, digest
from longreach.harness.stats.ascend import Block, Scan

STRATA = 5
_STEPS = 10_000  # depths are multiples of 1 / 10,000


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTask:
    """One task of a scan."""

    label: str
    task_id: str
    has_depth: bool
    one_context: bool = False
    """The samples of a block share one context: their depths lie alike in their strata."""


def stratum(depth: float, strata: int = STRATA) -> int:
    """Number of the stratum that holds `depth`, from 0."""
    return min(int(round(depth * _STEPS) * strata // _STEPS), strata - 1)


def centres(strata: int = STRATA) -> tuple[float, ...]:
    """The depths that stand for the strata."""
    return tuple((place + 0.5) / strata for place in range(strata))


def jittered(task_id: str, number: int, place: int, seed: int, strata: int = STRATA) -> float:
    """The depth of a block's sample in stratum `place`; the same at every length, so that questions are."""
    rng = random.Random(int(digest(["stratum", task_id, number, place, strata, seed])[:32], 16))
    low, high = (-(-edge * _STEPS // strata) for edge in (place, place + 1))
    return (low + rng.randrange(high - low)) / _STEPS


def drawn_depth(task: BlockTask, number: int, place: int, seed: int, strata: int = STRATA) -> float:
    """The depth of sample `number` of a task in stratum `place`: its own, or one that lies alike in all strata."""
    if not task.one_context:
        return jittered(task.task_id, number, place, seed, strata)
    first = round(jittered(task.task_id, number, 0, seed, strata) * _STEPS)
    return (first + place * _STEPS // strata) / _STEPS


def block_points(tasks: Sequence[BlockTask], block: Block, seed: int, strata: int = STRATA) -> list[tuple[str, Point]]:
    """(label, point) of each sample of a block, in the order of its scores.

    The index is the number of the block; tasks without depth have `strata` samples in a block and count on.
    """
    points = []
    for task in tasks:
        for place in range(strata):
            depth = drawn_depth(task, block.number, place, seed, strata) if task.has_depth else None
            index = block.number if task.has_depth else block.number * strata + place
            point = Point(task=task.task_id, length=block.length, depth=depth, index=index, seed=seed)
            points.append((task.label, point))
    return points


def block_of(record: Record, strata: int = STRATA) -> tuple[Block, int]:
    """The block that a record belongs to, and its place among the task's samples there."""
    if record.depth is None:
        number, place = divmod(record.index, strata)
        return Block(record.length, number), place
    return Block(record.length, record.index), stratum(record.depth, strata)


def replay(scan: Scan, records: Iterable[Record], tasks: Sequence[BlockTask], strata: int = STRATA) -> None:
    """Brings a fresh scan to where stored records left it.

    A block with a failed sample counts as replaced if a later block of its length is complete; else it is wanted again.
    A truncated sample says that the server reads less than it is sent: its block is treated as one that did not fit.
    """
    order = {task.label: rank for rank, task in enumerate(tasks)}
    blocks: dict[Block, dict[int, Record]] = defaultdict(dict)
    for record in records:
        if record.task in order:
            block, place = block_of(record, strata)
            blocks[block][order[record.task] * strata + place] = record
    size = len(tasks) * strata
    complete = {
        b for b, held in blocks.items() if len(held) == size and all(r.outcome in COUNTED for r in held.values())
    }
    last: dict[int, int] = {}
    for block in complete:
        last[block.length] = max(block.number, last.get(block.length, -1))
    for block, held in sorted(blocks.items()):
        outcomes = {record.outcome for record in held.values()}
        if block in complete:
            scan.put(*block, [held[place].score or 0.0 for place in range(size)])
        elif outcomes & {"overflow", "truncated"}:
            scan.drop(*block, "overflow")
        elif "failed" in outcomes and block.number < last.get(block.length, -1):
            scan.drop(*block, "failed")
