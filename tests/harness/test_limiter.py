"""One endpoint's limits: requests at once by halving and growing, tokens a minute by what its headers say."""

import asyncio
import random

import pytest

from longreach.harness.errors import ModelError, PromptTooLarge
from longreach.harness.model import Request, Response
from longreach.harness.running.attempts import Gate, Policy, ask
from longreach.harness.running.limiter import Limiter
from longreach.harness.sample import Message


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def wait(self, stop: asyncio.Event, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def limiter(most: int = 8) -> tuple[Limiter, Clock]:
    clock = Clock()
    return Limiter(most=most, clock=clock), clock


def test_an_overload_halves_once_for_all_that_was_in_flight() -> None:
    found, _ = limiter()
    tickets = [found.sent(1) for _ in range(8)]
    for ticket in tickets:
        found.done(ticket, {}, overloaded=True, answered=False)
    assert found.allowed == 4.0
    found.done(found.sent(1), {}, overloaded=True, answered=False)
    assert found.allowed == 2.0


def test_answers_grow_it_by_one_a_round_up_to_what_the_user_allows() -> None:
    found, _ = limiter()
    found.done(found.sent(1), {}, overloaded=True, answered=False)
    for _ in range(4):
        found.done(found.sent(1), {}, overloaded=False, answered=True)
    assert 4.8 < found.allowed < 5.0
    for _ in range(100):
        found.done(found.sent(1), {}, overloaded=False, answered=True)
    assert found.allowed == 8.0


def test_one_request_at_a_time_is_the_least() -> None:
    found, _ = limiter(2)
    for _ in range(5):
        found.done(found.sent(1), {}, overloaded=True, answered=False)
    assert found.allowed == 1.0
    assert not found.is_full


def test_a_request_waits_until_its_tokens_are_granted() -> None:
    found, clock = limiter()
    found.done(found.sent(10), {"tokens_limit": 600, "tokens_left": 100}, overloaded=False, answered=True)
    assert found.wait_s(100) == 0.0
    assert found.wait_s(300) == pytest.approx(20.0, rel=0.02)  # 200 short at 10 a second
    clock.now = 20.0
    assert found.wait_s(300) == pytest.approx(0.0)


def test_what_was_sent_since_is_taken_off_what_a_late_header_says() -> None:
    found, _ = limiter()
    first, _second = found.sent(100), found.sent(400)
    found.done(first, {"tokens_limit": 600, "tokens_left": 500}, overloaded=False, answered=True)
    assert found.wait_s(100) == 0.0
    assert found.wait_s(101) > 0.0


def test_the_reset_tells_how_fast_a_quota_fills() -> None:
    found, _ = limiter()
    rates = {"requests_limit": 1000, "requests_left": 0, "requests_reset_s": 86400.0}
    found.done(found.sent(1), rates, overloaded=False, answered=True)
    assert found.wait_s(1) == pytest.approx(86.4, rel=0.02)


def test_a_prompt_above_the_quota_waits_for_a_full_one_only() -> None:
    found, _ = limiter()
    found.done(found.sent(10), {"tokens_limit": 600, "tokens_left": 0}, overloaded=False, answered=True)
    assert found.wait_s(5000) == pytest.approx(60.0, rel=0.6)


class Quota:
    """Answers within so many tokens a minute, else 429 with the headers of an honest endpoint."""

    name, tokenizer, window, concurrency, simulated = "quota", None, None, 4, False
    price, facts = None, {}

    def __init__(self, clock: Clock, limit: int) -> None:
        self.clock, self.limit, self.left, self.at = clock, limit, float(limit), 0.0
        self.refused = 0

    async def generate(self, request: Request) -> Response:
        now = self.clock()
        self.left = min(self.limit, self.left + (now - self.at) * self.limit / 60)
        self.at = now
        n = (request.n_tokens or 0) + request.max_new_tokens
        rates = {"tokens_limit": float(self.limit), "tokens_left": self.left}
        if n > self.left:
            self.refused += 1
            raise ModelError("slow down", transient=True, status=429, rates=rates)
        self.left -= n
        await asyncio.sleep(0)
        return Response(text="x", raw={"rates": rates | {"tokens_left": self.left}})

    async def close(self) -> None:
        """Nothing is held."""


def ask_many(n_tokens: int, n: int, limit: int, at_once: int) -> tuple[Quota, Clock, list[object]]:
    clock = Clock()
    model = Quota(clock, limit)

    async def run() -> list[object]:
        gate = Gate(asyncio.Event(), clock=clock, wait=clock.wait, limiter=Limiter(most=at_once, clock=clock))
        request = Request(messages=(Message(role="user", content="x"),), n_tokens=n_tokens, max_new_tokens=10)
        policy, rng = Policy(base_s=0.0), random.Random(1)
        found: list[object] = []

        async def work() -> None:
            while len(found) < n:
                found.append(None)
                at = len(found) - 1
                found[at] = await ask(model, request, policy=policy, gate=gate, rng=rng)  # type: ignore[arg-type]

        await asyncio.gather(*(work() for _ in range(at_once)))
        return found

    return model, clock, asyncio.run(run())


def test_a_run_keeps_below_the_quota_instead_of_being_refused() -> None:
    model, clock, answers = ask_many(n_tokens=190, n=40, limit=1000, at_once=4)
    assert all(answer.response is not None for answer in answers)  # type: ignore[attr-defined]
    assert model.refused <= 4
    assert 400 < clock.now < 520  # 8,000 tokens at 1,000 a minute, the first thousand at once


def test_a_prompt_larger_than_the_quota_is_impossible_and_sent_once() -> None:
    model, _, answers = ask_many(n_tokens=5000, n=1, limit=1000, at_once=1)
    error = answers[0].error  # type: ignore[attr-defined]
    assert isinstance(error, PromptTooLarge)
    assert "1,000 tokens a minute" in str(error)
    assert model.refused == 1


def test_waiting_for_the_rate_is_delay_and_not_latency() -> None:
    _, _, answers = ask_many(n_tokens=900, n=3, limit=1000, at_once=1)
    delays = [answer.attempts[0].delay_s for answer in answers]  # type: ignore[attr-defined]
    assert delays[0] == 0.0
    assert delays[2] > 30
