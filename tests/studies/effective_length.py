"""Coverage and cost of the effective length over 16 families of true curves: `python tests/studies/effective_length.py`.

Coins instead of a model; everything else is the code that runs use: the adaptive scan with its report, and the bracket
of a fixed grid. Per family: wrong verdicts of the scan, coverage of the strict bracket after certifying and of the
bracket of a grid of 100 per length, and prompt tokens against grids of 500 and 100 per length. Minutes on one core.

A verdict L is not wrong if every length up to L has a mean above the zone's low end, and the next one (if there is one)
has a mean below its high end.
"""

import argparse
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from longreach.harness.record import OUTCOMES
from longreach.harness.stats.ascend import Rule, Scan
from longreach.harness.stats.cells import Cell, TaskFacts
from longreach.harness.stats.curves import make_curve
from longreach.harness.stats.evalues import ZONES
from longreach.harness.stats.scan_report import read_scan
from longreach.harness.stats.verdict import effective

LENGTHS = tuple(1024 << i for i in range(8))
ZONE = ZONES["retrieval"]
STRATA = 5
RULE = Rule(lengths=LENGTHS, zone=ZONE, size=STRATA)
Family = Callable[[int, int], float]
"""(index of the length, depth stratum) -> chance of a right answer."""


def _listed(*rates: float) -> Family:
    return lambda x, stratum: rates[x]


def _logistic(middle: float, width: float, lapse: float) -> Family:
    return lambda x, stratum: (1 - lapse) / (1 + math.exp((x - middle) / width))


def _lost_in_the_middle(x: int, stratum: int) -> float:
    return max(0.05, 0.995 - 0.012 * x * x * (0.0, 0.6, 1.0, 0.6, 0.0)[stratum])


FAMILIES: dict[str, Family] = {
    "steep": _logistic(5.6, 0.35, 0.01),
    "shallow": _logistic(7, 0.9, 0.01),
    "lapse5": _logistic(5.6, 0.5, 0.05),
    "step_cliff": lambda x, stratum: 0.99 if x <= 5 else 0.15,
    "linear_decay": lambda x, stratum: 0.99 - 0.02 * x,
    "litm_dip": _lost_in_the_middle,
    "bump": _listed(0.99, 0.985, 0.98, 0.80, 0.96, 0.95, 0.5, 0.2),
    "bump_4k": _listed(0.99, 0.985, 0.80, 0.97, 0.96, 0.95, 0.5, 0.2),
    "mild_bump": _listed(0.99, 0.985, 0.98, 0.86, 0.96, 0.95, 0.5, 0.2),
    "plateau": lambda x, stratum: 0.93 if x <= 6 else 0.6,
    "all_pass": lambda x, stratum: 0.99,
    "all_perfect": lambda x, stratum: 1.0,
    "all_fail": lambda x, stratum: 0.7 - 0.05 * x,
    "zone_edge_low": lambda x, stratum: 0.99 if x <= 4 else 0.85,
    "zone_edge_high": lambda x, stratum: 0.95,
    "early_fail": lambda x, stratum: (0.985, 0.985, 0.75)[x] if x <= 2 else 0.4,
}


def means(family: Family) -> list[float]:
    """True mean over the strata at each length."""
    return [math.fsum(family(x, stratum) for stratum in range(STRATA)) / STRATA for x in range(len(LENGTHS))]


def true_length(p: list[float]) -> int:
    """Number of lengths in the true contiguous run: 0 = below the grid."""
    return next((i for i, mean in enumerate(p) if mean < ZONE.threshold - 1e-12), len(p))


def is_wrong(verdict: int, p: list[float]) -> bool:
    """Whether a verdict (number of lengths that pass) is wrong."""
    covered = all(mean > ZONE.low + 1e-12 for mean in p[:verdict])
    stopped = verdict == len(p) or p[verdict] < ZONE.high - 1e-12
    return not (covered and stopped)


def scan(rule: Rule, family: Family, rng: random.Random, ahead: int) -> Scan:
    """One scan with `ahead` blocks in flight, which come back in random order."""
    state, flying = Scan(rule), []
    while not state.finished:
        flying += state.wanted(flying, ahead)
        block = flying.pop(rng.randrange(len(flying)))
        x = LENGTHS.index(block.length)
        state.put(*block, [float(rng.random() < family(x, stratum)) for stratum in range(STRATA)])
    return state


def rank(length: int | None) -> int:
    """Number of lengths up to `length`."""
    return 0 if length is None else LENGTHS.index(length) + 1


def grid_bracket(family: Family, rng: random.Random, per_length: int) -> tuple[int, int]:
    """Bracket (numbers of lengths) of one fixed grid."""
    n = per_length // STRATA
    cells = []
    for x, length in enumerate(LENGTHS):
        for stratum in range(STRATA):
            s = float(sum(rng.random() < family(x, stratum) for _ in range(n)))
            outcomes = dict.fromkeys(OUTCOMES, 0) | {"scored": n}
            cells.append(
                Cell(
                    task="t",
                    length=length,
                    depth=stratum / STRATA,
                    planned=n,
                    n=n,
                    s=s,
                    published=None,
                    outcomes=outcomes,
                    threshold=ZONE.threshold,
                )
            )
    facts = TaskFacts(
        label="t",
        capability="retrieval",
        family="needle",
        chance=0.0,
        version=1,
        has_depth=True,
        source="",
        license="",
        params={},
    )
    found = effective(make_curve("t", "task", ("t",), cells, {"t": facts}))
    high = 0 if found.censored == "below grid" and found.state == "measured" else rank(found.high)
    return rank(found.low), high


def study(name: str, scans: int, seed: int) -> dict[str, float]:
    """Figures of one family."""
    family = FAMILIES[name]
    p, rng = means(family), random.Random(f"{seed}/{name}")
    truth = true_length(p)
    wrong = tokens = wasted = 0.0
    for number in range(scans):
        report = read_scan(scan(RULE, family, rng, 1 + number % 3))
        wrong += is_wrong(rank(report.value), p)
        used = sum(item.length * item.n for item in report.lengths)
        tokens += used
        wasted += report.tokens - used
    few = max(scans // 4, 1)
    covered = width = certified = 0.0
    for _ in range(few):
        report = read_scan(scan(replace(RULE, certify=True), family, rng, 1))
        refuted_first = bool(report.lengths) and report.lengths[0].refuted
        low, high = rank(report.low), 0 if refuted_first else rank(report.high)
        covered += low <= truth <= high
        width += high - low
        certified += report.tokens
    grids = [grid_bracket(family, rng, 100) for _ in range(few)]
    return {
        "wrong": wrong / scans,
        "Mtok": tokens / scans / 1e6,
        "wasted": wasted / max(tokens, 1.0),
        "cover": covered / few,
        "width": width / few,
        "certified Mtok": certified / few / 1e6,
        "grid cover": sum(low <= truth <= high for low, high in grids) / few,
        "grid width": sum(high - low for low, high in grids) / few,
    }


def main() -> Iterator[str]:
    """Lines of the table, then what must hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scans", type=int, default=2000, help="scans per family (default 2000)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    grid = {n: n * sum(LENGTHS) / 1e6 for n in (500, 100)}
    yield f"{given.scans} scans per family; grids of 500 and 100 per length: {grid[500]:.1f} and {grid[100]:.1f} Mtok"
    yield f"{'family':<15}{'wrong':>7}{'Mtok':>7}{'500/x':>7}{'100/x':>7}{'wasted':>8}{'cover':>7}{'width':>7}{'cert':>7}{'g.cov':>7}{'g.wid':>7}"
    rows, start = [], time.perf_counter()
    for name in FAMILIES:
        row = study(name, given.scans, given.seed)
        rows.append(row)
        cost = row["Mtok"]
        yield (
            f"{name:<15}{row['wrong']:>7.2%}{cost:>7.2f}{grid[500] / cost:>7.1f}{grid[100] / cost:>7.1f}{row['wasted']:>8.1%}"
            f"{row['cover']:>7.3f}{row['width']:>7.2f}{row['certified Mtok']:>7.2f}{row['grid cover']:>7.3f}{row['grid width']:>7.2f}"
        )
    mean = math.fsum(row["Mtok"] for row in rows) / len(rows)
    certified = math.fsum(row["certified Mtok"] for row in rows) / len(rows)
    checks = {
        "wrong verdicts <= 5% in every family": max(row["wrong"] for row in rows) <= 0.05,
        "strict bracket covers >= 95% in every family": min(row["cover"] for row in rows) >= 0.95,
        "bracket of the grid covers >= 95% in every family": min(row["grid cover"] for row in rows) >= 0.95,
        "15 x fewer tokens than 500 per length, on average": grid[500] / mean >= 15,
        "3 x fewer tokens than 100 per length, on average": grid[100] / mean >= 3,
    }
    yield (
        f"mean {mean:.2f} Mtok: {grid[500] / mean:.1f} x fewer than 500 per length, {grid[100] / mean:.1f} x fewer than 100; "
        f"certified {certified:.2f} Mtok; {time.perf_counter() - start:.0f} s"
    )
    yield from (f"{'holds' if good else 'DOES NOT HOLD'}: {what}" for what, good in checks.items())


if __name__ == "__main__":
    for line in main():
        print(line, flush=True)
