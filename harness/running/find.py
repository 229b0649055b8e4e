"""find(): the adaptive search for effective lengths, through the same scheduler and store as a run.

Blocks (one sample per task and depth stratum) are in flight at once; a decision falls only when the block whose turn it
is has come back. Repeating a call resumes: the stored records are replayed first. In prefix-cache mode a block is one
context: its deepest question goes ahead and warms the cache, and as few contexts as fill the slots are under way.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from longreach.harness.errors import ConfigError
from longreach.harness.lengths import format_length
from longreach.harness.record import COUNTED, FINAL
from longreach.harness.running.conduct import Cell, Conductor
from longreach.harness.running.forecast import needle_warnings
from longreach.harness.running.options import Options
from longreach.harness.running.plan import Item
from longreach.harness.running.progress import Progress
from longreach.harness.running.run import Run, finish
from longreach.harness.running.sanity import ADVICE, broken_headlines, gate_of
from longreach.harness.running.scan_plan import FindPlan, plan_find
from longreach.harness.running.scheduler import Scheduler
from longreach.harness.stats.ascend import Block, Scan
from longreach.harness.stats.scans import evidence_lines, replayed, tempered

Name = tuple[str, Block]
"""Capability and block."""


class ScanProgress(Progress):
    """The evidence of each length that a scan has reached; on a terminal all of them, elsewhere the present ones."""

    scans: Mapping[str, Scan] = {}

    def start(self, lengths: list[int], *, stored: int) -> None:
        super().start(lengths, stored=0)
        for capability, scan in self.scans.items():
            for line in evidence_lines(capability, scan):
                self.say(f"stored: {line}")

    def line(self) -> str:
        rows = [evidence_lines(capability, scan) for capability, scan in self.scans.items()]
        lines = [line for found in rows for line in (found if self._live_wanted else found[-1:])]
        cost = f"{self._cost:.4f} USD" if self._cost is not None else "cost unknown"
        total = f"{self._done} samples, {self._tokens_used:,} tokens, {cost}"
        return "\n".join([*lines, total]) if self._live_wanted else " | ".join([*lines, total])


@dataclass(slots=True)
class Finder(Conductor):
    """Conducts a search: asks the scans which blocks they want, and feeds them what came back."""

    found: FindPlan
    scans: dict[str, Scan] = field(init=False)
    _ahead: int = field(default=1, init=False)
    """Blocks in flight at once."""

    def __post_init__(self) -> None:
        self.scans = {}

    def _replay(self) -> None:
        records = list(self.store.records.values())
        self.scans = {capability: replayed(hunt, records) for capability, hunt in self.found.hunts.items()}
        if isinstance(self.progress, ScanProgress):
            self.progress.scans = self.scans

    def _todo(self) -> list[Item]:
        """The samples of the blocks that are wanted first; none when every scan is over."""
        self._replay()
        return [item for name in self._wanted({}) for item in self._items(*name)]

    def _replan(self) -> None:
        """The lengths of a scan are fixed before its first sample, whatever window shows up later."""

    def _warnings(self) -> Iterable[str]:
        return needle_warnings(self.prepared.plan, self.prepared.model)

    def _missing(self) -> tuple[Cell, ...]:
        """Lengths at which a scan stopped without a decision, or that the model does not take."""
        missing: list[Cell] = []
        for capability, scan in self.scans.items():
            undecided = [s.length for s in scan.tested() if s.step in ("open", "untestable", "not supported")]
            if not scan.finished and scan.current is not None:
                undecided.append(scan.current)
            tasks = [task.label for task in self.found.hunts[capability].tasks]
            missing += [(task, length, None) for length in dict.fromkeys(undecided) for task in tasks]
        return tuple(missing)

    async def _stages(self, scheduler: Scheduler, todo: list[Item]) -> None:
        size, slots = min(scan.rule.size for scan in self.scans.values()), scheduler.job.concurrency
        self._ahead = max(1, slots // size if self.found.cache_mode else -(-slots // size))
        flying: dict[asyncio.Task[None], Name] = {}
        try:
            while True:
                if not scheduler.stop.is_set():
                    for name in self._wanted(flying)[: self._ahead - len(flying)]:
                        flying[asyncio.create_task(self._ask_block(scheduler, name))] = name
                if not flying:
                    return
                done, _ = await asyncio.wait(flying, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    name = flying.pop(task)
                    task.result()
                    self._feed(scheduler, name)
        finally:
            await asyncio.gather(*flying, return_exceptions=True)  # what is in flight is kept

    async def _ask_block(self, scheduler: Scheduler, name: Name) -> None:
        """Asks a block; where it shares its context, one question first, so that the others find it in the cache."""
        items = self._items(*name)
        if self.found.cache_mode:
            items.sort(key=lambda item: -(item.point.depth or 0.0))
            await scheduler.run(items[:1])
            items = items[1:]
        await scheduler.run(items)

    def _wanted(self, flying: Mapping[Any, Name]) -> list[Name]:
        """Blocks to send now, of the scan at the shortest length first, so that a stopped search is balanced."""
        names: list[Name] = []
        for capability, scan in sorted(self.scans.items(), key=lambda pair: pair[1].current or 0):
            own = [block for name, block in flying.values() if name == capability]
            names += [(capability, block) for block in scan.wanted(own, self._ahead)]
        return names

    def _items(self, capability: str, block: Block) -> list[Item]:
        """The samples of a block that are not in the store."""
        known, key = self.store.records, self.prepared.settings.key
        items = self.found.items(capability, block)
        return [i for i in items if (old := known.get(key(i.point))) is None or old.outcome not in FINAL]

    def _feed(self, scheduler: Scheduler, name: Name) -> None:
        """Tells the scan what came back of a block; nothing if the search was stopped inside it."""
        capability, block = name
        scan, key = self.scans[capability], self.prepared.settings.key
        records = [self.store.records.get(key(item.point)) for item in self.found.items(capability, block)]
        before = {length: stream.step for length, stream in scan.streams.items()}
        outcomes = {"not_run" if record is None else record.outcome for record in records}
        if outcomes <= COUNTED:
            scan.put(*block, [(record.score if record else None) or 0.0 for record in records])
        elif outcomes & {"overflow", "truncated"}:
            scan.drop(*block, "overflow")
        elif "failed" in outcomes and "not_run" not in outcomes:
            scan.drop(*block, "failed")
        for length, stream in scan.streams.items():
            if stream.step != before.get(length, "open"):
                self.progress.say(
                    next(line for line in evidence_lines(capability, scan) if f" {format_length(length)}:" in line)
                )
        self._look_at_first(scheduler, capability, scan)
        self.scans[capability] = tempered(scan)
        if (icc := self.scans[capability].rule.icc) > scan.rule.icc:
            self.progress.say(
                f"{capability}: answers that share a context correlate at {icc:.2f}, more than the {scan.rule.icc:.2f} "
                f"assumed; the evidence is weighed anew and the search goes on where it has to"
            )

    def _look_at_first(self, scheduler: Scheduler, capability: str, scan: Scan) -> None:
        """A score near zero at the shortest length is rarely the model: the other scan is not begun in vain."""
        first = scan.streams[scan.rule.lengths[0]]
        if not first.failed or not scan.finished:
            return
        sentence = broken_headlines(self.prepared.plan, self.store.records).get(capability)
        gate = gate_of(self.prepared.plan)
        if sentence is None:
            return
        others = any(not other.finished for other in self.scans.values())
        if gate and capability == gate[0] and others and not self.prepared.options.force:
            scheduler.halt(f"{sentence}: the set-up is probably wrong ({ADVICE}); --force goes on")
        else:
            self.progress.say(f"warning: {sentence}")


def find(*, model: Any = None, max_length: Any = None, battery: Any = None, out: Any = None, **options: Any) -> Run:
    """Searches for the effective lengths with the fewest tokens; stores and writes a card like `run`.

    Args:
        model: SPEC such as `openai:NAME`; default: the embedded model.
        max_length: longest length, `"128k"`; default: the advertised or known window.
        battery: whose headline tasks are asked; default `quick`, or the given `tasks`.
        out: run folder.
        options: the flags of `longreach find` by name, underscores for hyphens.

    Raises:
        ConfigError, RunFolderError, ModelUnusable: nothing useful could be done. A search that was stopped early is
        returned with `stopped` set.
    """
    given = Options.of(model=model, max_length=max_length, battery=battery, out=out, **options)
    finished = find_options(given, ScanProgress())
    if finished.error is not None:
        raise finished.error
    return finished


def find_options(options: Options, progress: Progress) -> Run:
    """`find` for options that are made already; an unusable model is reported in the Run.

    Raises:
        ConfigError: the option `plan`, which is for the command line alone.
    """
    if options.plan:
        raise ConfigError("plan is an option of the command line: longreach find --plan ...")
    found = plan_find(options)
    return finish(found.prepared, partial(Finder, found=found), progress)
