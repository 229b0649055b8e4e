"""E-values of a mean score: evidence that may be looked at after every block, at any stop.

Each factor has mean at most 1 under its null, for fractional scores too, so that by Ville's inequality the chance of
ever reaching 1/alpha is at most alpha. Evidence is a function of how often each score occurred: the order of samples
does not matter. Natural logs throughout.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from longreach.harness.stats.intervals import Interval, clopper_pearson

Counts = Mapping[float, int]
"""Score in [0, 1] -> how often it occurred."""
NODES = 100  # points of a strict mixture


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """Scores this near to the threshold are neither a wrong pass nor a wrong fail."""

    threshold: float
    delta: float
    """Half the width."""

    def __post_init__(self) -> None:
        if not 0.0 < self.low < self.high < 1.0:
            raise ValueError(
                f"the zone {self.threshold:g} +- {self.delta:g} must lie strictly between 0 and 1; take a smaller delta"
            )

    @property
    def low(self) -> float:
        """A mean at or below it must not pass."""
        return self.threshold - self.delta

    @property
    def high(self) -> float:
        """A mean at or above it must not fail."""
        return self.threshold + self.delta


ZONES: Mapping[str, Zone] = {
    "retrieval": Zone(threshold=0.90, delta=0.05),
    "reasoning": Zone(threshold=0.70, delta=0.10),
}
"""Default zone by capability."""


RELATIVE_LEVEL = 0.02
"""alpha and beta of a scan against a relative threshold: the other half percent of each pays for the base."""


def relative_zone(s: float, n: int, *, share: float = 0.85, delta: float = 0.05) -> Zone | None:
    """Zone around `share` x the base score, which is known only from `n` short samples with sum of scores `s`.

    Its ends are moved inwards by the Clopper-Pearson limits of the base (0.005 on each side). None if less than 0.04
    is left between them: take more base samples, 1,600 as a rule (they are short and cheap).
    """
    limits = clopper_pearson(s, n, 0.005)
    low, high = share * limits.high - delta, share * limits.low + delta
    return Zone(threshold=(low + high) / 2, delta=(high - low) / 2) if high - low >= 0.04 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Log e-values of one length."""

    up: float
    """Against a mean at or below the low end of the zone (strict: at or below the threshold)."""
    dn: float
    """Against a mean at or above the high end of the zone (strict: at or above the threshold)."""


def count(scores: Iterable[float]) -> Counter[float]:
    """How often each score occurs; the dust of floating-point sums is rounded off."""
    return Counter(round(float(score), 9) for score in scores)


def tempering(icc: float, queries: int) -> float:
    """What a log e-value is divided by if `queries` scores share one context with intra-class correlation `icc`."""
    return 1.0 + (queries - 1) * icc


@lru_cache(maxsize=4096)
def _zone_steps(zone: Zone, score: float) -> tuple[float, float, float]:
    p0, p1 = zone.low, zone.high
    up = math.log1p((p1 - p0) / (p0 * (1 - p0)) * (score - p0))
    low, lower = (math.log1p((p1 - t) / (p1 * (1 - p1)) * (p1 - score)) for t in (p0, 0.6 * p0))
    return up, low, lower


def zone_evidence(counts: Counts, zone: Zone, divisor: float = 1.0) -> Evidence:
    """Evidence against both ends of the zone.

    Args:
        divisor: tempering for scores that share a context (`tempering`); 1 for independent samples.
    """
    up = near = far = 0.0
    for score in sorted(counts):
        steps, n = _zone_steps(zone, score), counts[score]
        up += n * steps[0]
        near += n * steps[1]
        far += n * steps[2]
    near, far = near / divisor, far / divisor
    top = max(near, far)
    return Evidence(up=up / divisor, dn=top + math.log((math.exp(near - top) + math.exp(far - top)) / 2))


@lru_cache(maxsize=8192)
def _strict_steps(threshold: float, score: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    share = (np.arange(NODES) + 0.5) / NODES
    scale = (score - threshold) / (threshold * (1 - threshold))
    return np.log1p(share * (1 - threshold) * scale), np.log1p((share - 1) * threshold * scale)


def _log_mean_exp(values: NDArray[np.float64]) -> float:
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).mean()))


def strict_evidence(counts: Counts, threshold: float, divisor: float = 1.0) -> Evidence:
    """Evidence against the threshold itself: mixtures over 100 alternatives above and 100 below it."""
    up, dn = np.zeros(NODES), np.zeros(NODES)
    for score in sorted(counts):
        above, below = _strict_steps(threshold, score)
        up += counts[score] * above
        dn += counts[score] * below
    return Evidence(up=_log_mean_exp(up / divisor), dn=_log_mean_exp(dn / divisor))


def confidence_sequence(counts: Counts, tail: float = 0.025, divisor: float = 1.0) -> Interval:
    """Bounds of the mean that hold at every stop at once, each with error `tail`: the thresholds that the strict
    mixtures reject."""
    if not counts or min(counts) < 0.0 or max(counts) > 1.0:
        raise ValueError("a confidence sequence needs at least one score, and scores lie in [0, 1]")
    needed, mean = math.log(1 / tail), math.fsum(x * n for x, n in counts.items()) / sum(counts.values())
    low, high = 0.0, 1.0
    if mean > 0.0:
        low = _edge(lambda p: strict_evidence(counts, p, divisor).up >= needed, mean)
    if mean < 1.0:
        high = 1 - _edge(lambda q: strict_evidence(counts, 1 - q, divisor).dn >= needed, 1 - mean)
    return Interval(low=low, high=high)


def _edge(rejected: Callable[[float], bool], high: float) -> float:
    """Largest rejected value between 0 and `high`, by bisection: what lies far below the data is rejected."""
    low = 0.0
    for _ in range(50):
        middle = (low + high) / 2
        if rejected(middle):
            low = middle
        else:
            high = middle
    return low
