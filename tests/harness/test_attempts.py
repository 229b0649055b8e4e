"""Retries, waits and the pause that an endpoint's requests share."""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from longreach.harness.errors import ContentFiltered, ContextOverflow, ModelError, ModelUnusable
from longreach.harness.model import Price, Request, Response
from longreach.harness.running.attempts import Answer, Gate, Policy, ask, status_of
from longreach.harness.sample import Message

REQUEST = Request(messages=(Message(role="user", content="?"),), max_new_tokens=8)
RATE_LIMIT = ModelError("slow down", transient=True, status=429, retry_after_s=7.0)
BROKEN = ModelError("connection reset", transient=True)


class Scripted:
    """A model that raises what it is told to, then answers."""

    name = "scripted"
    tokenizer = None
    window = None
    concurrency = 1
    simulated = False
    price = Price()
    facts: Mapping[str, Any] = {}

    def __init__(self, *script: Exception) -> None:
        self.script = list(script)
        self.calls = 0

    async def generate(self, request: Request) -> Response:
        self.calls += 1
        if self.script:
            raise self.script.pop(0)
        return Response(text="fine")

    async def close(self) -> None:
        """Nothing is held."""


def asked(model: Scripted, say: Callable[[str], None] = lambda text: None, **policy: Any) -> tuple[Answer, list[float]]:
    """The answer, and the pauses on the way; the clock jumps instead of waiting."""
    pauses: list[float] = []

    async def jump(stop: asyncio.Event, seconds: float) -> None:
        pauses.append(seconds)

    async def run() -> Answer:
        gate = Gate(asyncio.Event(), clock=lambda: sum(pauses), wait=jump, say=say)
        return await ask(model, REQUEST, policy=Policy(**policy), gate=gate, rng=random.Random(1))

    return asyncio.run(run()), pauses


def test_a_broken_connection_is_tried_again_with_growing_waits() -> None:
    answer, pauses = asked(Scripted(BROKEN, BROKEN, BROKEN))
    assert answer.response is not None
    assert [attempt.status for attempt in answer.attempts] == ["broken_stream"] * 3 + ["ok"]
    assert [1 <= pause / 2**n <= 1.25 for n, pause in enumerate(pauses)] == [True] * 3


def test_the_wait_that_a_server_asks_for_goes_before_our_own() -> None:
    answer, pauses = asked(Scripted(RATE_LIMIT))
    assert 7.0 <= sum(pauses) < 7.2
    assert answer.attempts[0].status == "rate_limited"
    assert answer.attempts[1].delay_s == pytest.approx(sum(pauses), abs=1e-3)


def test_long_waits_are_told_and_short_ones_are_not() -> None:
    said: list[str] = []
    asked(Scripted(BROKEN, BROKEN, RATE_LIMIT, RATE_LIMIT), said.append)
    assert said == ["no answer (429, rate_limited): waiting 7 s as the endpoint asks, try 4 of 8 comes next"]


def test_a_server_cannot_ask_for_more_than_the_cap() -> None:
    _, pauses = asked(Scripted(ModelError("wait", transient=True, status=429, retry_after_s=86400.0)))
    assert sum(pauses) == 300.0


def test_a_negative_wait_falls_back_to_our_own() -> None:
    _, pauses = asked(Scripted(ModelError("wait", transient=True, status=429, retry_after_s=-5.0)))
    assert 1.0 <= sum(pauses) <= 1.25


def failing(model: Scripted, n: int) -> float:
    """Seconds until `n` requests, one after the other, have failed at one endpoint."""
    waited: list[float] = []

    async def jump(stop: asyncio.Event, seconds: float) -> None:
        waited.append(seconds)

    async def run() -> None:
        shared = Gate(asyncio.Event(), clock=lambda: sum(waited), wait=jump)
        for _ in range(n):
            answer = await ask(model, REQUEST, policy=Policy(), gate=shared, rng=random.Random(1))
            assert answer.response is None

    asyncio.run(run())
    return sum(waited)


@pytest.mark.parametrize("error", [BROKEN, ModelError("oops", transient=True, status=500)])
def test_an_endpoint_that_never_answered_is_given_up_within_half_a_minute(error: ModelError) -> None:
    assert 10 < failing(Scripted(*[error] * 99), 5) <= 30


@pytest.mark.parametrize(
    "error",
    [
        ModelError("loading the model", transient=True, status=503),
        ModelError("come back", transient=True, status=500, retry_after_s=20.0),
        RATE_LIMIT,
    ],
)
def test_an_endpoint_that_says_later_is_waited_for(error: ModelError) -> None:
    assert failing(Scripted(*[error] * 8), 1) > 40


def test_an_endpoint_that_has_answered_is_waited_for() -> None:
    waited: list[float] = []

    async def jump(stop: asyncio.Event, seconds: float) -> None:
        waited.append(seconds)

    async def run() -> Answer:
        gate = Gate(asyncio.Event(), clock=lambda: sum(waited), wait=jump)
        model = Scripted()
        await ask(model, REQUEST, policy=Policy(), gate=gate, rng=random.Random(1))
        model.script = [BROKEN] * 7
        return await ask(model, REQUEST, policy=Policy(), gate=gate, rng=random.Random(1))

    assert asyncio.run(run()).response is not None
    assert sum(waited) > 100


def test_after_the_last_try_the_error_comes_back_with_every_attempt() -> None:
    answer, _ = asked(Scripted(*[BROKEN] * 9), tries=4)
    assert answer.response is None
    assert answer.error is BROKEN
    assert len(answer.attempts) == 4


@pytest.mark.parametrize("error", [ContextOverflow("too long"), ContentFiltered("no"), ModelError("bad", status=400)])
def test_what_cannot_get_better_is_asked_once(error: ModelError) -> None:
    model = Scripted(error)
    answer, pauses = asked(model)
    assert (model.calls, pauses, answer.error) == (1, [], error)


def test_an_exception_of_a_foreign_model_fails_the_sample_only() -> None:
    answer, _ = asked(Scripted(MemoryError("out of memory")))
    assert str(answer.error) == "MemoryError: out of memory"


def test_an_unusable_model_ends_it() -> None:
    with pytest.raises(ModelUnusable):
        asked(Scripted(ModelUnusable("wrong key")))


def test_one_request_told_to_wait_holds_back_the_others() -> None:
    waited: list[float] = []

    async def jump(stop: asyncio.Event, seconds: float) -> None:
        waited.append(seconds)

    async def run() -> float:
        gate = Gate(asyncio.Event(), clock=lambda: sum(waited), wait=jump)
        gate.hold(12.0)
        return await gate.passed()

    assert asyncio.run(run()) == 12.0


def test_stopping_the_run_ends_a_wait() -> None:
    async def run() -> Answer:
        stop = asyncio.Event()
        gate = Gate(stop)
        task = asyncio.create_task(
            ask(Scripted(BROKEN), REQUEST, policy=Policy(base_s=20), gate=gate, rng=random.Random(1))
        )
        await asyncio.sleep(0)
        stop.set()
        return await task

    answer = asyncio.run(run())
    assert (answer.response, answer.error) == (None, None)


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (ModelError("", status=503), "server_error"),
        (ModelError("", status=408), "timeout"),
        (ModelError("", status=404), "rejected"),
        (ContextOverflow(""), "overflow"),
        (ContentFiltered(""), "filtered"),
    ],
)
def test_an_attempt_is_named_by_what_went_wrong(error: ModelError, word: str) -> None:
    assert status_of(error) == word
