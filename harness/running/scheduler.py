"""Scheduler: prompts are built ahead in threads, a bounded number of requests is in flight, every answer is stored at once.

    items ──> builders (threads, byte budget) ──> queue ──> workers: caps, ask, grade ──> store (durable) ──> progress

One failed sample never ends a run. What does: Ctrl-C (what is in flight is awaited), a cap, a model that is unusable, a
shortest length that looks broken.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from longreach.harness.errors import LongreachError, ModelError, ModelUnusable
from longreach.harness.model import Model, Request, Response
from longreach.harness.record import FINAL, Record
from longreach.harness.running.attempts import Answer, Gate, Policy
from longreach.harness.running.budget import Caps, Extra, both
from longreach.harness.running.grading import Bill, Judge, grade
from longreach.harness.running.limiter import Limiter
from longreach.harness.running.outcome import (
    answer_record,
    error_record,
    outcome_of_response,
    outcome_of_score,
    unsent_record,
)
from longreach.harness.running.plan import Item, Plan
from longreach.harness.running.progress import Progress
from longreach.harness.running.requests import make_request
from longreach.harness.running.resolve import Settings
from longreach.harness.running.store import Store
from longreach.harness.running.truncation import TruncationGuard
from longreach.harness.running.two_calls import ask_all, extra_of, second_prompt
from longreach.harness.running.unjudged import MARK, WAITING, waiting
from longreach.harness.sample import Sample
from longreach.harness.tokenizer import Tokenizer

BYTES_AHEAD = 256 * 1024 * 1024
"""Most bytes of prompts that are built but not yet answered, unless a single one is larger."""
BYTES_PER_TOKEN = 8
"""Generous: English has about 4, and a prompt is held twice while it is sent."""
FAILURES_IN_A_ROW = 5
"""So many samples that all failed, each after its retries: the server is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything that stays the same during a run."""

    plan: Plan
    model: Model
    tokenizer: Tokenizer
    settings: Settings
    concurrency: int
    store: Store
    caps: Caps
    progress: Progress
    judge: Judge | None = None
    policy: Policy = field(default_factory=Policy)
    gives_up: bool = True
    """Stop when many samples in a row failed: the server is gone. Replies that are stored already cannot be gone."""


class ByteBudget:
    """Lets builders go on while the prompts in flight stay below a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._freed = asyncio.Condition()

    async def take(self, size: int) -> None:
        """Waits until `size` fits, or until nothing else is held."""
        async with self._freed:
            await self._freed.wait_for(lambda: self._used == 0 or self._used + size <= self._limit)
            self._used += size

    async def give(self, size: int) -> None:
        """Gives back what `take` took."""
        async with self._freed:
            self._used -= size
            self._freed.notify_all()


@dataclass(slots=True)
class Scheduler:
    """Runs items of a job. Make it inside a running event loop."""

    job: Job
    stop: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    reason: str | None = field(default=None, init=False)
    """Why the run was stopped before its end, if it was."""
    capped: bool = field(default=False, init=False)
    error: LongreachError | None = field(default=None, init=False)
    _failed_in_a_row: int = field(default=0, init=False)
    _in_flight: int = field(default=0, init=False)
    _gate: Gate = field(init=False)
    _judge_gate: Gate = field(init=False)
    _guard: TruncationGuard = field(init=False)
    _rng: random.Random = field(init=False)
    _slots: asyncio.Semaphore = field(init=False)
    _budget: ByteBudget = field(init=False)

    def __post_init__(self) -> None:
        job = self.job
        self._gate = Gate(self.stop, limiter=Limiter(most=job.concurrency), say=job.progress.say)
        self._judge_gate = Gate(self.stop, say=job.progress.say)
        self._guard = TruncationGuard(
            knows_template=job.tokenizer.knows_template, is_estimate=job.tokenizer.is_estimate
        )
        self._rng = random.Random(0)  # of the jitter only
        # Shared by all calls of `run` that are under way: a scan has several blocks in flight.
        self._slots = asyncio.Semaphore(job.concurrency)
        self._budget = ByteBudget(BYTES_AHEAD)
        for record in job.store.records.values():
            if record.outcome == "scored" and record.n_tokens and record.n_prompt_tokens:
                self._check(record.task, record.length, record.n_tokens, record.n_prompt_tokens)

    def halt(self, reason: str, *, capped: bool = False) -> None:
        """Stops sending; what is in flight is awaited and kept. The first reason stays."""
        if not self.stop.is_set():
            self.reason, self.capped = reason, capped
            self.stop.set()

    async def run(self, items: Sequence[Item]) -> None:
        """Asks all items, or as many as there are until the run is stopped. Never raises for a sample.

        Raises:
            LongreachError: the model is unusable or the folder cannot be written; all that was acknowledged is kept.
        """
        if not items or self.stop.is_set():
            return
        n_workers = min(self.job.concurrency, len(items))
        built: asyncio.Queue[tuple[Item, Sample | LongreachError, int] | None] = asyncio.Queue(maxsize=n_workers + 1)
        with ThreadPoolExecutor(max_workers=2, thread_name_prefix="longreach-build") as pool:
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._build_all(iter(items), built, pool, n_workers))
                    for _ in range(n_workers):
                        group.create_task(self._work(built))
            except* LongreachError as several:
                raise several.exceptions[0] from None
        if self.error is not None:
            raise self.error

    async def _build_all(
        self,
        items: Iterator[Item],
        built: "asyncio.Queue[tuple[Item, Sample | LongreachError, int] | None]",
        pool: ThreadPoolExecutor,
        n_workers: int,
    ) -> None:
        async def build_some() -> None:
            loop = asyncio.get_running_loop()
            for item in items:
                if self.stop.is_set():
                    return
                size = item.point.length * BYTES_PER_TOKEN
                await self._budget.take(size)
                await built.put((item, await loop.run_in_executor(pool, self._build, item), size))

        await asyncio.gather(build_some(), build_some())
        for _ in range(n_workers):
            await built.put(None)

    def _build(self, item: Item) -> Sample | LongreachError:
        try:
            return self.job.plan.tasks[item.label].task.sample(item.point, self.job.tokenizer)
        except LongreachError as error:
            return error
        except Exception as error:  # noqa: BLE001 - a task of a third party: this sample fails, the run goes on
            return LongreachError(f"the prompt could not be built: {type(error).__name__}: {error}")

    async def _work(self, built: "asyncio.Queue[tuple[Item, Sample | LongreachError, int] | None]") -> None:
        while (work := await built.get()) is not None:
            item, sample, size = work
            try:
                async with self._slots:
                    if not self.stop.is_set():
                        await self._one(item, sample)
            except LongreachError as error:
                self.error = self.error or error
                self.halt(str(error))
            finally:
                await self._budget.give(size)

    async def _one(self, item: Item, sample: Sample | LongreachError) -> None:
        task = self.job.plan.tasks[item.label]
        if isinstance(sample, LongreachError):
            await self._keep(unsent_record(item, task, self.job.settings, "failed", str(sample)))
            return
        request = self._request(item, sample)
        caps = self.job.caps
        second = extra_of(task.task, sample, request, self.job.tokenizer, caps.price)
        most = both(self._judging(request.max_new_tokens), second)
        if (reason := caps.admit(sample.n_tokens, request.max_new_tokens, extra=most)) is not None:
            self.halt(reason, capped=True)
            return
        old = self.job.store.records.get(request.key or "")
        stored = waiting(old) if self.job.judge is not None else None
        self._in_flight += 1
        record, bill = None, Bill()
        try:
            record = await self._ask(item, sample, request, bill, stored)
        finally:
            self._in_flight -= 1
            caps.settle(
                sample.n_tokens,
                request.max_new_tokens,
                extra=most,
                **self._used(record, sample, request, bill, was_asked=stored is None),
            )
        if record is not None:
            await self._keep(record)
            self._watch(record, is_known_failure=old is not None and old.outcome == "failed")

    async def _ask(
        self, item: Item, sample: Sample, request: Request, bill: Bill, stored: Answer | None
    ) -> Record | None:
        """The record of a sample; None: stopped. An answer that is stored already is only graded."""
        job = self.job
        task = job.plan.tasks[item.label]
        left = job.caps.left_s
        if stored is not None and stored.response is not None:
            return await self._graded(item, sample, stored, stored.response, bill)
        try:
            answer = await asyncio.wait_for(
                ask_all(
                    job.model,
                    request,
                    task=task.task,
                    sample=sample,
                    tokenizer=job.tokenizer,
                    policy=job.policy,
                    gate=self._gate,
                    rng=self._rng,
                ),
                timeout=None if left == float("inf") else max(left, 0.0),
            )
        except TimeoutError:
            self.halt(f"--max-time {job.caps.max_time:g} minutes", capped=True)
            return None
        if answer.error is not None:
            return error_record(item, task, job.settings, sample, answer, answer.error)
        return await self._graded(item, sample, answer, answer.response, bill) if answer.response else None

    async def _graded(self, item: Item, sample: Sample, answer: Answer, response: Response, bill: Bill) -> Record:
        job = self.job
        task = job.plan.tasks[item.label]
        cut = None
        if response.n_prompt_tokens is not None:
            prefix = job.tokenizer.count(sample.answer_prefix) if sample.answer_prefix else 0
            cut = self._check(item.label, item.point.length, sample.n_tokens, response.n_prompt_tokens, prefix)
        outcome, score, error = outcome_of_response(response, cut), None, cut
        more: dict[str, Any] = {"in_flight": self._in_flight} | ({"cold": True} if job.settings.cold else {})
        known = {"item": item, "task": task, "settings": job.settings, "sample": sample, "price": job.caps.price}
        fields: dict[str, Any] = known | {"answer": answer, "response": response}
        if outcome == "scored":
            if job.judge is not None:  # durable before it is graded: a verdict takes a while
                more[MARK] = True
                await job.store.add(answer_record(**fields, outcome="failed", score=None, error=WAITING, more=more))
            try:
                score = await grade(task.task, sample, response, job.judge, self._judge_gate, self._rng, bill)
            except ModelError as problem:
                outcome, error = "failed", f"the judge failed: {problem}"
            except Exception as problem:  # noqa: BLE001 - a scorer of a third party: this sample fails, the run goes on
                outcome, error = "failed", f"the answer could not be scored: {type(problem).__name__}: {problem}"
            else:
                outcome = outcome_of_score(score, response.text, sample)
                more.pop(MARK, None)
        return answer_record(**fields, outcome=outcome, score=score, error=error, more=more | bill.to_dict())

    def _check(self, task: str, length: int, ours: int, server: int, prefix: int = 0) -> str | None:
        return self._guard.check(task, length=length, ours=ours, server=server, prefix=prefix)

    def _request(self, item: Item, sample: Sample) -> Request:
        job = self.job
        return make_request(item, sample, job.plan, job.settings, job.tokenizer, simulated=job.model.simulated)

    def _judging(self, n_answer: int) -> Extra | None:
        judge = self.job.judge
        return judge.extra(n_answer, self.job.caps.price) if judge is not None else None

    def _used(
        self, record: Record | None, sample: Sample, request: Request, bill: Bill, *, was_asked: bool
    ) -> dict[str, Any]:
        """What a sample really took; attempts that broke may have been charged too."""
        if not was_asked:
            cost = self.job.judge.cost(bill.n_prompt, bill.n_output, self.job.caps.price) if self.job.judge else 0.0
            return {"tokens": bill.n_prompt + bill.n_output, "cost": cost, "latency_s": None}
        waste = sum(1 for a in record.attempts if a.status not in ("ok", "rate_limited", "rejected")) if record else 1
        tokens, cost = waste * sample.n_tokens + bill.n_prompt + bill.n_output, 0.0
        if record is not None and (record.n_output_tokens is not None or record.text):
            # Not reported: count the most that it can be.
            n_output = request.max_new_tokens if record.n_output_tokens is None else record.n_output_tokens
            tokens += (record.n_prompt_tokens or sample.n_tokens) + n_output
            tokens += second_prompt(record.extra.get("backend", {}))
            cost = record.cost_usd or 0.0
        if self.job.judge is not None:
            cost += self.job.judge.cost(bill.n_prompt, bill.n_output, self.job.caps.price)
        return {"tokens": tokens, "cost": cost, "latency_s": record.latency_s if record is not None else None}

    async def _keep(self, record: Record) -> None:
        await self.job.store.add(record)
        self.job.progress.add(self.job.store.records[record.key])

    def _watch(self, record: Record, *, is_known_failure: bool) -> None:
        """Ends the run when the server is gone: many samples in a row failed, each after all its retries.

        Samples that failed in an earlier run too say nothing: they may be the only ones left.
        """
        if not self.job.gives_up or is_known_failure and record.outcome == "failed":
            return
        self._failed_in_a_row = self._failed_in_a_row + 1 if record.outcome == "failed" else 0
        if self._failed_in_a_row >= max(FAILURES_IN_A_ROW, self.job.concurrency):
            raise ModelUnusable(
                f"{self._failed_in_a_row} samples in a row failed, the last one with: {record.error}; check the server, "
                f"then repeat the command: it goes on where it stopped"
            )

    def not_run(self, items: Sequence[Item]) -> list[Record]:
        """Records of the items that a cap kept from being asked."""
        found = []
        for item in items:
            old = self.job.store.records.get(self.job.settings.key(item.point))
            if old is None or old.outcome not in FINAL:
                task = self.job.plan.tasks[item.label]
                found.append(unsent_record(item, task, self.job.settings, "not_run", f"stopped by {self.reason}"))
        return found
