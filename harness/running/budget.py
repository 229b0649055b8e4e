"""Money, tokens and time: what one answer costs, and caps that stop before they are passed, requests in flight counted."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from longreach.harness.errors import ConfigError
from longreach.harness.model import Price


def cost_usd(price: Price, *, n_prompt: int, n_cached: int | None, n_output: int) -> float | None:
    """USD of one request; None if a price is unknown. Cached tokens cost the full price if theirs is unknown."""
    if price.input is None or price.output is None:
        return None
    cached = n_cached or 0
    cached_price = price.input if price.cached is None else price.cached
    return (max(n_prompt - cached, 0) * price.input + cached * cached_price + n_output * price.output) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """What goes with a request and is paid for too: a judge's tokens and their USD."""

    tokens: int
    cost: float


def both(first: Extra | None, second: Extra | None) -> Extra | None:
    """Two extras as one."""
    if first is None or second is None:
        return first or second
    return Extra(tokens=first.tokens + second.tokens, cost=first.cost + second.cost)


@dataclass(slots=True, kw_only=True)
class Caps:
    """Limits of one command. What earlier commands spent in the same folder does not count."""

    price: Price
    max_cost: float | None = None
    """USD."""
    max_tokens: int | None = None
    """Prompt plus output."""
    max_time: float | None = None
    """Minutes."""
    clock: Callable[[], float] = time.monotonic
    cost: float = 0.0
    tokens: int = 0
    _reserved_cost: float = field(default=0.0, init=False)
    _reserved_tokens: int = field(default=0, init=False)
    _slowest_s: float = field(default=0.0, init=False)
    """Slowest answer so far, seconds per token of its length."""
    _started: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._started = self.clock()
        if self.max_cost is not None and (self.price.input is None or self.price.output is None):
            raise ConfigError(
                "--max-cost needs prices, and those of this model are not known; add --price-in and --price-out "
                "(USD per million tokens), or cap by --max-tokens"
            )

    @property
    def left_s(self) -> float:
        """Seconds until --max-time, infinite without one."""
        return math.inf if self.max_time is None else self.max_time * 60 - (self.clock() - self._started)

    def admit(self, n_prompt: int, n_output: int, *, extra: "Extra | None" = None) -> str | None:
        """Reserves a request at its dearest, and what goes with it; returns the reason if that could pass a cap."""
        dearest = self._dearest(n_prompt, n_output, extra)
        tokens = n_prompt + n_output + (extra.tokens if extra else 0)
        if self.max_cost is not None and self.cost + self._reserved_cost + dearest > self.max_cost:
            return f"--max-cost {self.max_cost:g} USD"
        if self.max_tokens is not None and self.tokens + self._reserved_tokens + tokens > self.max_tokens:
            return f"--max-tokens {self.max_tokens}"
        if self.left_s <= self._slowest_s * tokens:
            return f"--max-time {self.max_time:g} minutes"
        self._reserved_cost += dearest
        self._reserved_tokens += tokens
        return None

    def _dearest(self, n_prompt: int, n_output: int, extra: "Extra | None") -> float:
        own = cost_usd(self.price, n_prompt=n_prompt, n_cached=0, n_output=n_output) or 0.0
        return own + (extra.cost if extra else 0.0)

    def settle(
        self,
        n_prompt: int,
        n_output: int,
        *,
        cost: float | None,
        tokens: int,
        latency_s: float | None,
        extra: "Extra | None" = None,
    ) -> None:
        """Replaces the reservation made by `admit` (with the same `extra`) with what was really used."""
        self._reserved_cost -= self._dearest(n_prompt, n_output, extra)
        self._reserved_tokens -= n_prompt + n_output + (extra.tokens if extra else 0)
        self.cost += cost or 0.0
        self.tokens += tokens
        if latency_s is not None:
            self._slowest_s = max(self._slowest_s, latency_s / (n_prompt + n_output))
