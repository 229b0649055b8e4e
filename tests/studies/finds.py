"""Whole searches over 16 families of true curves: `python tests/studies/finds.py [--finds 20]`, about 20 minutes.

Nothing is left out but the drawing of cards: each search goes from options through plan, prompts, scheduler, simulated
model, scoring and store into a run folder, and its verdict is read from that folder as a card reads it. The families are
those of `effective_length.py`, at lengths a quarter as long; a dip in the middle that grows with the length cannot be
written as a profile and stands here with its means. A verdict is wrong by the rule of that study.
"""

import argparse
import io
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from effective_length import FAMILIES, is_wrong, means

from longreach.harness.running.conduct import drive
from longreach.harness.running.find import Finder, ScanProgress
from longreach.harness.running.options import Options
from longreach.harness.running.run import caps_of
from longreach.harness.running.scan_plan import plan_find
from longreach.harness.running.store import open_store, read_config, read_records
from longreach.harness.stats.estimates import estimate

LENGTHS = tuple(256 << i for i in range(8))


def profile(p: list[float], folder: Path) -> str:
    """SPEC of a simulated model whose rate at each length is known."""
    path = folder / "profile.yaml"
    rates = ", ".join(f"{length}: {rate!r}" for length, rate in zip(LENGTHS, p, strict=True))
    path.write_text(f"retrieval: {{{rates}}}\n", encoding="utf-8")
    return f"sim:{path}"


def find(model: str, seed: int, out: Path, task: str, *, cache_mode: bool) -> tuple[int, int]:
    """One search: how many lengths its verdict covers, and its tokens (length x samples)."""
    options = Options.of(
        model=model,
        tasks=task,
        min_length=LENGTHS[0],
        max_length=LENGTHS[-1],
        seed=seed,
        out=out,
        concurrency=5,
        force=True,
        cache_mode=cache_mode or None,
    )
    plan = plan_find(options)
    with open_store(out) as store:
        collected = drive(
            Finder(plan.prepared, store, caps_of(plan.prepared), ScanProgress(stream=io.StringIO()), found=plan)
        )
    if collected.error is not None or collected.exit_code:
        raise RuntimeError(f"{out}: exit code {collected.exit_code}, {collected.error or collected.stopped}")
    found = estimate(list(read_records(out).values()), read_config(out))
    value = found.effective["retrieval"].value
    return 0 if value is None else LENGTHS.index(value) + 1, found.scans["retrieval"].tokens


def main() -> Iterator[str]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--finds", type=int, default=20, help="searches per family (default 20)")
    parser.add_argument("--cache-mode", action="store_true", help="five questions on one context")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    task = "niah.shared" if given.cache_mode else "niah.single"
    grid = {n: n * sum(LENGTHS) for n in (500, 100)}
    yield f"{given.finds} searches per family, {task}, {LENGTHS[0]} to {LENGTHS[-1]:,} tokens"
    yield f"{'family':<15}{'wrong':>7}{'tokens':>12}{'500/x':>7}{'100/x':>7}"
    wrong, spent, start = 0, [], time.perf_counter()
    for number, (name, family) in enumerate(FAMILIES.items()):
        p, own, tokens = means(family), 0, 0
        with tempfile.TemporaryDirectory() as folder:
            model = profile(p, Path(folder))
            for repeat in range(given.finds):
                seed = 1000 * (given.seed * len(FAMILIES) + number) + repeat
                covered, used = find(model, seed, Path(folder) / str(repeat), task, cache_mode=given.cache_mode)
                own += is_wrong(covered, p)
                tokens += used
        wrong += own
        spent.append(tokens / given.finds)
        yield f"{name:<15}{own:>4}/{given.finds:<2}{spent[-1]:>12,.0f}{grid[500] / spent[-1]:>7.1f}{grid[100] / spent[-1]:>7.1f}"
    mean, total = math.fsum(spent) / len(spent), given.finds * len(FAMILIES)
    yield (
        f"mean {mean:,.0f} tokens: {grid[500] / mean:.1f} x fewer than 500 per length, {grid[100] / mean:.1f} x fewer than 100; "
        f"{time.perf_counter() - start:.0f} s"
    )
    checks = {f"wrong verdicts <= 5% ({wrong} of {total})": wrong <= 0.05 * total}
    if not given.cache_mode:
        checks["15 x fewer tokens than 500 per length, on average"] = grid[500] / mean >= 15
        checks["3 x fewer tokens than 100 per length, on average"] = grid[100] / mean >= 3
    yield from (f"{'holds' if good else 'DOES NOT HOLD'}: {what}" for what, good in checks.items())


if __name__ == "__main__":
    for line in main():
        print(line, flush=True)
