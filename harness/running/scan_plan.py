"""What `find` asks for: the grid of a scan, its rule for each capability, and everything that a run needs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from longreach.harness.errors import BatteryError
from longreach.harness.lengths import format_length, parse_length, parse_lengths
from longreach.harness.running.battery import Battery
from longreach.harness.running.battery_load import load_battery
from longreach.harness.running.feasible import Infeasible, heaviest_of, problem_of
from longreach.harness.running.options import Options
from longreach.harness.running.plan import Item, Plan, headline_of
from longreach.harness.running.prepare import Prepared, assemble
from longreach.harness.running.resolve import BatteryTask
from longreach.harness.sample import Point
from longreach.harness.stats.ascend import Block, Rule
from longreach.harness.stats.blocks import STRATA, BlockTask, block_points
from longreach.harness.stats.cache_mode import ASSUMED_ICC
from longreach.harness.stats.evalues import ZONES, tempering
from longreach.harness.stats.scans import Hunt, scan_config
from longreach.harness.task import task_id
from longreach.harness.tokenizer import Tokenizer

CAP = 300
"""Samples per length, or as many as are worth that; then the mean decides."""
CACHE_BATTERY = "shared"
"""What prefix-cache mode asks by default."""
SHORTEST = 1024
"""Tokens at which a scan begins by default."""
BOTH = ("retrieval", "reasoning")


@dataclass(frozen=True, slots=True, kw_only=True)
class FindPlan:
    """A search, resolved: what a run needs, and its scans."""

    prepared: Prepared
    hunts: Mapping[str, Hunt]
    """By capability."""
    cache_mode: bool = False
    """Each block is five questions on one context."""

    def items(self, capability: str, block: Block) -> list[Item]:
        """The samples of one block, in the order of its scores."""
        points = block_points(self.hunts[capability].tasks, block, self.prepared.battery.seed)
        return [Item(label=label, point=point) for label, point in points]


def plan_find(options: Options) -> FindPlan:
    """Resolves and plans a search; sends nothing.

    Raises:
        BatteryError, ConfigError: usage or configuration, in one line. ModelUnusable: from opening the model.
    """
    cache_mode = bool(options.cache_mode)
    if cache_mode and options.battery is None and options.tasks is None:
        options = replace(options, battery=CACHE_BATTERY)
    battery = load_battery(replace(options, lengths=None))
    prepared = assemble(options, battery, _bare_plan)
    wanted = _capabilities(options, prepared.plan)
    labels = [label for capability in wanted for label in prepared.plan.headline[capability]]
    tasks = {label: task for label, task in prepared.plan.tasks.items() if label in labels}
    shared = [label for label, task in tasks.items() if task.params.get("shared")]
    if shared:
        raise BatteryError(
            f"{shared[0]} shares its items over all cells, and a search needs fresh ones; name other --tasks"
        )
    if cache_mode:
        _check_cache_mode(battery, {name: prepared.plan.headline[name] for name in wanted}, tasks)
    grid = _grid(options, battery, prepared.model.window)
    kept, infeasible = _feasible(grid, tasks.values(), battery.seed, prepared.tokenizer)
    if options.min_length is not None or options.lengths is not None:
        if infeasible:
            worst = heaviest_of(infeasible)
            raise BatteryError(f"{worst.task}: {worst.reason}")
    elif not kept:
        raise BatteryError(f"no length up to {format_length(grid[-1])} can be built: {infeasible[0].reason}")
    hunts = {
        capability: _hunt(capability, kept, [tasks[label] for label in prepared.plan.headline[capability]], options)
        for capability in wanted
    }
    found = FindPlan(prepared=prepared, hunts=hunts, cache_mode=cache_mode)
    first = [item for length in kept for name in hunts for item in found.items(name, Block(length, 0))]
    shown = battery.model_copy(
        update={
            "name": f"find-{battery.name}",
            "description": "adaptive search for the effective length",
            "lengths": kept,
            "depths": tuple((place + 0.5) / STRATA for place in range(STRATA)),
            "samples": CAP // STRATA,
        }
    )
    plan = Plan(
        tasks={
            label: replace(task, lengths=kept, depths=shown.depths, samples=shown.samples)
            for label, task in tasks.items()
        },
        items=tuple(first),
        infeasible=tuple(infeasible),
        headline={capability: prepared.plan.headline[capability] for capability in wanted},
    )
    prepared = replace(prepared, battery=shown, plan=plan, verb="find", scan=scan_config(hunts))
    return replace(found, prepared=prepared)


def _check_cache_mode(
    battery: Battery, headlines: Mapping[str, Sequence[str]], tasks: Mapping[str, BatteryTask]
) -> None:
    """Raise where the tasks do not share contexts, or nothing could be cached."""
    alone = [label for label, task in tasks.items() if task.task.info.queries == 1]
    several = [labels for labels in headlines.values() if len(labels) > 1]
    if alone or several:
        what = (
            f"{alone[0]} has a context for each question" if alone else f"a block of {' and '.join(several[0])} has two"
        )
        raise BatteryError(
            f"--cache-mode needs one task whose questions share their context, and {what}; leave out BATTERY and --tasks "
            f"(it has a battery of its own), or leave out --cache-mode"
        )
    if battery.cold:
        raise BatteryError("--cold keeps every prompt out of the cache that --cache-mode counts on; drop one of them")


def _bare_plan(battery: Battery, tasks: Sequence[BatteryTask], tokenizer: Tokenizer, window: int | None) -> Plan:
    """Tasks and headlines; the samples follow from the scan."""
    return Plan(
        tasks={task.label: task for task in tasks}, items=(), infeasible=(), headline=headline_of(battery, tasks)
    )


def _capabilities(options: Options, plan: Plan) -> list[str]:
    asked = str(options.capability or "both")
    if asked not in (*BOTH, "both"):
        raise BatteryError(f"--capability {asked!r} is not one of retrieval, reasoning, both")
    found = [capability for capability in BOTH if asked in (capability, "both") and capability in plan.headline]
    if not found:
        raise BatteryError(
            f"no task here measures {'retrieval or reasoning' if asked == 'both' else asked}; name some with --tasks, "
            f"as `longreach tasks` lists them"
        )
    return found


def _grid(options: Options, battery: Battery, window: int | None) -> tuple[int, ...]:
    """Doubling lengths from the shortest to the longest, which is always one of them."""
    if options.lengths is not None:
        if options.max_length is not None or options.min_length is not None:
            raise BatteryError("--lengths names every length of the search; leave out --min-length and --max-length")
        return parse_lengths(options.lengths)
    if options.max_length is None and not battery.advertised and not window:
        raise BatteryError(
            "how far shall the search go? The model does not tell its window; add --max-length, such as 1M"
        )
    longest = parse_length(options.max_length) if options.max_length is not None else battery.advertised or window or 0
    shortest = parse_length(options.min_length) if options.min_length is not None else min(SHORTEST, longest)
    if shortest > longest:
        raise BatteryError(f"--min-length {shortest} is above --max-length {longest}; swap them or drop one")
    grid = [shortest]
    while grid[-1] * 2 < longest:
        grid.append(grid[-1] * 2)
    return tuple(dict.fromkeys([*grid, longest]))


def _feasible(
    grid: Sequence[int], tasks: Iterable[BatteryTask], seed: int, tokenizer: Tokenizer
) -> tuple[tuple[int, ...], list[Infeasible]]:
    """Lengths at which every task can be built, and why shorter ones cannot."""
    tasks = list(tasks)
    infeasible: list[Infeasible] = []
    for rank, length in enumerate(grid):
        found = [problem_of(task, length, _points_at(task, seed), tokenizer) for task in tasks]
        problems = [problem for problem in found if problem is not None]
        if not problems:
            return tuple(grid[rank:]), infeasible  # what fits a short prompt fits a longer one
        infeasible.append(heaviest_of(problems))
    return (), infeasible


def _points_at(task: BatteryTask, seed: int) -> Callable[[int], Iterator[Point]]:
    blocks = [_block_task(task)]
    return lambda length: (point for _, point in block_points(blocks, Block(length, 0), seed))


def _block_task(task: BatteryTask) -> BlockTask:
    return BlockTask(label=task.label, task_id=task_id(task.task), has_depth=task.task.info.has_depth)


def _hunt(capability: str, lengths: tuple[int, ...], tasks: Sequence[BatteryTask], options: Options) -> Hunt:
    size = STRATA * len(tasks)
    icc = ASSUMED_ICC if options.cache_mode else 0.0
    rule = Rule(
        lengths=lengths,
        zone=ZONES[capability],
        size=size,
        cap=max(round(CAP * tempering(icc, size)), size),
        certify=bool(options.certify),
        refine=bool(options.refine),
        icc=icc,
    )
    blocks = tuple(replace(_block_task(task), one_context=bool(icc)) for task in tasks)
    return Hunt(capability=capability, tasks=blocks, rule=rule)
