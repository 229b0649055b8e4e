"""Samples are built, asked, graded and stored; nothing that one of them does ends the run."""

import asyncio
import dataclasses
import io
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.errors import ModelUnusable
from longreach.harness.model import Price, Request, Response
from longreach.harness.record import Record
from longreach.harness.registry import get_task
from longreach.harness.running.attempts import Policy
from longreach.harness.running.grading import Judge
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import Prepared, prepare
from longreach.harness.running.progress import Progress
from longreach.harness.running.run import caps_of
from longreach.harness.running.scheduler import ByteBudget, Job, Scheduler
from longreach.harness.running.store import open_store
from longreach.harness.sample import Point, Sample
from longreach.harness.task import Score, Task, TaskInfo
from longreach.harness.tokenizer import Tokenizer

Reply = Callable[[Request], Response]


class Told:
    """A model that answers as a function says; `seen` keeps the requests."""

    name = "told"
    tokenizer = None
    window = None
    concurrency = 2
    price = Price(input=1.0, cached=0.1, output=2.0)
    facts: Mapping[str, Any] = {}

    def __init__(self, reply: Reply, *, simulated: bool = True) -> None:
        self.reply = reply
        self.simulated = simulated
        self.seen: list[Request] = []
        self.most = self.now = 0

    async def generate(self, request: Request) -> Response:
        self.seen.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return self.reply(request)

    async def close(self) -> None:
        """Nothing is held."""


def right(request: Request) -> Response:
    assert request.sample is not None
    return Response(text=", ".join(request.sample.target), n_prompt_tokens=request.n_tokens, n_output_tokens=3)


def prepared(folder: Path, model: Told, **options: Any) -> Prepared:
    defaults = {"tasks": "niah.single", "model": "sim:perfect", "lengths": "512", "depths": "0,1", "samples": 4}
    return dataclasses.replace(prepare(Options.of(**(defaults | options), out=folder)), model=model)


def asked(case: Prepared, *, judge: Judge | None = None, concurrency: int = 2) -> tuple[list[Record], Scheduler]:
    """Records of all items of the plan."""

    async def run() -> tuple[list[Record], Scheduler]:
        with open_store(case.folder) as store:
            job = Job(
                plan=case.plan,
                model=case.model,
                tokenizer=case.tokenizer,
                settings=case.settings,
                concurrency=concurrency,
                store=store,
                caps=caps_of(case),
                progress=Progress(stream=io.StringIO()),
                judge=judge,
                policy=Policy(base_s=0.0),
            )
            scheduler = Scheduler(job)
            await scheduler.run(case.plan.items)
            return list(store.records.values()), scheduler

    return asyncio.run(run())


def outcomes(records: list[Record]) -> Counter[str]:
    return Counter(record.outcome for record in records)


def test_no_more_requests_are_in_flight_than_asked_for(tmp_path: Path) -> None:
    model = Told(right)
    records, _ = asked(prepared(tmp_path, model, samples=20), concurrency=3)
    assert len(records) == 40
    assert model.most <= 3


def test_the_answer_key_goes_to_simulated_models_only(tmp_path: Path) -> None:
    model = Told(lambda request: Response(text="no idea"), simulated=False)
    asked(prepared(tmp_path, model))
    assert all(request.sample is None for request in model.seen)


def test_requests_carry_the_settings(tmp_path: Path) -> None:
    model = Told(right)
    asked(prepared(tmp_path, model, system="Be brief.", reasoning_budget=100, top_p=0.9, temperature=0.5))
    request = model.seen[0]
    reserve = get_task("niah.single").info.reserve
    assert [message.role for message in request.messages] == ["system", "user"]
    assert (request.max_new_tokens, request.top_p, request.temperature) == (reserve + 100, 0.9, 0.5)
    assert len({request.seed for request in model.seen}) == len(model.seen)


def test_greedy_requests_carry_no_seed(tmp_path: Path) -> None:
    model = Told(right)
    asked(prepared(tmp_path, model))
    assert {request.seed for request in model.seen} == {None}


def test_costs_come_from_the_prices_of_the_model(tmp_path: Path) -> None:
    records, _ = asked(prepared(tmp_path, Told(right), price_in=1.0, price_cached=0.1, price_out=2.0))
    for record in records:
        assert record.cost_usd == pytest.approx(((record.n_prompt_tokens or 0) + 3 * 2.0) / 1e6)


@pytest.mark.parametrize(
    ("response", "outcome", "score"),
    [
        (Response(text="", reasoning="hm", finish="length"), "no_answer", 0.0),
        (Response(text=" \n", finish="stop"), "no_answer", 0.0),
        (Response(text="", finish="filter"), "refused", 0.0),
        (Response(text="I cannot", raw={"refusal": "I cannot"}), "refused", 0.0),
        (Response(text="wrong", finish="length"), "scored", 0.0),
    ],
)
def test_what_came_back_decides_the_outcome(tmp_path: Path, response: Response, outcome: str, score: float) -> None:
    records, _ = asked(prepared(tmp_path, Told(lambda request: response)))
    assert {(record.outcome, record.score, record.finish) for record in records} == {(outcome, score, response.finish)}


def test_a_server_that_cuts_prompts_is_never_scored(tmp_path: Path) -> None:
    model = Told(lambda request: dataclasses.replace(right(request), n_prompt_tokens=300))
    records, _ = asked(prepared(tmp_path, model, tokenizer="bytes"))
    assert {(record.outcome, record.score) for record in records} == {("truncated", None)}
    assert "cuts prompts" in str(records[0].error)


def test_out_of_memory_fails_one_sample_and_the_run_goes_on(tmp_path: Path) -> None:
    def sometimes(request: Request) -> Response:
        if request.sample is not None and request.sample.point.index == 1:
            raise MemoryError("out of memory")
        return right(request)

    records, _ = asked(prepared(tmp_path, Told(sometimes)))
    assert outcomes(records) == {"scored": 6, "failed": 2}
    assert {record.error for record in records if record.outcome == "failed"} == {"MemoryError: out of memory"}


def test_an_unusable_model_ends_the_run_and_keeps_what_is_there(tmp_path: Path) -> None:
    calls = [0]

    def soon_gone(request: Request) -> Response:
        calls[0] += 1
        if calls[0] > 3:
            raise ModelUnusable("no credit left")
        return right(request)

    case = prepared(tmp_path, Told(soon_gone))
    with pytest.raises(ModelUnusable, match="no credit left"):
        asked(case, concurrency=1)
    with open_store(tmp_path) as store:
        assert len(store.records) == 3


def test_a_server_that_is_gone_ends_the_run_after_a_few_samples(tmp_path: Path) -> None:
    def gone(request: Request) -> Response:
        raise ConnectionError("refused")

    model = Told(gone)
    with pytest.raises(ModelUnusable, match="5 samples in a row failed"):
        asked(prepared(tmp_path, model, samples=50))
    assert len(model.seen) <= 6 * Policy().tries


def test_samples_that_failed_before_do_not_look_like_a_server_that_is_gone(tmp_path: Path) -> None:
    def never(request: Request) -> Response:
        raise MemoryError("too long")

    case = prepared(tmp_path, Told(never), samples=2)
    for _ in range(3):
        records, _ = asked(case)
        assert outcomes(records) == {"failed": 4}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Broken:
    """A task of a third party whose parts fail."""

    inner: Task
    builds: bool
    info: TaskInfo

    def points(self, grid: Any) -> Any:
        return self.inner.points(grid)

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        if not self.builds and point.index == 0:
            raise KeyError("row")
        return self.inner.sample(point, tokenizer)

    def score(self, sample: Sample, response: Response) -> Score:
        raise ZeroDivisionError("no words")


@pytest.mark.parametrize(
    ("builds", "message"),
    [
        (False, "the prompt could not be built: KeyError: 'row'"),
        (True, "the answer could not be scored: ZeroDivisionError: no words"),
    ],
)
def test_a_broken_task_fails_its_samples_only(tmp_path: Path, builds: bool, message: str) -> None:
    case = prepared(tmp_path, Told(right), samples=1)
    (entry,) = case.plan.tasks.values()
    broken = dataclasses.replace(entry, task=Broken(inner=entry.task, builds=builds, info=entry.task.info))
    plan = dataclasses.replace(case.plan, tasks={entry.label: broken})
    records, _ = asked(dataclasses.replace(case, plan=plan))
    assert {(record.outcome, record.error) for record in records} == {("failed", message)}


# --- the judge


def judge(text: str) -> Judge:
    return Judge(model=Told(lambda request: Response(text=text), simulated=False), policy=Policy(base_s=0.0))


def test_a_judge_replaces_the_score_and_the_strict_one_is_kept(tmp_path: Path) -> None:
    model = Told(lambda request: Response(text="about that many"))
    records, _ = asked(prepared(tmp_path, model, judge="openai:judge"), judge=judge("CORRECT"))
    assert {(record.score, record.parts["strict"]) for record in records} == {(1.0, 0.0)}


def test_a_judge_never_sees_the_haystack(tmp_path: Path) -> None:
    grader = judge("INCORRECT")
    model = Told(right)
    asked(prepared(tmp_path, model), judge=grader)
    assert isinstance(grader.model, Told)
    assert max(len(request.messages[-1].content) for request in grader.model.seen) < 600
    assert len(model.seen[0].messages[-1].content) > 1500


def test_a_judge_without_a_verdict_leaves_the_sample_unscored(tmp_path: Path) -> None:
    grader = judge("Well, that depends.")
    records, _ = asked(prepared(tmp_path, Told(right), samples=1), judge=grader)
    assert {(record.outcome, record.score) for record in records} == {("failed", None)}
    assert "no verdict in two replies" in str(records[0].error)
    assert isinstance(grader.model, Told)
    assert len(grader.model.seen) == 2 * len(records)


def test_an_answer_is_on_disk_before_it_is_judged_and_is_not_asked_for_again(tmp_path: Path) -> None:
    on_disk: list[list[str]] = []

    def look(request: Request) -> Response:
        on_disk.append((tmp_path / "records.jsonl").read_text().splitlines())
        return Response(text="Well, that depends.")

    first, second = Told(right), Told(right)
    silent = Judge(model=Told(look, simulated=False), policy=Policy(base_s=0.0))
    records, _ = asked(prepared(tmp_path, first, samples=1), judge=silent, concurrency=1)
    assert [len(lines) for lines in on_disk] == [1, 1, 3, 3]  # two replies of the judge to each answer
    assert all('"unjudged":true' in lines[-1] for lines in on_disk)
    again, scheduler = asked(prepared(tmp_path, second, samples=1), judge=judge("CORRECT"), concurrency=1)
    assert (len(first.seen), len(second.seen)) == (2, 0)
    assert {(record.outcome, record.score) for record in again} == {("scored", 1.0)}
    assert [record.text for record in again] == [record.text for record in records]
    assert not any("unjudged" in record.extra for record in again)
    assert scheduler.job.caps.tokens == sum(sum(record.extra["judge"].values()) for record in again)


# --- memory


def test_builders_wait_while_too_many_bytes_are_in_flight() -> None:
    async def run() -> list[str]:
        budget = ByteBudget(100)
        events: list[str] = []

        async def use(name: str, size: int) -> None:
            await budget.take(size)
            events.append(f"{name} in")
            await asyncio.sleep(0)
            events.append(f"{name} out")
            await budget.give(size)

        await asyncio.gather(use("a", 60), use("b", 30), use("c", 60), use("huge", 500))
        return events

    events = asyncio.run(run())
    assert events[:2] == ["a in", "b in"]
    assert events.index("c in") > events.index("a out")
    assert events.index("huge in") > events.index("c out")  # larger than the budget: goes alone
