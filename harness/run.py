"""run(): from options to a run folder with its card; the one function behind the command line and the Python API.

Repeating a call resumes it: samples that are stored are not asked again.
"""

import asyncio
import contextlib
import inspect
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach.harness.attempts import Policy
from longreach.harness.battery import Battery
from longreach.harness.battery_load import load_battery
from longreach.harness.budget import Caps
from longreach.harness.config import differences, make_config, merged
from longreach.harness.errors import ConfigError, LongreachError, ModelUnusable, RunFolderError
from longreach.harness.frame import frame
from longreach.harness.grading import Judge
from longreach.harness.lock import NAME as LOCK
from longreach.harness.model import Model, Price
from longreach.harness.options import Options
from longreach.harness.plan import Item, Plan, make_plan
from longreach.harness.progress import Progress
from longreach.harness.record import COUNTED, FINAL, Record
from longreach.harness.registry import open_model
from longreach.harness.resolve import (
    Settings,
    given_tokenizer,
    resolve_model,
    resolve_price,
    resolve_tasks,
    settings_of,
    with_system,
)
from longreach.harness.results import write_results
from longreach.harness.sanity import ADVICE, broken_headlines, gate_of, split_at_gate
from longreach.harness.scheduler import Job, Scheduler
from longreach.harness.store import CONFIG, Store, open_store, read_config, write_config
from longreach.harness.tokenizer import Tokenizer, WordsTokenizer

if TYPE_CHECKING:
    import pandas as pd

    from longreach.harness.card import Card


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Everything resolved and planned; nothing sent, nothing written."""

    options: Options
    battery: Battery
    model: Model
    spec: str
    tokenizer: Tokenizer
    plan: Plan
    settings: Settings
    price: Price

    @property
    def folder(self) -> Path:
        """The run folder: `out`, else runs/<battery>-<model>."""
        if self.options.out is not None:
            return Path(str(self.options.out)).expanduser()
        return Path("runs") / f"{_slug(self.battery.name)}-{_slug(self.settings.model)}"

    def config(self) -> dict[str, Any]:
        """What config.yaml will say, with the facts that the model knows by now."""
        return make_config(
            battery=self.battery,
            plan=self.plan,
            model=self.model,
            spec=self.spec,
            tokenizer=self.tokenizer,
            settings=self.settings,
            price=self.price,
            command=self.options.command("run"),
        )


@dataclass(slots=True, kw_only=True)
class Run:
    """A finished or stopped run."""

    folder: Path
    records: list[Record]
    """Last state of each sample, in the order of results.csv."""
    card: "Card"
    stopped: str | None
    """Why it ended early, if it did."""
    exit_code: int
    """0 done, 3 incomplete, 4 model unusable."""
    error: LongreachError | None = None
    _frame: "pd.DataFrame | None" = field(default=None, init=False)

    @property
    def frame(self) -> "pd.DataFrame":
        """One row per record: the columns of results.csv, and capability and family."""
        if self._frame is None:
            self._frame = frame(self.records)
        return self._frame


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:60] or "run"


def prepare(options: Options) -> Prepared:
    """Resolves and plans.

    Raises:
        ConfigError: usage or configuration, in one line. ModelUnusable: from opening the model.
    """
    battery = load_battery(options)
    tasks = resolve_tasks(battery)
    given = given_tokenizer(battery)
    model, spec = resolve_model(battery, given)
    tokenizer = with_system(given or model.tokenizer or WordsTokenizer(), battery.system)
    return Prepared(
        options=options,
        battery=battery,
        model=model,
        spec=spec,
        tokenizer=tokenizer,
        plan=make_plan(battery, tasks, tokenizer, window=model.window),
        settings=settings_of(battery, model, tokenizer),
        price=resolve_price(battery, model),
    )


def run(battery: Any = None, *, model: Any = None, lengths: Any = None, out: Any = None, **options: Any) -> Run:
    """Plans, runs or resumes, scores, stores and writes the card.

    Args:
        battery: built-in name, YAML file, a run's config.yaml, or a mapping like one.
        model: SPEC such as `openai:NAME`; default: the embedded model.
        lengths: `["4k", 8192]` or `"4k,8k"`.
        out: run folder.
        options: the flags of `longreach run` by name, underscores for hyphens.

    Raises:
        ConfigError, RunFolderError, ModelUnusable: nothing useful could be done. A run that was stopped early is
        returned with `stopped` set.
    """
    given = Options.of(battery=battery, model=model, lengths=lengths, out=out, **options)
    finished = run_options(given, Progress())
    if finished.error is not None:
        raise finished.error
    return finished


def run_options(options: Options, progress: Progress) -> Run:
    """`run` for options that are made already; an unusable model is reported in the Run."""
    prepared = prepare(options)
    caps = Caps(
        price=prepared.price,
        max_cost=prepared.battery.max_cost,
        max_tokens=prepared.battery.max_tokens,
        max_time=prepared.battery.max_time,
    )
    return _drive(_Conductor(prepared, caps, progress))


@dataclass(slots=True)
class _Conductor:
    """Holds a run together: store, probe, scheduler, signals, results."""

    prepared: Prepared
    caps: Caps
    progress: Progress
    loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)
    scheduler: Scheduler | None = field(default=None, init=False)
    interrupts: int = field(default=0, init=False)

    async def run(self) -> Run:
        self.loop = asyncio.get_running_loop()
        prepared = self.prepared
        try:
            with open_store(prepared.folder) as store:
                old = _old_config(prepared.folder, store, prepared.config())
                stopped, error = await self._ask(store, old)
                return self._finish(store, stopped, error)
        finally:
            await prepared.model.close()

    async def _ask(self, store: Store, old: Mapping[str, Any] | None) -> tuple[str | None, LongreachError | None]:
        """Sends what is not stored; returns why it ended early, and the error that ended it."""
        if store.torn is not None:
            self.progress.say(f"a torn last line was moved to {store.torn.name}; its sample is asked again")
        self._save_config(old)
        if self._todo(store):
            try:
                await self._look_at_model()
            except ModelUnusable as error:
                return str(error), error
            self._save_config(old)
        plan, todo = self.prepared.plan, self._todo(store)
        self.progress.start([item.point.length for item in todo], stored=len(plan.items) - len(todo))
        return await self._send(store, todo) if todo else (None, None)

    def _todo(self, store: Store) -> list[Item]:
        key = self.prepared.settings.key
        return [item for item in self.prepared.plan.items if not _is_final(store.records.get(key(item.point)))]

    async def _look_at_model(self) -> None:
        """Probes the model where it can be; a window that shows only now may cut the plan."""
        prepared = self.prepared
        window = prepared.model.window
        await _probe(prepared.model)
        if prepared.model.window != window:
            tasks = tuple(prepared.plan.tasks.values())
            plan = make_plan(prepared.battery, tasks, prepared.tokenizer, window=prepared.model.window)
            self.prepared = replace(prepared, plan=plan)

    async def _send(self, store: Store, todo: list[Item]) -> tuple[str | None, LongreachError | None]:
        judge = _open_judge(self.prepared)
        scheduler = self.scheduler = Scheduler(self._job(store, judge))
        error = None
        try:
            with self._signals(), self.progress.shown():
                await self._stages(scheduler, todo, store)
        except ModelUnusable as caught:
            error = caught
        finally:
            if judge is not None:
                await judge.model.close()
        if scheduler.capped:
            store.add_all(scheduler.not_run(todo))
        return scheduler.reason, error

    async def _stages(self, scheduler: Scheduler, todo: list[Item], store: Store) -> None:
        """The shortest length first; the rest only if that does not look broken."""
        first, rest = split_at_gate(todo, self.prepared.plan)
        await scheduler.run(first)
        if scheduler.stop.is_set():
            return
        gate = gate_of(self.prepared.plan)
        for capability, sentence in broken_headlines(self.prepared.plan, store.records).items():
            if gate and capability == gate[0] and not self.prepared.options.force and rest:
                scheduler.halt(f"{sentence}: the set-up is probably wrong ({ADVICE}); --force goes on")
            else:
                self.progress.say(f"warning: {sentence}")
        await scheduler.run(rest)

    def _job(self, store: Store, judge: Judge | None) -> Job:
        prepared = self.prepared
        return Job(
            plan=prepared.plan,
            model=prepared.model,
            tokenizer=prepared.tokenizer,
            settings=prepared.settings,
            concurrency=prepared.battery.concurrency or prepared.model.concurrency,
            store=store,
            caps=self.caps,
            progress=self.progress,
            judge=judge,
            policy=_policy(prepared.model),
        )

    def _save_config(self, old: Mapping[str, Any] | None) -> None:
        config = self.prepared.config()
        write_config(self.prepared.folder, merged(old, config) if old is not None else config)

    def _finish(self, store: Store, stopped: str | None, error: LongreachError | None) -> Run:
        folder = self.prepared.folder
        card, records = write_results(folder, store.records)
        code = 4 if error is not None else 3 if stopped or untested(self.prepared, store.records) else 0
        return Run(folder=folder, records=records, card=card, stopped=stopped, exit_code=code, error=error)

    def interrupt(self) -> None:
        """Ctrl-C: the first stops sending and awaits what is in flight, the second ends the process."""
        self.interrupts += 1
        if self.interrupts > 1:
            (self.prepared.folder / LOCK).unlink(missing_ok=True)
            os._exit(130)  # what was acknowledged is on disk
        if self.scheduler is not None:
            self.scheduler.halt("Ctrl-C")
        self.progress.say("stopping: waiting for the answers in flight (Ctrl-C again ends at once); repeat to resume")

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread() or self.loop is None:
            yield
            return
        kinds = (signal.SIGINT, signal.SIGTERM)
        before = [signal.getsignal(kind) for kind in kinds]
        for kind in kinds:
            self.loop.add_signal_handler(kind, self.interrupt)
        try:
            yield
        finally:
            for kind, handler in zip(kinds, before, strict=True):
                self.loop.remove_signal_handler(kind)
                signal.signal(kind, handler)


def _drive(conductor: _Conductor) -> Run:
    """Runs the coroutine; inside a running loop (a notebook) in a thread with a loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(conductor.run())
    found: list[Run] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(asyncio.run(conductor.run()))
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
    changed = differences(old, new)
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


async def _probe(model: Model) -> None:
    """Lets the model look at its server once, where it can."""
    probe: Callable[[], Any] | None = getattr(model, "probe", None)
    if probe is not None:
        answer = probe()
        if inspect.isawaitable(answer):
            await answer


def _open_judge(prepared: Prepared) -> Judge | None:
    if prepared.battery.judge is None:
        return None
    model = open_model(prepared.battery.judge)
    if model.simulated:
        raise ConfigError(
            f"--judge {prepared.battery.judge} cannot grade: a simulated model only knows its own answer key"
        )
    return Judge(model=model)


def untested(prepared: Prepared, records: Mapping[str, Record]) -> list[tuple[str, int, float | None]]:
    """Planned cells that are not tested: nothing counted in them, or a prompt that did not fit or was cut."""
    counted: dict[tuple[str, int, float | None], int] = {}
    spoilt: set[tuple[str, int, float | None]] = set()
    for item in prepared.plan.items:
        cell = (item.label, item.point.length, item.point.depth)
        record = records.get(prepared.settings.key(item.point))
        counted[cell] = counted.get(cell, 0) + (record is not None and record.outcome in COUNTED)
        if record is not None and record.outcome in ("overflow", "truncated"):
            spoilt.add(cell)
    return [cell for cell, n in counted.items() if n == 0 or cell in spoilt]
