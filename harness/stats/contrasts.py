"""Differences of rates: MOVER limits of contrasts over cells; paired changes between two runs.

MOVER keeps its limits finite when every cell passes, where a regression has no finite estimate.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from longreach.harness.stats.intervals import wilson


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One cell of a contrast."""

    weight: float
    s: float
    """Sum of scores."""
    n: float
    """Contexts, at least 1; a fraction of one where several cells share it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A weighted sum of cell means with its 95% limits."""

    value: float
    low: float
    high: float
    n: int
    """Contexts that carry weight."""


def mover(terms: Sequence[Term]) -> Contrast:
    """Limits of sum(weight x mean) by MOVER with Wilson limits per pooled cell.

    Cells of equal weight and equal n are pooled first; weights of zero drop out.
    """
    pools: dict[tuple[float, float], list[Term]] = defaultdict(list)
    for term in terms:
        if abs(term.weight) > 1e-12:
            pools[round(term.weight, 12), term.n].append(term)
    value = below = above = 0.0
    total = 0.0
    for cells in pools.values():
        n = math.fsum(cell.n for cell in cells)
        s = math.fsum(cell.s for cell in cells)
        weight = math.fsum(cell.weight for cell in cells)
        limits, mean = wilson(s, n), s / n
        down, up = mean - limits.low, limits.high - mean
        if weight < 0:
            down, up = up, down
        value += weight * mean
        below += (weight * down) ** 2
        above += (weight * up) ** 2
        total += n
    return Contrast(value=value, low=value - math.sqrt(below), high=value + math.sqrt(above), n=round(total))


def slope_weights(lengths: Sequence[int]) -> dict[int, float]:
    """Weight of each length's mean in the least-squares slope per doubling of the length."""
    x = {length: math.log2(length) for length in lengths}
    centre = math.fsum(x.values()) / len(x)
    spread = math.fsum((value - centre) ** 2 for value in x.values())
    return {length: (value - centre) / spread for length, value in x.items()}


def mcnemar_mid_p(lost: int, won: int) -> float:
    """Two-sided mid-p of McNemar's test; `lost`: right before and wrong now, `won`: the reverse."""
    n = lost + won
    if n == 0:
        return 1.0
    k = min(lost, won)
    mass = [math.comb(n, i) / (1 << n) for i in range(k + 1)]
    return min(1.0, 2 * math.fsum(mass) - mass[-1])


def bonett_price(lost: int, won: int, n: int) -> Contrast:
    """Change of a rate between two runs on the same `n` samples, with adjusted Wald limits (Bonett and Price 2012)."""
    q_lost, q_won = (lost + 1) / (n + 2), (won + 1) / (n + 2)
    value = q_won - q_lost
    half = 1.959963984540054 * math.sqrt((q_lost + q_won - value**2) / (n + 2))
    return Contrast(value=value, low=value - half, high=value + half, n=n)
