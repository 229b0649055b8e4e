"""Costs and caps."""

import pytest

from longreach.harness.errors import ConfigError
from longreach.harness.model import Price
from longreach.harness.running.budget import Caps, cost_usd

PRICE = Price(input=2.0, cached=0.5, output=8.0)


def test_cached_tokens_cost_their_own_price() -> None:
    assert cost_usd(PRICE, n_prompt=1_000_000, n_cached=400_000, n_output=100_000) == pytest.approx(1.2 + 0.2 + 0.8)


def test_an_unknown_cached_price_is_the_full_one() -> None:
    assert cost_usd(Price(input=2.0, output=8.0), n_prompt=1_000_000, n_cached=400_000, n_output=0) == 2.0


def test_an_unknown_price_is_unknown_and_not_zero() -> None:
    assert cost_usd(Price(output=8.0), n_prompt=10, n_cached=0, n_output=1) is None


def test_a_cost_cap_without_prices_is_refused() -> None:
    with pytest.raises(ConfigError, match="--price-in"):
        Caps(price=Price(), max_cost=5.0)


def test_requests_in_flight_count_at_their_dearest() -> None:
    caps = Caps(price=PRICE, max_cost=0.005)
    assert caps.admit(1000, 100) is None  # 0.0028
    assert caps.admit(1000, 100) == "--max-cost 0.005 USD"
    caps.settle(1000, 100, cost=0.001, tokens=1010, latency_s=1.0)
    assert caps.admit(1000, 100) is None


def test_the_token_cap_is_never_passed() -> None:
    caps = Caps(price=Price(), max_tokens=2500)
    assert [caps.admit(1000, 100) for _ in range(3)] == [None, None, "--max-tokens 2500"]


def test_no_request_is_sent_that_would_end_after_the_deadline() -> None:
    now = [0.0]
    caps = Caps(price=Price(), max_time=1.0, clock=lambda: now[0])
    assert caps.admit(900, 100) is None
    caps.settle(900, 100, cost=None, tokens=1000, latency_s=20.0)  # 20 s for 1000 tokens
    now[0] = 35.0
    assert caps.admit(900, 100) is None
    now[0] = 45.0
    assert caps.admit(900, 100) == "--max-time 1 minutes"
