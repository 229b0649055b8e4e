"""Asking a model until it answers: retries with exponential back-off and jitter, and a pause that an endpoint shares.

Waiting is never part of a latency: the model measures that itself, from the moment of sending.
"""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from longreach.harness.errors import ContentFiltered, ContextOverflow, ModelError, ModelUnusable, PromptTooLarge
from longreach.harness.model import Model, Request, Response
from longreach.harness.record import Attempt
from longreach.harness.running.limiter import Limiter, Ticket

TOLD_S = 5.0
"""Waits from so many seconds on are told."""
TOLD_EVERY_S = 10.0
"""Seconds between two such lines: many requests may wait."""
_OVERLOAD = {429, 503, 529}
_LATER = {408, 425, 429, 503, 504, 529}
"""Statuses that mean by definition: not now, come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How patient to be."""

    tries: int = 8
    base_s: float = 1.0
    """First wait; it doubles each time. 0 never waits."""
    cap_s: float = 60.0
    """Longest wait of our own choosing."""
    longest_wait_s: float = 300.0
    """Longest wait that a server may ask for."""
    first_s: float = 30.0
    """So long an endpoint may break down that has never answered; one that asks to come back later is not breaking down."""

    def delay_s(self, failures: int, error: ModelError, rng: random.Random) -> float:
        """Seconds to wait after so many failures; what the server asks for goes before our own back-off."""
        jitter = 1.0 + 0.25 * rng.random()  # so that many waiting requests do not come back at once
        own = min(self.base_s * 2.0 ** (failures - 1), self.cap_s) * jitter
        asked = error.retry_after_s
        return own if asked is None or asked < 0 else min(max(asked, 0.0) + 0.1 * own, self.longest_wait_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of asking: a response, or the last error. Both None: stopped while waiting."""

    response: Response | None
    error: ModelError | None
    attempts: tuple[Attempt, ...]
    waste: int = 0
    """Failed attempts that the server may have charged for."""


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    """So many seconds, or until `stop` is set."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return


@dataclass(slots=True)
class Gate:
    """Holds back all requests to one endpoint while it asks for a pause."""

    stop: asyncio.Event
    """Set: whoever waits stops waiting."""
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[asyncio.Event, float], Awaitable[None]] = _wait
    limiter: Limiter | None = None
    """How fast the endpoint may be asked; None: as fast as anybody likes."""
    say: Callable[[str], None] = lambda text: None
    """Tells the user about long waits."""
    _told: float = field(default=-math.inf, init=False)
    _until: float = field(default=0.0, init=False)
    answered: bool = field(default=False, init=False)
    """The endpoint has given a whole reply."""
    _broken_since: float | None = field(default=None, init=False)
    _freed: asyncio.Condition = field(default_factory=asyncio.Condition, init=False)

    def hold(self, seconds: float) -> None:
        """Nobody sends for so long."""
        self._until = max(self._until, self.clock() + seconds)

    def tell(self, error: ModelError, seconds: float, tries: int, most: int) -> None:
        """Says why nothing comes for a while, if that is long."""
        now = self.clock()
        if seconds < TOLD_S or now < self._told + TOLD_EVERY_S:
            return
        self._told = now
        status = f"{error.status}, {status_of(error)}" if error.status is not None else status_of(error)
        why = "as the endpoint asks" if error.retry_after_s is not None else "before asking again"
        self.say(f"no answer ({status}): waiting {seconds:.0f} s {why}, try {tries + 1} of {most} comes next")

    def is_hopeless(self, error: ModelError, delay_s: float, first_s: float) -> bool:
        """True if the endpoint has never answered and, after another `delay_s`, will have broken down for `first_s`."""
        if self.answered:
            return False
        if error.retry_after_s is not None or error.status in _LATER or status_of(error) == "timeout":
            self._broken_since = None
            return False
        now = self.clock()
        self._broken_since = now if self._broken_since is None else self._broken_since
        return now + delay_s - self._broken_since > first_s

    async def pause(self, seconds: float) -> None:
        """Waits, or returns at once when the run is stopped."""
        if seconds > 0 and not self.stop.is_set():
            await self.wait(self.stop, seconds)

    async def passed(self) -> float:
        """Returns when sending is allowed, with the seconds waited."""
        waited = 0.0
        while (left := self._until - self.clock()) > 0 and not self.stop.is_set():
            await self.pause(left)
            waited += left
        return waited

    async def turn(self, n_tokens: int) -> tuple[Ticket | None, float]:
        """Returns when a request of so many tokens may be sent, with the seconds waited. End it by `done`."""
        waited = 0.0
        while not self.stop.is_set():
            waited += await self.passed()
            if self.limiter is None or self.stop.is_set():
                break
            if self.limiter.is_full:
                started = self.clock()
                async with self._freed:
                    await self._freed.wait()
                waited += self.clock() - started
            elif (short := self.limiter.wait_s(n_tokens)) > 0:
                await self.pause(short)
                waited += short
            else:
                return self.limiter.sent(n_tokens), waited
        return None, waited

    async def done(self, ticket: Ticket | None, error: ModelError | None, rates: Mapping[str, float]) -> None:
        """A request has ended, with its error if it had one and what its headers said about rates."""
        if self.limiter is None or ticket is None:
            return
        overloaded = error is not None and (error.status in _OVERLOAD or status_of(error) == "timeout")
        self.limiter.done(ticket, rates, overloaded=overloaded, answered=error is None)
        async with self._freed:
            self._freed.notify_all()


async def ask(model: Model, request: Request, *, policy: Policy, gate: Gate, rng: random.Random) -> Answer:
    """One answer, however many tries it takes.

    Raises:
        ModelUnusable: no request to this model can succeed.
    """
    attempts: list[Attempt] = []
    delay = 0.0
    waste = 0
    n_prompt = request.n_tokens or sum(len(message.content) for message in request.messages) // 4
    while True:
        ticket, waited = await gate.turn(n_prompt + request.max_new_tokens)
        delay += waited
        if gate.stop.is_set():
            await gate.done(ticket, None, {})
            return Answer(response=None, error=None, attempts=tuple(attempts), waste=waste)
        error, rates = None, {}
        try:
            response = await model.generate(request)
            rates = response.raw.get("rates", {})
        except ModelUnusable:
            raise
        except ModelError as caught:
            error = caught
        except Exception as caught:  # noqa: BLE001 - a model of a third party, or out of memory: this sample fails, the run goes on
            error = ModelError(
                f"{type(caught).__name__}: {caught}", transient=isinstance(caught, TimeoutError | ConnectionError)
            )
            error.__cause__ = caught
        finally:
            await gate.done(ticket, error, error.rates if error is not None else rates)
        if error is not None and (limit := _too_small_a_quota(gate, error, n_prompt)) is not None:
            error = PromptTooLarge(
                f"a prompt of {n_prompt:,} tokens is more than the {limit:,.0f} tokens a minute that this endpoint grants, "
                f"so that no waiting helps: raise the quota or test shorter lengths ({error})",
                status=error.status,
            )
        if error is None:
            gate.answered = True
            attempts.append(Attempt(status="ok", delay_s=round(delay, 3)))
            return Answer(response=response, error=None, attempts=tuple(attempts), waste=waste)
        waste += error.status is None or error.status >= 500
        attempts.append(Attempt(status=status_of(error), delay_s=round(delay, 3), error=str(error)[:500]))
        if not error.transient or len(attempts) >= policy.tries:
            return Answer(response=None, error=error, attempts=tuple(attempts), waste=waste)
        delay = policy.delay_s(len(attempts), error, rng)
        if gate.is_hopeless(error, delay, policy.first_s):
            return Answer(response=None, error=error, attempts=tuple(attempts), waste=waste)
        gate.tell(error, delay, len(attempts), policy.tries)
        if error.retry_after_s is not None:
            gate.hold(delay)  # the endpoint speaks for all its requests
            delay = 0.0
        else:
            await gate.pause(delay)


def _too_small_a_quota(gate: Gate, error: ModelError, n_prompt: int) -> float | None:
    """The quota that a refused prompt alone exceeds, if there is one."""
    limit = gate.limiter.tokens_limit if gate.limiter is not None else None
    return limit if error.status == 429 and limit is not None and n_prompt > limit else None


def status_of(error: ModelError) -> str:
    """One word for an attempt that failed."""
    for kind, word in ((ContextOverflow, "overflow"), (PromptTooLarge, "too_large"), (ContentFiltered, "filtered")):
        if isinstance(error, kind):
            return word
    if error.status == 429:
        return "rate_limited"
    if isinstance(error.__cause__, TimeoutError) or error.status in (408, 504):
        return "timeout"
    if error.status is not None:
        return "server_error" if error.status >= 500 else "rejected"
    return "broken_stream" if error.transient else "error"
