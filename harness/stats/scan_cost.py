"""Tokens that a scan will spend if the truth is an assumed curve: the real scan, on coins instead of a model."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from longreach.harness.stats.ascend import Rule, Scan
from longreach.harness.stats.scans import tempered

Curve = Callable[[int], float]
"""Length (tokens) -> chance of a right answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanCost:
    """Cost of a scan under one assumed curve."""

    tokens: float
    """Mean, prompt and answer: length x samples."""
    low: int
    """10% of the scans cost less."""
    high: int
    """10% cost more."""
    samples: Mapping[int, float]
    """Mean samples by length."""
    verdicts: Mapping[int | None, int]
    """How often each length was the verdict; None: below the first."""


def run_scan(rule: Rule, curve: Curve, rng: random.Random, icc: float = 0.0) -> Scan:
    """One whole scan of a model that answers rightly with the chance that `curve` gives.

    Args:
        icc: true correlation of the answers of a block, which share their context then (beta-binomial).
    """
    scan = Scan(rule)
    while wanted := scan.wanted():
        chance = curve(wanted[0].length)
        for block in wanted:
            rate = shared_rate(chance, icc, rng)
            scan.put(*block, [float(rng.random() < rate) for _ in range(rule.size)])
        scan = tempered(scan)
    return scan


def shared_rate(chance: float, icc: float, rng: random.Random) -> float:
    """Chance of a right answer on one context: beta-distributed, so that answers that share it correlate at `icc`."""
    if icc <= 0.0 or not 0.0 < chance < 1.0:
        return chance
    strength = 1 / icc - 1
    return rng.betavariate(chance * strength, (1 - chance) * strength)


def expected_cost(rule: Rule, curve: Curve, *, seed: int = 0, scans: int = 200, icc: float = 0.0) -> ScanCost:
    """Mean and spread of the tokens that `scans` simulated scans spend."""
    rng = random.Random(seed)
    spent: list[int] = []
    samples: Counter[int] = Counter()
    verdicts: Counter[int | None] = Counter()
    for _ in range(scans):
        streams = run_scan(rule, curve, rng, icc).tested()
        spent.append(sum(stream.length * stream.n for stream in streams))
        for stream in streams:
            samples[stream.length] += stream.n
        value = None
        for stream in streams:
            if not stream.passed:
                break
            value = stream.length
        verdicts[value] += 1
    spent.sort()
    return ScanCost(
        tokens=sum(spent) / scans,
        low=spent[scans // 10],
        high=spent[scans - 1 - scans // 10],
        samples={length: samples[length] / scans for length in sorted(samples)},
        verdicts=dict(verdicts),
    )


def assumed_curves(lengths: tuple[int, ...], threshold: float) -> dict[str, Curve]:
    """Curves that a plan is priced for, by what they assume."""
    good, poor = (1 + threshold) / 2 + 0.4 * (1 - threshold), 0.2
    half = lengths[(len(lengths) - 1) // 2]

    def everything(length: int) -> float:
        return good

    def cliff(length: int) -> float:
        return good if length <= half else poor

    def decline(length: int) -> float:
        rank = sum(other <= length for other in lengths) - 1
        return good - (good - poor) * rank / max(len(lengths) - 1, 1) * 0.5

    return {
        f"every length passes ({good:.2f})": everything,
        f"cliff after the middle length ({good:.2f}, then {poor:.2f})": cliff,
        f"steady decline ({good:.2f} to {decline(lengths[-1]):.2f})": decline,
    }
