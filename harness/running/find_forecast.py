"""What a search will cost: the real scan on assumed curves, before anything is sent."""

from collections.abc import Iterator
from dataclasses import replace

from longreach.harness.lengths import format_length
from longreach.harness.model import Price
from longreach.harness.running.budget import cost_usd
from longreach.harness.running.forecast import needle_warnings
from longreach.harness.running.scan_plan import CAP, FindPlan
from longreach.harness.stats.cache_mode import CALIBRATION, TYPICAL_ICC, saving_sentence
from longreach.harness.stats.scan_cost import assumed_curves, expected_cost
from longreach.harness.stats.scans import Hunt

GRID = 500
"""Samples per length of the grid that a search is compared with (RULER's)."""
SCANS = 100
CACHED_PRICES = (0.1, 0.25, 0.5)
"""What cached tokens cost at hosted services, as shares of the full price, where the model's own is unknown."""


def find_forecast(found: FindPlan) -> Iterator[str]:
    """What `longreach find --plan` prints."""
    prepared = found.prepared
    yield f"model {prepared.settings.model}, tokenizer {prepared.tokenizer.name}"
    yield f"lengths {', '.join(map(format_length, prepared.plan.lengths))}"
    for hunt in found.hunts.values():
        yield from _hunt_lines(hunt, found)
    for cell in prepared.plan.infeasible:
        yield f"left out: {cell.task} at {format_length(cell.length)}: {cell.reason}"
    yield from needle_warnings(prepared.plan, prepared.model)
    yield "Tokens: prompt and answer, mean of simulated searches, and the range of the middle 80%."


def _hunt_lines(hunt: Hunt, found: FindPlan) -> Iterator[str]:
    rule = hunt.rule
    grid = GRID * sum(rule.lengths)
    shares = _cached_prices(found.prepared.price) if rule.icc else ()
    yield f"{hunt.capability}: {', '.join(task.label for task in hunt.tasks)}; a grid of {GRID} per length: {grid:,} tokens"
    for name, curve in assumed_curves(rule.lengths, rule.zone.threshold).items():
        cost = expected_cost(rule, curve, scans=SCANS, icc=TYPICAL_ICC if rule.icc else 0.0)
        verdict = max(cost.verdicts, key=lambda length: cost.verdicts[length])
        usually = f"usually {format_length(verdict)}" if verdict else f"usually < {format_length(rule.lengths[0])}"
        paid = cost.tokens * (_paid(rule.size, shares[0]) if shares else 1.0)
        price = cost_usd(found.prepared.price, n_prompt=round(paid), n_cached=0, n_output=0)
        money = f", {price:,.2f} USD for prompts" if price is not None else ""
        yield (
            f"  {name}: {cost.tokens:,.0f} tokens ({cost.low:,} to {cost.high:,}), {sum(cost.samples.values()):,.0f} requests, "
            f"{grid / cost.tokens:.1f} times fewer than the grid, {usually}{money}"
        )
        if shares:
            fresh = expected_cost(replace(rule, icc=0.0, cap=CAP), curve, scans=SCANS).tokens
            worth = [f"{cost.tokens * _paid(rule.size, share) / fresh:.2f} ({share:.0%})" for share in shares]
            yield (
                f"    {cost.tokens / rule.size:,.0f} of them read afresh, the others from the cache; a search with fresh "
                f"haystacks: {fresh:,.0f} tokens; cost relative to it, by the price of a cached token: {', '.join(worth)}"
            )
    if shares:
        yield from (f"  {saving_sentence(share, rule.size)}" for share in shares)
        yield (
            f"  What it costs in power: evidence is divided by {rule.divisor:g} (correlation {rule.icc:g}, more if more is "
            f"measured), so that {rule.divisor:g} times as many answers are needed; {CALIBRATION}."
        )


def _paid(size: int, share: float) -> float:
    """Price of a prompt token, relative to a fresh one, if `size` questions read one context."""
    return (1 + (size - 1) * share) / size


def _cached_prices(price: Price) -> tuple[float, ...]:
    """Prices of a cached token relative to a fresh one: the model's own, none on one's own server, else the usual ones."""
    if not price.input:
        return (0.0,)
    return (price.cached / price.input,) if price.cached is not None else CACHED_PRICES
