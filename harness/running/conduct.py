"""Conductor: what happens around the scheduler: the folder's old settings, the probe, Ctrl-C, the sanity gate."""

import asyncio
import contextlib
import inspect
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from longreach.harness.errors import LongreachError, ModelUnusable, RunFolderError
from longreach.harness.model import Model
from longreach.harness.record import COUNTED, FINAL, Record
from longreach.harness.running.attempts import Policy
from longreach.harness.running.budget import Caps, cost_usd
from longreach.harness.running.check import Checker, check_before_run
from longreach.harness.running.config import differences, merged, moves
from longreach.harness.running.forecast import warnings
from longreach.harness.running.grading import Judge
from longreach.harness.running.lock import NAME as LOCK
from longreach.harness.running.plan import Item, make_plan
from longreach.harness.running.prepare import Prepared
from longreach.harness.running.progress import EVERY_S, Progress
from longreach.harness.running.resolve import plain_tokenizer
from longreach.harness.running.sanity import ADVICE, broken_headlines, gate_of, split_at_gate
from longreach.harness.running.scheduler import Job, Scheduler
from longreach.harness.running.store import CONFIG, Store, read_config, write_config

Cell = tuple[str, int, float | None]
"""Task (label), length in tokens, depth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a run brought in."""

    records: Mapping[str, Record]
    """Last state of each sample in the folder, by key."""
    stopped: str | None
    """Why it ended early, if it did."""
    untested: tuple[Cell, ...]
    """Planned cells that are not tested at the end."""
    error: LongreachError | None
    exit_code: int
    """0 done, 3 incomplete, 4 model unusable."""


@dataclass(slots=True)
class Conductor:
    """Holds a run together: config, probe, scheduler, signals."""

    prepared: Prepared
    store: Store
    caps: Caps
    progress: Progress
    loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)
    task: asyncio.Task[Any] | None = field(default=None, init=False)
    scheduler: Scheduler | None = field(default=None, init=False)
    interrupts: int = field(default=0, init=False)

    async def collect(self) -> Collected:
        """Asks what is not stored. The model is closed at the end."""
        self.loop, self.task = asyncio.get_running_loop(), asyncio.current_task()
        alive = asyncio.create_task(self._beat())
        try:
            old = _old_config(self.prepared.folder, self.store, self.prepared.config())
            with self._signals():
                stopped, error = await self._ask(old)
        except asyncio.CancelledError:
            if not self.interrupts:
                raise
            stopped, error = "Ctrl-C", None
        finally:
            alive.cancel()
            await self.prepared.model.close()
        missing = self._missing()
        code = 4 if error is not None else 3 if stopped or missing else 0
        return Collected(records=self.store.records, stopped=stopped, untested=missing, error=error, exit_code=code)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            self.progress.beat()

    async def _ask(self, old: Mapping[str, Any] | None) -> tuple[str | None, LongreachError | None]:
        """Sends what is not stored; returns why it ended early, and the error that ended it."""
        store = self.store
        if store.torn is not None:
            self.progress.say(f"a torn last line was moved to {store.torn.name}; its sample is asked again")
        for line in moves(old, self.prepared.config()) if old is not None else ():
            self.progress.say(line)
        self._save_config(old)
        if self._todo():
            try:
                await self._look_at_model()
                await self._send_canaries(old)
            except ModelUnusable as error:
                return str(error), error
            self._save_config(old)
        items, todo = self.prepared.items, self._todo()
        self.progress.start([item.point.length for item in todo], stored=len(items) - len(todo))
        if not todo:
            return None, None
        for line in self._warnings():
            self.progress.say(line)
        return await self._send(todo)

    def _warnings(self) -> Iterable[str]:
        """What the plan cannot show."""
        return warnings(self.prepared.plan, self.prepared.model)

    def _missing(self) -> tuple[Cell, ...]:
        return tuple(untested(self.prepared, self.store.records))

    def _todo(self) -> list[Item]:
        key = self.prepared.settings.key
        return [item for item in self.prepared.items if not _is_final(self.store.records.get(key(item.point)))]

    async def _look_at_model(self) -> None:
        """Probes the model where it can be; a window that shows only now may cut the plan."""
        prepared = self.prepared
        window = prepared.model.window
        await probe(prepared.model)
        if prepared.model.window != window:
            self._replan()

    async def _send_canaries(self, old: Mapping[str, Any] | None) -> None:
        """Lets an endpoint show that it reads all that it is sent, before the grid is."""
        prepared, caps = self.prepared, self.caps

        def admit(n_prompt: int, n_output: int) -> bool:
            if caps.admit(n_prompt, n_output) is not None:
                return False
            cost = cost_usd(caps.price, n_prompt=n_prompt, n_cached=0, n_output=n_output)
            caps.settle(n_prompt, n_output, cost=cost, tokens=n_prompt + n_output, latency_s=None)
            return True

        checker = Checker(
            model=prepared.model,
            tokenizer=plain_tokenizer(prepared.tokenizer),
            reasoning_budget=prepared.settings.reasoning_budget,
            temperature=prepared.settings.temperature,
            patience=Policy(),
            admit=admit,
            say=self.progress.say,
        )
        known = old["model"]["facts"].get("check") if old is not None else None
        longest = max((item.point.length for item in self._todo()), default=0)
        found = await check_before_run(checker, longest, known, self.progress.say)
        if found is not None:
            self.prepared = replace(prepared, check=found)

    def _replan(self) -> None:
        prepared = self.prepared
        tasks = tuple(prepared.plan.tasks.values())
        plan = make_plan(prepared.battery, tasks, prepared.tokenizer, window=prepared.model.window)
        self.prepared = replace(prepared, plan=plan)

    async def _send(self, todo: list[Item]) -> tuple[str | None, LongreachError | None]:
        judge = _open_judge(self.prepared)
        scheduler = self.scheduler = Scheduler(self._job(judge))
        error = None
        try:
            with self.progress.shown():
                await self._stages(scheduler, todo)
        except ModelUnusable as caught:
            error = caught
        finally:
            if judge is not None:
                await judge.model.close()
        if scheduler.capped:
            self.store.add_all(scheduler.not_run(todo))
        return scheduler.reason, error

    async def _stages(self, scheduler: Scheduler, todo: list[Item]) -> None:
        """The shortest length first; the rest only if that does not look broken."""
        first, rest = split_at_gate(todo, self.prepared.plan)
        await scheduler.run(first)
        if scheduler.stop.is_set():
            return
        gate = gate_of(self.prepared.plan)
        for capability, sentence in broken_headlines(self.prepared.plan, self.store.records).items():
            if gate and capability == gate[0] and not self.prepared.options.force and rest:
                scheduler.halt(f"{sentence}: the set-up is probably wrong ({ADVICE}); --force goes on")
            else:
                self.progress.say(f"warning: {sentence}")
        await scheduler.run(rest)

    def _job(self, judge: Judge | None) -> Job:
        prepared = self.prepared
        return Job(
            plan=prepared.plan,
            model=prepared.model,
            tokenizer=prepared.tokenizer,
            settings=prepared.settings,
            concurrency=prepared.battery.concurrency or prepared.model.concurrency,
            store=self.store,
            caps=self.caps,
            progress=self.progress,
            judge=judge,
            policy=_policy(prepared.model),
        )

    def note_settings(self) -> None:
        """Writes config.yaml without asking anything.

        Raises:
            RunFolderError: the folder holds records of other settings.
        """
        self._save_config(_old_config(self.prepared.folder, self.store, self.prepared.config()))

    def _save_config(self, old: Mapping[str, Any] | None) -> None:
        config = self.prepared.config()
        write_config(self.prepared.folder, merged(old, config) if old is not None else config)

    def interrupt(self) -> None:
        """Ctrl-C: the first stops sending and awaits what is in flight (canaries are given up), the second ends the process."""
        self.interrupts += 1
        if self.interrupts > 1:
            (self.prepared.folder / LOCK).unlink(missing_ok=True)
            os._exit(130)  # what was acknowledged is on disk
        if self.scheduler is not None:
            self.scheduler.halt("Ctrl-C")
            self.progress.say(
                "stopping: waiting for the answers in flight (Ctrl-C again ends at once); repeat to resume"
            )
        elif self.task is not None:
            self.task.cancel()
            self.progress.say("stopped before the first sample; repeat to go on")

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread() or self.loop is None:
            yield
            return
        kinds = (signal.SIGINT, signal.SIGTERM)
        before = [signal.getsignal(kind) for kind in kinds]
        for kind in kinds:
            with contextlib.suppress(NotImplementedError):  # Windows
                self.loop.add_signal_handler(kind, self.interrupt)
        try:
            yield
        finally:
            for kind, handler in zip(kinds, before, strict=True):
                self.loop.remove_signal_handler(kind)
                signal.signal(kind, handler)


def drive(conductor: Conductor) -> Collected:
    """Runs the coroutine; inside a running loop (a notebook) in a thread with a loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(conductor.collect())
    found: list[Collected] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(asyncio.run(conductor.collect()))
        except BaseException as error:  # noqa: BLE001 - carried to the calling thread, whatever it is
            failed.append(error)

    thread = threading.Thread(target=work, name="longreach-run")
    thread.start()
    while thread.is_alive():
        try:
            thread.join()
        except KeyboardInterrupt:
            if conductor.loop is None:
                raise
            conductor.loop.call_soon_threadsafe(conductor.interrupt)
    if failed:
        raise failed[0]
    return found[0]


def _old_config(folder: Path, store: Store, new: Mapping[str, Any]) -> dict[str, Any] | None:
    """The folder's config if it holds records.

    Raises:
        RunFolderError: its records were made under other settings; they are named.
    """
    if not store.records:
        return None
    if not (folder / CONFIG).exists():
        raise RunFolderError(
            f"{folder} holds records but no {CONFIG}, so that nobody knows how they were made; choose another --out"
        )
    old = read_config(folder)
    changed = differences(old, new, may_move=True)
    if changed:
        raise RunFolderError(
            f"run folder {folder} was made with other settings ({'; '.join(changed)}); "
            f"use another --out for the new ones, or the old ones to go on"
        )
    return old


def _is_final(record: Record | None) -> bool:
    return record is not None and record.outcome in FINAL


def _policy(model: Model) -> Policy:
    """Nobody needs to wait for a simulated server."""
    return Policy(base_s=0.0) if model.simulated else Policy()


async def probe(model: Model) -> None:
    """Lets the model look at its server once, where it can."""
    probe: Callable[[], Any] | None = getattr(model, "probe", None)
    if probe is not None:
        answer = probe()
        if inspect.isawaitable(answer):
            await answer


def _open_judge(prepared: Prepared) -> Judge | None:
    return Judge(model=prepared.judge) if prepared.judge is not None else None


def untested(prepared: Prepared, records: Mapping[str, Record]) -> list[Cell]:
    """Planned cells that are not tested: nothing counted in them, a prompt that did not fit or was cut, or
    rows that are longer than every length."""
    counted: dict[Cell, int] = {}
    spoilt: set[Cell] = set()
    for item in prepared.items:
        cell = prepared.plan.cell_of(item)
        record = records.get(prepared.settings.key(item.point))
        counted[cell] = counted.get(cell, 0) + (record is not None and record.outcome in COUNTED)
        if record is not None and record.outcome in ("overflow", "truncated"):
            spoilt.add(cell)
    refused = [(cell.task, cell.length, None) for cell in prepared.plan.infeasible if cell.is_refused]
    return [cell for cell, n in counted.items() if n == 0 or cell in spoilt] + refused
