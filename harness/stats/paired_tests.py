"""Tests on differences between two runs of the same samples, corrections for many tests, and what can be detected."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from longreach.harness.stats.contrasts import bonett_price, mcnemar_mid_p

FLIPS = 10_000
_FLIP_SEED = 20_100  # any number; fixed, so that a comparison says the same twice
_POWER_80 = NormalDist().inv_cdf(0.80)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Change of the mean score between two runs on the same samples; new minus base."""

    n: int
    """Pairs."""
    lost: int
    """Pairs whose score fell."""
    won: int
    """Pairs whose score rose."""
    base: float
    """Mean score."""
    new: float
    low: float
    """95% limits of the change."""
    high: float
    p: float
    """Two-sided."""
    method: str
    """McNemar mid-p (all scores 0 or 1) or sign-flip permutation."""

    @property
    def value(self) -> float:
        return self.new - self.base

    @property
    def churn(self) -> float:
        """Share of pairs whose score changed."""
        return (self.lost + self.won) / self.n


def change_of(base: Sequence[float], new: Sequence[float]) -> Change:
    """The change between paired scores, at least one pair.

    For scores of 0 and 1: McNemar's mid-p and the limits of Bonett and Price. For fractions: a permutation test, and
    the same limits with (sum of differences, sum of squares) in the place of the counts; with 0 and 1 they are equal.
    """
    differences = [y - x for x, y in zip(base, new, strict=True)]
    n = len(differences)
    lost, won = sum(d < 0 for d in differences), sum(d > 0 for d in differences)
    if {*base, *new} <= {0.0, 1.0}:
        limits = bonett_price(lost, won, n)
        low, high, p, method = limits.low, limits.high, mcnemar_mid_p(lost, won), "McNemar mid-p"
    else:
        centre = math.fsum(differences) / (n + 2)
        spread = (math.fsum(d * d for d in differences) + 2) / (n + 2) - centre**2
        half = NormalDist().inv_cdf(0.975) * math.sqrt(spread / (n + 2))
        low, high, p, method = centre - half, centre + half, sign_flip(differences), "sign-flip permutation"
    return Change(
        n=n,
        lost=lost,
        won=won,
        base=math.fsum(base) / n,
        new=math.fsum(new) / n,
        low=max(low, -1.0),
        high=min(high, 1.0),
        p=p,
        method=method,
    )


def sign_flip(differences: Sequence[float], flips: int = FLIPS) -> float:
    """Two-sided p of the mean difference: how often random signs give a sum at least as far from zero."""
    import numpy as np

    moved = np.array([d for d in differences if d], dtype=np.float64)
    if not len(moved):
        return 1.0
    rng = np.random.default_rng(_FLIP_SEED)
    observed, hits = abs(float(moved.sum())) - 1e-9, 0
    chunk = max(1, 2_000_000 // len(moved))
    for start in range(0, flips, chunk):
        signs = rng.integers(0, 2, size=(min(chunk, flips - start), len(moved)), dtype=np.int8)
        hits += int((np.abs((2.0 * signs - 1.0) @ moved) >= observed).sum())
    return (1 + hits) / (1 + flips)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values after Holm's step-down correction: each below alpha is an alarm, all alarms together at level alpha."""
    return _stepwise(p_values, range(len(p_values)), lambda rank, n: n - rank, max)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """p-values after the step-up correction for the share of false discoveries."""
    return _stepwise(p_values, reversed(range(len(p_values))), lambda rank, n: n / (rank + 1), min)


def _stepwise(
    p_values: Sequence[float],
    ranks: Iterable[int],
    factor: Callable[[int, int], float],
    keep: Callable[[float, float], float],
) -> list[float]:
    n = len(p_values)
    order = sorted(range(n), key=lambda i: p_values[i])
    adjusted = [0.0] * n
    carried: float | None = None
    for rank in ranks:
        p = min(1.0, p_values[order[rank]] * factor(rank, n))
        carried = p if carried is None else keep(carried, p)
        adjusted[order[rank]] = carried
    return adjusted


def minimal_drop(n: int, churn: float, tests: int = 1) -> float | None:
    """Smallest drop that `n` pairs find with 80% power at a two-sided 5%; None if not even a total loss is found.

    Args:
        churn: share of pairs that change anyway, half of them for the better.
        tests: how many are corrected for (the first step of Holm).
    """
    z = NormalDist().inv_cdf(1 - 0.025 / tests)

    def needed(d: float) -> float:
        psi = churn + d
        return (z * math.sqrt(psi) + _POWER_80 * math.sqrt(max(psi - d * d, 0.0))) ** 2 / d**2

    low, high = 1e-6, 1.0
    if needed(high) > n:
        return None
    for _ in range(60):
        middle = (low + high) / 2
        if needed(middle) > n:
            low = middle
        else:
            high = middle
    return high
