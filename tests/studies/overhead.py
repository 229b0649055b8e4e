"""Study: what the engine costs per sample, against a bare `openai` client loop that sends the same prompts.

A server in a process of its own answers at once. Both sides send prompts of the same bytes at concurrency 64, streamed, and
read the reply; CPU is that of this process, all threads. Both get the prompts ready made: what the engine does beyond the
bare loop is to schedule, check, grade, hash and store durably. Building is measured apart, in a run of its own. Then the peak
of memory of whole runs at 128k, each in a process of its own, and records that 64 writers have acknowledged as durable.

    python tests/studies/overhead.py [samples at 1k] [samples at 128k] [rounds]
"""

import asyncio
import importlib.util
import io
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longreach.harness.model import Response
from longreach.harness.record import Record
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import Prepared, prepare
from longreach.harness.running.progress import Progress
from longreach.harness.running.run import caps_of
from longreach.harness.running.scheduler import Job, Scheduler
from longreach.harness.running.store import open_store, read_records
from longreach.harness.sample import Grid, Point, Sample
from longreach.harness.task import Score, Task, TaskInfo
from longreach.harness.tokenizer import Tokenizer

CONCURRENCY = 64
MEMORY = (64, 256, 512, 1024)
"""Samples of the runs whose memory is measured."""
RECORDS = 20_000


def serve(ready: Any, stop: Any) -> None:
    """A server that answers at once, until told to stop."""
    spec = importlib.util.spec_from_file_location("fault_server", Path(__file__).parent.parent / "fault_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["fault_server"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class Instant(module.Oracle):  # type: ignore[name-defined, misc]
        async def reply(self, sent: Any) -> Any:
            return self._answer("", 0, None)

    server = module.FaultServer()
    server.oracle = Instant(solve=lambda text: "4817", usage=False)
    ready.put(server.url)
    stop.wait()
    server.close()


def case_of(folder: Path, url: str, length: int, samples: int) -> Prepared:
    """A run of so many samples."""
    options = Options.of(
        tasks=["niah.single"],
        lengths=str(length),
        depths="0.5",
        samples=samples,
        model="openai:m",
        base_url=url,
        out=folder,
    )
    return prepare(options)


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A task whose samples are made already."""

    task: Task
    samples: Mapping[str, Sample]

    @property
    def info(self) -> TaskInfo:
        return self.task.info

    def points(self, grid: Grid) -> Iterator[Point]:
        return self.task.points(grid)

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        return self.samples[point.key]

    def score(self, sample: Sample, response: Response) -> Score:
        return self.task.score(sample, response)


def with_ready_samples(case: Prepared) -> tuple[Prepared, list[str]]:
    """The case with its samples made, and their prompts."""
    (entry,) = case.plan.tasks.values()
    samples = {item.point.key: entry.task.sample(item.point, case.tokenizer) for item in case.plan.items}
    tasks = {entry.label: replace(entry, task=Ready(task=entry.task, samples=samples))}
    plan = replace(case.plan, tasks=tasks)
    return replace(case, plan=plan), [sample.messages[0].content for sample in samples.values()]


async def engine(case: Prepared) -> None:
    """All samples through scheduler and store."""
    with open_store(case.folder) as store:
        job = Job(
            plan=case.plan,
            model=case.model,
            tokenizer=case.tokenizer,
            settings=case.settings,
            concurrency=CONCURRENCY,
            store=store,
            caps=caps_of(case),
            progress=Progress(stream=io.StringIO()),
        )
        await Scheduler(job).run(case.plan.items)
        assert {record.outcome for record in store.records.values()} == {"scored"}
    await case.model.close()


async def bare(url: str, prompts: list[str]) -> None:
    """The same prompts through the client alone."""
    import openai

    client = openai.AsyncOpenAI(base_url=url, api_key="EMPTY", http_client=openai.DefaultAioHttpClient())
    left = iter(prompts)

    async def work() -> None:
        for prompt in left:
            stream = await client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": prompt}],
                max_tokens=32,
                temperature=0.0,
                stream=True,
                stream_options={"include_usage": True},
            )
            async for _ in stream:
                pass

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    await client.close()


def cpu_s() -> float:
    """CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """CPU seconds and wall seconds of a piece of work."""
    started, clock = cpu_s(), time.perf_counter()
    work()
    return cpu_s() - started, time.perf_counter() - clock


def measure(folder: Path, url: str, length: int, samples: int) -> dict[str, Any]:
    """Milliseconds of CPU per sample: the whole run, then engine and bare client on ready prompts."""
    whole, _ = timed(lambda: asyncio.run(engine(case_of(folder / "whole", url, length, samples))))
    case, prompts = with_ready_samples(case_of(folder / "ready", url, length, samples))
    ours, wall_s = timed(lambda: asyncio.run(engine(case)))
    alone, _ = timed(lambda: asyncio.run(bare(url, prompts)))
    per = 1000 / samples
    return {
        "length": length,
        "samples": samples,
        "engine_ms": round(ours * per, 2),
        "bare_ms": round(alone * per, 2),
        "ratio": round(ours / alone, 2),
        "engine_and_building_ms": round(whole * per, 2),
        "samples_per_s": round(samples / wall_s, 1),
    }


def peak_mb(folder: Path, url: str, length: int, samples: int, found: Any) -> None:
    """Peak memory of this process after a whole run, MB."""
    asyncio.run(engine(case_of(folder, url, length, samples)))
    found.put(round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


async def durable(folder: Path, record: Record) -> float:
    """Acknowledged records a second, written by 64 tasks that each await the disk."""
    with open_store(folder) as store:
        left = iter(range(RECORDS))

        async def write() -> None:
            for number in left:
                await store.add(replace(record, key=f"{number:032x}"))

        started = time.perf_counter()
        await asyncio.gather(*(write() for _ in range(CONCURRENCY)))
        return RECORDS / (time.perf_counter() - started)


def main(small: int = 2000, large: int = 128, rounds: int = 3) -> None:
    """Prints one JSON line per measurement."""
    context = multiprocessing.get_context("spawn")
    ready, stop = context.Queue(), context.Event()
    process = context.Process(target=serve, args=(ready, stop), daemon=True)
    process.start()
    url = ready.get(timeout=30)
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        for samples in MEMORY:  # first, while this process is small: a child's peak starts at its parent's size
            found = context.Queue()
            child = context.Process(target=peak_mb, args=(here / f"m{samples}", url, 131072, samples, found))
            child.start()
            print(json.dumps({"length": 131072, "samples": samples, "peak_mb": found.get()}), flush=True)
            child.join()
        measure(here / "warm", url, 1024, 100)
        for length, samples in ((1024, small), (131072, large)):
            for number in range(rounds):
                print(json.dumps(measure(here / f"{length}-{number}", url, length, samples)), flush=True)
        record = next(iter(read_records(here / "warm" / "ready").values()))
        per_s = asyncio.run(durable(here / "durable", record))
        print(json.dumps({"records": RECORDS, "writers": CONCURRENCY, "durable_per_s": round(per_s)}))
    stop.set()
    process.join(10)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
