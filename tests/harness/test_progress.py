"""Signs of life."""

import io
from typing import Any

import pytest

from longreach.harness.record import Record
from longreach.harness.running.progress import Progress


def record(**changes: Any) -> Record:
    fields: dict[str, Any] = {
        "key": "k",
        "task": "a",
        "task_id": "a@1",
        "version": 1,
        "capability": "retrieval",
        "family": "needle",
        "length": 1000,
        "depth": 0.5,
        "index": 0,
        "seed": 42,
        "model": "m",
        "tokenizer": "words",
        "outcome": "scored",
        "score": 1.0,
        "text": "TOP SECRET \x1b[31m",
        "n_prompt_tokens": 980,
        "n_output_tokens": 5,
        "cost_usd": 0.01,
        "at": "2026-01-01T00:00:00+00:00",
    }
    return Record(**(fields | changes))


def test_lines_come_at_most_every_ten_seconds_and_at_the_end() -> None:
    now = [0.0]
    out = io.StringIO()
    progress = Progress(stream=out, clock=lambda: now[0])
    progress.start([1000] * 30, stored=0)
    with progress.shown():
        for _ in range(30):
            now[0] += 1.0
            progress.add(record())
    lines = out.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[0].startswith(
        "longreach: 10/30 samples | 1.0/s | 9,850 tokens | 0.1000 USD | mean score 1.00 | about 20 s"
    )


def test_a_quiet_run_says_that_it_is_alive() -> None:
    now = [0.0]
    out = io.StringIO()
    progress = Progress(stream=out, clock=lambda: now[0])
    for _ in range(7):
        now[0] += 10.0
        progress.beat()
    assert out.getvalue().splitlines() == ["longreach: waiting for the endpoint's first answers"] * 2
    progress.start([1000] * 30, stored=0)
    now[0] += 30.0
    progress.beat()
    assert out.getvalue().splitlines()[-1].startswith("longreach: 0/30 samples")


def test_what_is_left_goes_by_tokens_and_not_by_samples() -> None:
    now = [0.0]
    progress = Progress(stream=io.StringIO(), clock=lambda: now[0])
    progress.start([1000, 9000], stored=0)
    now[0] = 10.0
    progress.add(record())
    assert "about 90 s left" in progress.line() or "about 2 min left" in progress.line()


def test_an_unknown_cost_is_unknown() -> None:
    progress = Progress(stream=io.StringIO())
    progress.start([1000], stored=0)
    progress.add(record(cost_usd=None))
    assert "cost unknown" in progress.line()


def test_failures_are_not_in_the_mean_score() -> None:
    progress = Progress(stream=io.StringIO())
    progress.start([1000, 1000], stored=0)
    progress.add(record())
    progress.add(record(outcome="failed", score=None))
    assert "2/2 samples" in progress.line()
    assert "mean score 1.00" in progress.line()


@pytest.mark.parametrize("live", [True, False])
def test_answers_are_never_printed(live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    progress = Progress(stream=out, live=live)
    progress.start([1000], stored=3)
    with progress.shown():
        progress.add(record())
    assert "SECRET" not in out.getvalue()
    assert "1/1 samples" in out.getvalue()
    assert "3 samples are stored already" in out.getvalue()
