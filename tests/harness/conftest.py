"""Records and configurations made directly, without a run; cards are built from them. Runs and searches without cards."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.record import COUNTED, Attempt, Record
from longreach.harness.running.conduct import Conductor, drive
from longreach.harness.running.find import Finder, ScanProgress
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import prepare
from longreach.harness.running.progress import Progress
from longreach.harness.running.run import caps_of
from longreach.harness.running.scan_plan import plan_find
from longreach.harness.running.store import Store, open_store, read_config, read_records
from longreach.harness.stats.estimates import Estimates, estimate

CAPABILITIES = {"niah.single": "retrieval", "niah.distractor": "retrieval", "ruler.vt": "reasoning", "lb": "documents"}
FAMILIES = {"niah.single": "needle", "niah.distractor": "needle", "ruler.vt": "tracing", "lb": "documents"}


class Make:
    """Builds records cell by cell."""

    def record(self, task: str, length: int, depth: float | None, index: int, **fields: Any) -> Record:
        outcome = fields.setdefault("outcome", "scored")
        fields.setdefault("score", 1.0 if outcome == "scored" else 0.0 if outcome in COUNTED else None)
        values: dict[str, Any] = {
            "key": f"{task}/{length}/{depth}/{index}",
            "task": task,
            "task_id": f"{task}@1",
            "version": 1,
            "capability": CAPABILITIES.get(task, "retrieval"),
            "family": FAMILIES.get(task, "needle"),
            "length": length,
            "depth": depth,
            "index": index,
            "seed": 42,
            "model": "sim:test",
            "tokenizer": "words",
            "attempts": (Attempt(status="ok"),),
            "text": "7301" if fields["score"] == 1.0 else "1111",
            "target": ("7301",),
            "n_tokens": length - 40,
            "at": "2026-11-30T10:00:00+00:00",
        }
        return Record(**(values | fields))

    def cell(self, task: str, length: int, depth: float | None, right: float, n: int, **fields: Any) -> list[Record]:
        """`n` scored samples whose scores add up to `right` (the last one takes a fraction)."""
        scores = [min(1.0, max(0.0, right - index)) for index in range(n)]
        return [self.record(task, length, depth, i, score=score, **fields) for i, score in enumerate(scores)]

    def row(
        self, task: str, passes: Mapping[int, float], n: int, depths: Sequence[float | None] = (None,), **fields: Any
    ) -> list[Record]:
        """One task over lengths: `passes` right of `n` in each (length, depth)."""
        return [
            record
            for length, right in passes.items()
            for depth in depths
            for record in self.cell(task, length, depth, right, n, **fields)
        ]

    def outcome(
        self, task: str, length: int, depth: float | None, outcome: str, n: int, start: int = 0
    ) -> list[Record]:
        """`n` samples of one outcome that is not `scored`."""
        return [self.record(task, length, depth, start + i, outcome=outcome) for i in range(n)]

    def config(self, records: Sequence[Record], **changes: Any) -> dict[str, Any]:
        """A configuration that planned exactly these records."""
        labels = list(dict.fromkeys(record.task for record in records))
        planned: dict[tuple[str, int, float | None], int] = {}
        for record in records:
            place = (record.task, record.length, record.depth)
            planned[place] = planned.get(place, 0) + 1
        by_capability: dict[str, list[str]] = {"retrieval": [], "reasoning": []}
        for label in labels:
            by_capability.setdefault(CAPABILITIES.get(label, "retrieval"), []).append(label)
        by_capability.pop("documents", None)
        config: dict[str, Any] = {
            "schema": 1,
            "longreach": "0.1.0",
            "battery": "niah",
            "headline": by_capability,
            "lengths": sorted({record.length for record in records}),
            "depths": sorted({record.depth for record in records if record.depth is not None}),
            "samples": 10,
            "seed": 42,
            "tasks": [self._task(label) for label in labels],
            "infeasible": [],
            "planned": [{"task": t, "length": n, "depth": d, "n": count} for (t, n, d), count in planned.items()],
            "model": {
                "spec": "sim:test",
                "name": "sim:test",
                "args": {},
                "simulated": False,
                "window": None,
                "concurrency": 4,
                "facts": {},
                "price": {"input": None, "cached": None, "output": None},
            },
            "tokenizer": {"name": "tiktoken:cl100k_base", "knows_template": True, "is_estimate": False},
            "sampling": {"temperature": 0, "reasoning_budget": 0},
            "corpus": None,
            "advertised": None,
            "limits": {},
            "environment": {"python": "3.11", "platform": "Linux x86_64", "packages": {}, "plugins": []},
            "command": "longreach run niah --model sim:test",
            "started": "2026-11-30T09:59:00+00:00",
        }
        for name, value in changes.items():
            config[name] = config[name] | value if isinstance(value, dict) and name in config else value
        return config

    def _task(self, label: str) -> dict[str, Any]:
        info = {
            "version": 1,
            "capability": CAPABILITIES.get(label, "retrieval"),
            "family": FAMILIES.get(label, "needle"),
            "chance": 0.0,
            "reserve": 32,
            "has_depth": label != "ruler.vt",
            "source": "own",
            "license": "Apache-2.0",
        }
        return {"task": label, "label": label, "params": {}, "info": info}


@pytest.fixture
def make() -> Make:
    return Make()


@pytest.fixture
def estimated(make: Make) -> Callable[..., Any]:
    """Estimates of records under the configuration that planned exactly them."""
    from longreach.harness.stats.estimates import estimate

    return lambda records, **changes: estimate(records, make.config(records, **changes))


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a run or search left in its folder, without a card: drawing one takes longer than all the rest."""

    folder: Path
    exit_code: int
    stopped: str | None
    said: str
    records: list[Record]
    config: dict[str, Any]

    @property
    def estimates(self) -> Estimates:
        return estimate(self.records, self.config)


def _done(folder: Path, make: Callable[[Store, Progress], Conductor], kind: type[Progress]) -> Done:
    stream = io.StringIO()
    with open_store(folder) as store:
        collected = drive(make(store, kind(stream=stream)))
    if collected.error is not None:
        raise collected.error
    return Done(
        folder=folder,
        exit_code=collected.exit_code,
        stopped=collected.stopped,
        said=stream.getvalue(),
        records=list(read_records(folder).values()),
        config=read_config(folder),
    )


@pytest.fixture
def search() -> Callable[..., Done]:
    """`find` up to its records."""

    def search(folder: Path, **options: Any) -> Done:
        plan = plan_find(Options.of(**options, out=folder))

        def make(store: Store, progress: Progress) -> Conductor:
            return Finder(plan.prepared, store, caps_of(plan.prepared), progress, found=plan)

        return _done(folder, make, ScanProgress)

    return search


@pytest.fixture
def grid() -> Callable[..., Done]:
    """`run` up to its records."""

    def grid(folder: Path, **options: Any) -> Done:
        prepared = prepare(Options.of(**options, out=folder))

        def make(store: Store, progress: Progress) -> Conductor:
            return Conductor(prepared, store, caps_of(prepared), progress)

        return _done(folder, make, Progress)

    return grid
