"""How fast one endpoint may be asked: requests at once (learnt), and requests and tokens a minute (told by its headers).

Requests at once start at what the user allows, halve when the endpoint is overloaded (429, 503, time-out) and grow by
one for each round of answers: additive increase, multiplicative decrease. Requests that were sent before a halving do
not halve again.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

MINUTE_S = 60.0
MARGIN = 0.01
"""Share of what is wanted that is waited for on top, so that rounding on either side asks for no second wait."""


@dataclass(slots=True)
class Bucket:
    """A quota that fills again steadily. Units are tokens or requests."""

    limit: float
    left: float
    at: float
    """Clock when `left` was true, seconds."""
    per_s: float

    def available(self, now: float) -> float:
        """What could be sent at `now`."""
        return min(self.limit, self.left + (now - self.at) * self.per_s)

    def wait_s(self, amount: float, now: float) -> float:
        """Seconds until `amount` may be sent, or until the quota is full if it is more than that."""
        short = min(amount, self.limit) - self.available(now)
        if short <= 0 or self.per_s <= 0:
            return 0.0
        return (short + MARGIN * amount) / self.per_s

    def take(self, amount: float, now: float) -> None:
        """Counts what is sent at `now`."""
        self.left, self.at = self.available(now) - amount, now


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One request in flight, as `Limiter.sent` gives it."""

    epoch: int
    sent: Mapping[str, float]
    """Everything sent until then by kind, this request included."""


@dataclass(slots=True, kw_only=True)
class Limiter:
    """Limits of one endpoint. Rates arrive as `tokens_limit`, `tokens_left`, `tokens_reset_s` and the same for requests."""

    most: int
    """Requests at once that the user allows."""
    clock: Callable[[], float] = time.monotonic
    in_flight: int = field(default=0, init=False)
    allowed: float = field(default=0.0, init=False)
    """Requests at once at present."""
    _epoch: int = field(default=0, init=False)
    _buckets: dict[str, Bucket] = field(default_factory=dict, init=False)
    _sent: dict[str, float] = field(default_factory=lambda: {"tokens": 0.0, "requests": 0.0}, init=False)

    def __post_init__(self) -> None:
        self.allowed = float(self.most)

    @property
    def is_full(self) -> bool:
        """True while one more request would be too many."""
        return self.in_flight >= max(int(self.allowed), 1)

    @property
    def tokens_limit(self) -> float | None:
        """Tokens a minute that the endpoint grants, where it says so."""
        bucket = self._buckets.get("tokens")
        return bucket.limit if bucket else None

    def wait_s(self, n_tokens: int) -> float:
        """Seconds until the rates allow a request of so many tokens."""
        now = self.clock()
        amounts = {"tokens": float(n_tokens), "requests": 1.0}
        return max((bucket.wait_s(amounts[kind], now) for kind, bucket in self._buckets.items()), default=0.0)

    def sent(self, n_tokens: int) -> Ticket:
        """Counts a request that is being sent; give the ticket back to `done`."""
        now = self.clock()
        self.in_flight += 1
        for kind, amount in (("tokens", float(n_tokens)), ("requests", 1.0)):
            self._sent[kind] += amount
            if kind in self._buckets:
                self._buckets[kind].take(amount, now)
        return Ticket(epoch=self._epoch, sent=dict(self._sent))

    def done(self, ticket: Ticket, rates: Mapping[str, float], *, overloaded: bool, answered: bool) -> None:
        """A request has ended; `rates` is what its headers said."""
        self.in_flight -= 1
        for kind in ("tokens", "requests"):
            self._learn(kind, ticket, rates)
        if overloaded and ticket.epoch == self._epoch:
            self.allowed = max(self.allowed / 2, 1.0)
            self._epoch += 1
        elif answered:
            self.allowed = min(self.allowed + 1 / self.allowed, float(self.most))

    def _learn(self, kind: str, ticket: Ticket, rates: Mapping[str, float]) -> None:
        """Takes over what the endpoint says is left, less what was sent since that request."""
        limit, left = rates.get(f"{kind}_limit"), rates.get(f"{kind}_left")
        if limit is None or left is None or limit <= 0:
            return
        reset_s = rates.get(f"{kind}_reset_s") or 0.0
        used = limit - left
        per_s = used / reset_s if reset_s > 0 and used > 0 else limit / MINUTE_S
        since = self._sent[kind] - ticket.sent[kind]
        self._buckets[kind] = Bucket(limit, left - since, self.clock(), per_s)
