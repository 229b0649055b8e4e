"""More than two runs: a ranking on the samples that all of them have answered, and a series over steps or versions."""

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from longreach.harness.errors import ConfigError
from longreach.harness.lengths import format_length
from longreach.harness.record import COUNTED
from longreach.harness.report.compare_text import change_text, table
from longreach.harness.report.wording import markdown, percent
from longreach.harness.stats.compare import ALPHA, Comparison, compare
from longreach.harness.stats.gate_values import interval_of
from longreach.harness.stats.intervals import Interval
from longreach.harness.stats.paired_tests import Change, change_of, holm
from longreach.harness.stats.pairs import RunData, match, place

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One run among several."""

    name: str
    mean: float
    """Over the samples that all runs share."""
    limits: Interval
    """95%."""
    behind: Change | None
    """Against the best run; None for that one."""
    p_holm: float
    """Of `behind`, corrected over the other runs."""
    by_length: dict[int, float]
    """Mean over all tasks; tokens -> score."""

    @property
    def tied(self) -> bool:
        """The paired test cannot tell it from the best."""
        return self.p_holm >= ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Several runs: in their order, ranked, and the last against the first."""

    runs: tuple[Ranked, ...]
    """In the order of the series."""
    n: int
    """Samples that all runs share."""
    last: Comparison
    """The last run against the first."""
    steps: tuple[Comparison, ...]
    """Each run against the one before it."""

    @property
    def ranking(self) -> tuple[Ranked, ...]:
        """Best first."""
        return tuple(sorted(self.runs, key=lambda run: -run.mean))

    @property
    def exit_code(self) -> int:
        return self.last.exit_code

    def to_dict(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "runs": [asdict(run) | {"tied": run.tied} for run in self.runs],
            "ranking": [run.name for run in self.ranking],
            "last_against_first": self.last.to_dict(),
            "steps": [{"base": step.base, "new": step.new, "verdict": step.verdict} for step in self.steps],
        }


def in_order(names: Sequence[str]) -> list[int]:
    """Indices in the order of the series: by number where the names differ in one number only (a shell lists ckpt-10
    before ckpt-9), else as given."""
    shapes = {_NUMBER.sub("#", name) for name in names}
    numbers = [[int(found) for found in _NUMBER.findall(name)] for name in names]
    if len(shapes) > 1 or not numbers[0]:
        return list(range(len(names)))
    varying = [column for column in zip(*numbers, strict=True) if len(set(column)) > 1]
    if len(varying) != 1:
        return list(range(len(names)))
    return sorted(range(len(names)), key=lambda i: varying[0][i])


def make_series(runs: Sequence[RunData], *, margin: float) -> Series:
    """The series of three runs or more.

    Raises:
        ConfigError: no sample is scored with the same prompt in all of them.
    """
    runs = [runs[i] for i in in_order([run.name for run in runs])]
    scores = _shared(runs)
    if not scores:
        raise ConfigError(
            f"the {len(runs)} runs have no scored sample with the same prompt in common; compare runs of the same battery, "
            f"seed and tokenizer"
        )
    columns = [[row[i] for _, row in scores] for i in range(len(runs))]
    means = [math.fsum(column) / len(column) for column in columns]
    best = max(range(len(runs)), key=lambda i: means[i])
    behind = [None if i == best else change_of(columns[best], columns[i]) for i in range(len(runs))]
    corrected = iter(holm([change.p for change in behind if change is not None]))
    lengths: dict[int, list[int]] = defaultdict(list)
    for index, (length, _) in enumerate(scores):
        lengths[length].append(index)
    ranked = [
        Ranked(
            name=run.name,
            mean=means[i],
            limits=interval_of(math.fsum(columns[i]), len(scores)),
            behind=behind[i],
            p_holm=1.0 if behind[i] is None else next(corrected),
            by_length={
                length: math.fsum(columns[i][j] for j in rows) / len(rows) for length, rows in sorted(lengths.items())
            },
        )
        for i, run in enumerate(runs)
    ]
    return Series(
        runs=tuple(ranked),
        n=len(scores),
        last=compare(runs[0], runs[-1], margin=margin),
        steps=tuple(compare(a, b, margin=margin) for a, b in itertools.pairwise(runs)),
    )


def _shared(runs: Sequence[RunData]) -> list[tuple[int, list[float]]]:
    """(length, score in each run) of every sample that all runs scored on the same prompt."""
    held = {place(r): [r.score or 0.0] for r in runs[0].records if r.outcome in COUNTED}
    lengths = {place(r): r.length for r in runs[0].records}
    for run in runs[1:]:
        for pair in match(runs[0].records, run.records).pairs:
            if place(pair.base) in held:
                held[place(pair.base)].append(pair.new.score or 0.0)
    return [(lengths[key], row) for key, row in held.items() if len(row) == len(runs)]


def _rows(series: Series) -> list[list[str]]:
    lengths = list(series.runs[0].by_length)
    head = ["run", "rank", "mean", "95%", *map(format_length, lengths), "against the best", "step"]
    ranks = {run.name: rank for rank, run in enumerate(series.ranking, start=1)}
    verdicts = ["", *(step.verdict for step in series.steps)]
    rows = [head]
    for run, step in zip(series.runs, verdicts, strict=True):
        against = "best" if run.behind is None else change_text(run.behind) + (", tied" if run.tied else "")
        limits = f"{percent(run.limits.low, 1)} to {percent(run.limits.high, 1)}"
        means = [percent(run.by_length[length]) for length in lengths]
        rows.append([run.name, str(ranks[run.name]), percent(run.mean, 1), limits, *means, against, step])
    return rows


def series_lines(series: Series) -> list[str]:
    """For a terminal."""
    tied = [run.name for run in series.ranking if run.tied and run.behind is not None]
    lines = table(_rows(series))
    lines.append(
        f"Means over the {series.n:,} samples that all {len(series.runs)} runs have scored on the same prompt."
    )
    if tied:
        lines.append(f"Not to be told from the best: {', '.join(tied)}.")
    return lines


def series_markdown(series: Series) -> str:
    """As a Markdown table."""
    head, *rows = _rows(series)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(markdown(cell) for cell in row) + " |" for row in rows]
    return "\n".join([*lines, "", *series_lines(series)[len(rows) + 1 :]]) + "\n"
