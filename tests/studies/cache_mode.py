"""Prefix-cache mode: what correlated answers do to verdicts, and what the cache saves: `python tests/studies/cache_mode.py`.

Coins that correlate within a context, instead of a model; everything else is the code that `find --cache-mode` uses: the
tempered scan, the correlation measured at its end, the second look where that is larger. First the share of searches in
which a length at the low end of the zone passes, beside the table of the study that chose the design; then, over the 16
families of `effective_length.py`, wrong verdicts and cost, where prompt tokens from the cache are free or cost a tenth.
The wrong verdicts of all families together must stay within 5% up to the correlation that is assumed. Minutes.
"""

import argparse
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from effective_length import FAMILIES, LENGTHS, STRATA, ZONE, is_wrong, means, rank

from longreach.harness.running.scan_plan import CAP
from longreach.harness.stats.ascend import Rule
from longreach.harness.stats.cache_mode import ASSUMED_ICC
from longreach.harness.stats.evalues import tempering
from longreach.harness.stats.scan_cost import run_scan
from longreach.harness.stats.scan_report import read_scan

TABLE = {0.05: 0.1, 0.1: 0.4, 0.2: 2.0, 0.4: 6.2}
"""True correlation -> % of searches in which p = 0.85 passes on evidence, as the design study had it."""
FRESH = Rule(lengths=LENGTHS, zone=ZONE, size=STRATA, cap=CAP)
RULE = replace(FRESH, icc=ASSUMED_ICC, cap=round(CAP * tempering(ASSUMED_ICC, STRATA)))


def false_pass(icc: float, scans: int, rng: random.Random) -> tuple[float, float]:
    """Shares of scans that pass a mean at the low end of the zone: on evidence, and counting those cut off at the cap."""
    surely = counted = 0
    for _ in range(scans):
        first = run_scan(RULE, lambda length: ZONE.low if length == LENGTHS[0] else 0.0, rng, icc).streams[LENGTHS[0]]
        surely += first.step == "pass"
        counted += first.passed
    return surely / scans, counted / scans


def rates(p: list[float]) -> Callable[[int], float]:
    """The chance at each length."""
    return lambda length: p[LENGTHS.index(length)]


def family(p: list[float], rule: Rule, icc: float, scans: int, rng: random.Random) -> tuple[float, float]:
    """Share of wrong verdicts, and mean tokens."""
    wrong = tokens = 0
    for _ in range(scans):
        report = read_scan(run_scan(rule, rates(p), rng, icc))
        wrong += is_wrong(rank(report.value), p)
        tokens += report.tokens
    return wrong / scans, tokens / scans


def main() -> Iterator[str]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--scans", type=int, default=500, help="scans per family (default 500; 4 x as many for the table)"
    )
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng, start, checks = random.Random(given.seed), time.perf_counter(), {}
    for icc, expected in TABLE.items():
        surely, counted = false_pass(icc, 4 * given.scans, rng)
        yield f"correlation {icc:<5} p = {ZONE.low}: passes in {surely:.2%} (study {expected}%), {counted:.2%} with those decided at the cap"
        if icc <= ASSUMED_ICC:
            checks[f"a length at the low end of the zone passes in at most 2.5% + noise at correlation {icc}"] = (
                surely <= 0.025 + 2 * math.sqrt(0.025 / (4 * given.scans))
            )
    curves = {name: means(each) for name, each in FAMILIES.items()}
    fresh = {name: family(p, FRESH, 0.0, given.scans, rng)[1] for name, p in curves.items()}
    base = math.fsum(fresh.values()) / len(fresh)
    yield f"fresh haystacks: {base / 1e6:.2f} Mtok a search on average"
    for icc in (0.05, 0.1, 0.2):
        found = {name: family(p, RULE, icc, given.scans, rng) for name, p in curves.items()}
        worst = max(found, key=lambda name: found[name][0])
        mean = math.fsum(tokens for _, tokens in found.values()) / len(found)
        free, tenth = mean / STRATA, mean * (1 + (STRATA - 1) * 0.1) / STRATA
        yield (
            f"correlation {icc:<5} worst family {worst}: {found[worst][0]:.2%} wrong; {free / 1e6:.2f} Mtok read afresh "
            f"({base / free:.1f} x less), {tenth / 1e6:.2f} with cached tokens at a tenth ({base / tenth:.1f} x less)"
        )
        checks[f"wrong verdicts <= 5% in every family at correlation {icc}"] = found[worst][0] <= 0.05
    yield f"{time.perf_counter() - start:.0f} s"
    yield from (f"{'holds' if good else 'DOES NOT HOLD'}: {what}" for what, good in checks.items())


if __name__ == "__main__":
    for line in main():
        print(line, flush=True)
