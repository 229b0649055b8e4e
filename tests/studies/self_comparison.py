"""False alarms of `compare` on a model that flips 3% of its answers: `python tests/studies/self_comparison.py`.

One real run of a simulated model over several tasks gives prompts, answers and scores. Each comparison sets two
copies of it against each other, in each of which a random 3% of the scores are turned over, as a server under load does
between two runs. "worse" may come up in at most 5% of the comparisons. A second line shows how often a true drop of 10
points at the longest length is found. Of the comparisons, `--folders` are made by the command `longreach compare` on run
folders on disk, whose exit code must agree.
"""

import argparse
import contextlib
import io
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import longreach
from longreach.harness.cli import run_command
from longreach.harness.running.store import RECORDS, write_config
from longreach.harness.stats.compare import compare
from longreach.harness.stats.pairs import RunData, read_run

PROFILE = "retrieval: {1k: 0.97, 4k: 0.9}\nreasoning: {1k: 0.8, 4k: 0.6}\n"
LENGTHS = ("1k", "2k", "4k")
TASKS = "niah.single,niah.distractor,ruler.vt,trace.arith"


def real_run(samples: int) -> RunData:
    """A run folder made and read by the code that users run."""
    with tempfile.TemporaryDirectory() as folder:
        profile, out = Path(folder) / "profile.yaml", Path(folder) / "run"
        profile.write_text(PROFILE, encoding="utf-8")
        longreach.run(
            tasks=TASKS,
            model=f"sim:{profile}",
            lengths=LENGTHS,
            depths="0,0.25,0.5,0.75,1",
            samples=samples,
            out=out,
            force=True,
        )
        return read_run(out)


def flipped(run: RunData, share: float, rng: random.Random, drop: float = 0.0) -> RunData:
    """The run once more, with a random `share` of its scores turned over, and `drop` of the right ones at the longest
    length lost."""
    longest = max(record.length for record in run.records)
    records = []
    for record in run.records:
        score = record.score
        if score is not None and rng.random() < share:
            score = 1.0 - score
        if score and record.length == longest and rng.random() < drop / 0.8:
            score = 0.0
        records.append(replace(record, score=score))
    return replace(run, records=tuple(records))


def compared_on_disk(base: RunData, new: RunData) -> int:
    """Exit code of `longreach compare` on the two as run folders."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, run in (("base", base), ("new", new)):
            path = Path(folder) / name
            path.mkdir()
            write_config(path, dict(run.config))
            (path / RECORDS).write_text("".join(record.to_json() + "\n" for record in run.records), encoding="utf-8")
            paths.append(str(path))
        with contextlib.redirect_stdout(io.StringIO()):
            return run_command(["compare", *paths])


def main() -> Iterator[str]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--flips", type=float, default=0.03)
    parser.add_argument("--samples", type=int, default=10, help="per task, length and depth (5 depths)")
    parser.add_argument("--folders", type=int, default=20, help="comparisons made by the command, on folders")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    run, rng = real_run(given.samples), random.Random(given.seed)
    mean = sum(record.score or 0.0 for record in run.records) / len(run.records)
    families = len({record.family for record in run.records})
    yield f"{len(run.records):,} samples, {families} families, mean score {mean:.2f}, {given.flips:.0%} of the answers flip"
    same: Counter[str] = Counter()
    cells: Counter[str] = Counter()
    fallen: Counter[str] = Counter()
    disagree = 0
    for number in range(given.comparisons):
        base, new = flipped(run, given.flips, rng), flipped(run, given.flips, rng)
        result = compare(base, new)
        if number < given.folders:
            disagree += compared_on_disk(base, new) != int(result.verdict == "worse")
        same[result.verdict] += 1
        cells.update(cell.verdict for cell in result.cells)
        fallen[compare(base, flipped(run, given.flips, rng, drop=0.10)).verdict] += 1
    for name, counts in (("against itself", same), ("its cells", cells), ("with a drop of 10 points", fallen)):
        total = sum(counts.values())
        yield f"{name:<26}" + ", ".join(f"{verdict} {n / total:.1%}" for verdict, n in counts.most_common())
    alarms = same["worse"] / given.comparisons
    yield f"{'holds' if not disagree else 'DOES NOT HOLD'}: exit codes of the command agree in {given.folders} comparisons"
    yield f"{'holds' if alarms <= 0.05 else 'DOES NOT HOLD'}: false alarms in {alarms:.1%} of {given.comparisons} comparisons"


if __name__ == "__main__":
    for line in main():
        print(line, flush=True)
