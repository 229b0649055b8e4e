"""A soak: many samples at once against a server of which three replies in ten are faulty."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import longreach
from longreach.harness.record import Record
from longreach.harness.registry import get_task
from longreach.harness.sample import Message, Point
from longreach.harness.tokenizer import WordsTokenizer

RIGHT = {"ok": "scored", "reasoning_only": "no_answer", "filter": "refused"}
"""What must come of a sample whose last reply was of this kind."""


def solve(text: str) -> str | None:
    return get_task("niah.single").solve((Message(role="user", content=text),))  # type: ignore[attr-defined, no-any-return]


def soak(server: Any, fault_server: Any, folder: Path, samples: int) -> str:
    """Runs, checks every record, and tells the figures."""
    server.oracle = oracle = fault_server.Oracle(solve=solve, faults=0.3)
    started = time.monotonic()
    run = longreach.run(
        tasks=["niah.single"],
        lengths="512",
        depths="0,0.25,0.5,0.75,1",
        samples=samples // 5,
        model="openai:m",
        base_url=server.url,
        concurrency=64,
        out=folder,
    )
    wall_s = time.monotonic() - started
    lines = (folder / "records.jsonl").read_text().splitlines()
    records = [Record.from_json(line) for line in lines]
    final = {record.key: record for record in records}
    assert len(run.records) == len(final) == samples  # none lost
    assert len(lines) == samples  # none twice
    task, tokenizer = get_task("niah.single"), WordsTokenizer()
    for record in final.values():
        point = Point(
            task=record.task_id, length=record.length, depth=record.depth, index=record.index, seed=record.seed
        )
        sample = task.sample(point, tokenizer)
        kind = oracle.last[hash("\n\n".join(message.content for message in sample.messages))]
        assert record.outcome == RIGHT[kind], (kind, record.error)
        assert record.score == (1.0 if kind == "ok" else 0.0)
    attempts = Counter(attempt.status for record in final.values() for attempt in record.attempts)
    assert attempts.total() <= server.n_requests
    outcomes = Counter(record.outcome for record in final.values())
    told = {"samples": samples, "requests": server.n_requests, "wall_s": round(wall_s, 1)}
    return json.dumps(told | {"outcomes": outcomes, "attempts": attempts})


def test_every_sample_ends_in_its_right_outcome(server: Any, fault_server: Any, tmp_path: Path) -> None:
    print(soak(server, fault_server, tmp_path, 200))
    assert server.most_in_flight <= 64


@pytest.mark.real
def test_two_thousand_samples_end_in_their_right_outcome(server: Any, fault_server: Any, tmp_path: Path) -> None:
    print(soak(server, fault_server, tmp_path, 2000))


def test_a_rate_is_kept_instead_of_run_into(server: Any, fault_server: Any, tmp_path: Path) -> None:
    server.oracle = fault_server.Oracle(solve=solve, tokens_per_minute=300_000)
    run = longreach.run(
        tasks=["niah.single"],
        lengths="4k",
        depths="0,1",
        samples=40,
        model="openai:m",
        base_url=server.url,
        concurrency=16,
        out=tmp_path,
    )
    assert {record.outcome for record in run.records} == {"scored"}
    assert server.oracle.told["quota"] <= 16
    assert max(record.latency_s or 0 for record in run.records) < 1.0  # waiting is not latency


def test_a_repeated_cold_run_finds_no_warm_prefix(server: Any, fault_server: Any, tmp_path: Path) -> None:
    server.oracle = fault_server.Oracle(solve=solve, cached=True)
    hits: dict[str, list[int]] = {}
    for name, cold in (("warm-1", None), ("warm-2", None), ("cold-1", True), ("cold-2", True)):
        run = longreach.run(
            tasks=["niah.single"],
            lengths="1k",
            depths="0.5",
            samples=6,
            model="openai:m",
            base_url=server.url,
            cold=cold,
            out=tmp_path / name,
        )
        assert {record.score for record in run.records} == {1.0}
        hits[name] = [record.n_cached_tokens or 0 for record in run.records]
    assert min(hits["warm-2"]) > 800
    assert max(hits["cold-1"] + hits["cold-2"]) <= 64
