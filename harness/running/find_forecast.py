"""What a search will cost: the real scan on assumed curves, before anything is sent."""

from collections.abc import Iterator

from longreach.harness.lengths import format_length
from longreach.harness.running.budget import cost_usd
from longreach.harness.running.scan_plan import FindPlan
from longreach.harness.stats.scan_cost import assumed_curves, expected_cost
from longreach.harness.stats.scans import Hunt

GRID = 500
"""Samples per length of the grid that a search is compared with (RULER's)."""
SCANS = 100


def find_forecast(found: FindPlan) -> Iterator[str]:
    """What `longreach find --plan` prints."""
    prepared = found.prepared
    yield f"model {prepared.settings.model}, tokenizer {prepared.tokenizer.name}"
    yield f"lengths {', '.join(map(format_length, prepared.plan.lengths))}"
    for hunt in found.hunts.values():
        yield from _hunt_lines(hunt, found)
    for cell in prepared.plan.infeasible:
        yield f"left out: {cell.task} at {format_length(cell.length)}: {cell.reason}"
    yield "Tokens: prompt and answer, mean of simulated searches, and the range of the middle 80%."


def _hunt_lines(hunt: Hunt, found: FindPlan) -> Iterator[str]:
    rule = hunt.rule
    grid = GRID * sum(rule.lengths)
    yield f"{hunt.capability}: {', '.join(task.label for task in hunt.tasks)}; a grid of {GRID} per length: {grid:,} tokens"
    for name, curve in assumed_curves(rule.lengths, rule.zone.threshold).items():
        cost = expected_cost(rule, curve, scans=SCANS)
        verdict = max(cost.verdicts, key=lambda length: cost.verdicts[length])
        usually = f"usually {format_length(verdict)}" if verdict else f"usually < {format_length(rule.lengths[0])}"
        price = cost_usd(found.prepared.price, n_prompt=round(cost.tokens), n_cached=0, n_output=0)
        money = f", {price:,.2f} USD for prompts" if price is not None else ""
        yield (
            f"  {name}: {cost.tokens:,.0f} tokens ({cost.low:,} to {cost.high:,}), {sum(cost.samples.values()):,.0f} requests, "
            f"{grid / cost.tokens:.1f} times fewer than the grid, {usually}{money}"
        )
