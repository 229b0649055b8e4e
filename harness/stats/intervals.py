"""Intervals of a mean score, the state of a length, and how many samples a claim needs.

The unit is the context: `n` contexts with scores in [0, 1] that add up to `s` (fractions allowed, since a score in
[0, 1] varies at most as much as a binary one). "95%" is two-sided, so each tail is 0.025. Student t and the bootstrap
are not here on purpose: near the ceiling they miss up to a third of the time.
"""

import functools
import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from longreach.harness.lengths import format_threshold

State = Literal["pass", "fail", "undecided", "not_tested"]
TAIL = 0.025
"""Probability in each tail of a two-sided 95% interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Lower and upper bound of a mean score."""

    low: float
    high: float


def _checked(s: float, n: float) -> float:
    """`s` with the dust of floating-point sums taken off at the two ends, where bounds are exactly 0 or 1."""
    if n <= 0 or not -1e-9 <= s <= n + 1e-9:
        raise ValueError(f"scores that add up to {s!r} over {n!r} contexts have no interval")
    nearest = round(s)
    return float(nearest) if abs(s - nearest) < 1e-9 else s


def wilson(s: float, n: float, tail: float = TAIL) -> Interval:
    """Wilson score interval, the one that is displayed. `s`: sum of scores, `n`: contexts."""
    s = _checked(s, n)
    z = NormalDist().inv_cdf(1 - tail)
    centre = (s + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(max(s * (n - s), 0.0) / n + z * z / 4)
    return Interval(low=0.0 if s == 0 else centre - half, high=1.0 if s == n else centre + half)


def _beta_quantile(a: float, b: float, p: float) -> float:
    from scipy.special import betaincinv

    return float(betaincinv(a, b, p))


def clopper_pearson(s: float, n: float, tail: float = TAIL) -> Interval:
    """Clopper-Pearson bounds with `tail` on each side; conservative for stratified and for fractional scores."""
    s = _checked(s, n)
    low = 0.0 if s == 0 else _beta_quantile(s, n - s + 1, tail)
    high = 1.0 if s == n else _beta_quantile(s + 1, n - s, 1 - tail)
    return Interval(low=low, high=high)


def jeffreys(s: float, n: float, tail: float = TAIL) -> Interval:
    """Jeffreys interval, for comparison only: too optimistic when everything passes."""
    s = _checked(s, n)
    low = 0.0 if s == 0 else _beta_quantile(s + 0.5, n - s + 0.5, tail)
    high = 1.0 if s == n else _beta_quantile(s + 0.5, n - s + 0.5, 1 - tail)
    return Interval(low=low, high=high)


def state_of(s: float, n: float, threshold: float) -> State:
    """`pass` or `fail` only if Wilson and Clopper-Pearson (both two-sided 95%) agree, so that display and claim do."""
    if n <= 0:
        return "not_tested"
    shown, exact = wilson(s, n), clopper_pearson(s, n)
    if min(shown.low, exact.low) > threshold:
        return "pass"
    if max(shown.high, exact.high) < threshold:
        return "fail"
    return "undecided"


@functools.cache
def min_n(threshold: float, failures: int = 0) -> int | None:
    """Fewest samples that show a mean above `threshold` with that many failures; None if no number can."""
    if not 0.0 < threshold < 1.0:
        return None if threshold >= 1.0 else failures + 1
    low, high = failures, 2 * (failures + 1)
    while state_of(high - failures, high, threshold) != "pass":
        low, high = high, 2 * high
        if high > 1 << 24:  # thresholds such as 0.999999: nobody runs that many
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if state_of(middle - failures, middle, threshold) == "pass":
            high = middle
        else:
            low = middle
    return high


# Samples for 90% power by (threshold, true rate), from the study behind the statistics of this project. Power is a
# sawtooth in n, so that some smaller numbers would do as well (173 instead of 174).
_STUDY = {
    (0.95, 0.99): 174,
    (0.95, 0.98): 392,
    (0.90, 0.99): 70,
    (0.90, 0.97): 127,
    (0.90, 0.95): 304,
    (0.90, 0.93): 945,
    (0.70, 0.85): 86,
    (0.70, 0.80): 205,
}


@functools.cache
def power(n: int, threshold: float, rate: float) -> float:
    """Chance that `n` samples show a mean above `threshold` if the true rate is `rate` (binary scores)."""
    from scipy.special import bdtr

    allowed = -1
    while (needed := min_n(threshold, allowed + 1)) is not None and needed <= n:
        allowed += 1
    return 0.0 if allowed < 0 else float(bdtr(allowed, n, 1 - rate))


@functools.cache
def plan_n(threshold: float, rate: float, chance: float = 0.90) -> int | None:
    """Samples to plan for a `chance` of showing a mean above `threshold` if the true rate is `rate`."""
    if chance == 0.90 and (threshold, rate) in _STUDY:
        return _STUDY[threshold, rate]
    if rate <= threshold:
        return None
    from scipy.special import bdtr

    for failures in range(1000):
        n = min_n(threshold, failures)
        if n is None:
            return None
        if bdtr(failures, n, 1 - rate) >= chance:
            return n
    return None


def planning_rate(threshold: float) -> float:
    """A true rate worth planning for: 0.99, for low thresholds half-way to perfect."""
    return 0.99 if 0.90 <= threshold < 0.99 else round((1 + threshold) / 2, 4)


def needed_text(threshold: float) -> str:
    """What would show a mean above `threshold`, as a sentence or two."""
    clean, one_miss = min_n(threshold), min_n(threshold, 1)
    if clean is None:
        return "No number of samples can."
    text = f"Needs {clean}/{clean}, or at most 1 miss in {one_miss}"
    rate = planning_rate(threshold)
    planned = plan_n(threshold, rate)
    return f"{text}; plan {planned} for a 90% chance if the true rate is {rate:g}." if planned else f"{text}."


def cannot_show(length: str, n: int, threshold: float) -> str | None:
    """Why `n` samples at `length` (as text, "64k") cannot show a mean above `threshold`; None if they can.

    >>> cannot_show("64k", 30, 0.95)
    '64k with 30 samples cannot show > 0.95: even 30/30 gives a lower bound of 0.886. Needs 73/73, or at most 1 miss in 110; plan 174 for a 90% chance if the true rate is 0.99.'
    """
    if n > 0 and state_of(n, n, threshold) == "pass":
        return None
    plural = "sample" if n == 1 else "samples"
    if n <= 0:
        return f"{length} with no samples cannot show > {format_threshold(threshold)}. {needed_text(threshold)}"
    bound = wilson(n, n).low
    if bound > threshold:  # 35/35 for 0.90: Clopper-Pearson is the one that binds
        bound = clopper_pearson(n, n).low
    floored = math.floor(bound * 1000) / 1000
    return (
        f"{length} with {n} {plural} cannot show > {format_threshold(threshold)}: even {n}/{n} gives a lower bound of "
        f"{floored:.3f}. {needed_text(threshold)}"
    )
