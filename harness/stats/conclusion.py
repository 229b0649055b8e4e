"""results.csv read back into the card's own cells and curves: the verdict and the words of report.ipynb.

Nothing is estimated here: the rows become records again, and `cells`, `curves` and `verdict` do the rest, so that the
notebook and the card cannot differ.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longreach.harness.lengths import format_length
from longreach.harness.record import COUNTED, OUTCOMES, Record
from longreach.harness.report.wording import join_words, percent, plain
from longreach.harness.stats.cells import TaskFacts, build_cells, task_facts
from longreach.harness.stats.curves import Curve, CurvePoint, make_curve
from longreach.harness.stats.intervals import cannot_show, min_n, state_of
from longreach.harness.stats.scans import view_scans
from longreach.harness.stats.verdict import effective

if TYPE_CHECKING:
    import pandas as pd

MOST = 1 << 17
"""Samples beyond which "run more" is no advice."""


def records_of(results: "pd.DataFrame", capability: str) -> list[Record]:
    """The rows as records, as far as means and states need them.

    Args:
        results: one row per sample with the columns task, length, depth, iteration, score, outcome.
    """
    columns = ("task", "length", "depth", "iteration", "score", "outcome")
    rows = zip(*(results[name].tolist() for name in columns), strict=True)
    return [
        Record(
            key=str(number),
            task=str(task),
            task_id=str(task),
            version=1,
            capability=capability,
            family="",
            length=int(length),
            depth=None if _is_blank(depth) else float(depth),
            index=int(iteration),
            seed=0,
            model="",
            tokenizer="",
            outcome=outcome,
            score=float(score) if outcome in COUNTED else None,
            at="",
        )
        for number, (task, length, depth, iteration, score, outcome) in enumerate(rows)
    ]


def _is_blank(value: Any) -> bool:
    return value is None or math.isnan(value)


def headline_curve(
    results: "pd.DataFrame", capability: str, tasks: Sequence[str], config: Mapping[str, Any], threshold: float
) -> Curve:
    """Mean of a headline's tasks against length: equal weight per task, and within a task per depth.

    Args:
        config: the run's config.yaml, which knows cells that were planned and never run; may be empty.
        threshold: what the mean is held against at each length.
    """
    records = [record for record in records_of(results, capability) if record.task in tasks]
    facts = dict(task_facts(config, records))
    for task in tasks:
        facts.setdefault(task, _unknown(task, capability))
    scanned = view_scans(records, config)
    cells = [cell for cell in build_cells(scanned.records, config, facts, scanned.tempered) if cell.task in tasks]
    infeasible = frozenset((cell["task"], int(cell["length"])) for cell in config.get("infeasible") or ())
    curve = make_curve(capability, "capability", tasks, cells, facts, infeasible)
    points = tuple(dataclasses.replace(point, threshold=threshold) for point in curve.points)
    scan = scanned.estimates.get(capability) if threshold == curve.threshold else None
    return dataclasses.replace(curve, threshold=threshold, points=points, scan=scan)


def _unknown(task: str, capability: str) -> TaskFacts:
    return TaskFacts(
        label=task,
        capability=capability,
        family="",
        chance=0.0,
        version=1,
        has_depth=True,
        source="",
        license="",
        params={},
    )


def samples_to_decide(mean: float, threshold: float) -> int | None:
    """Fewest samples that decide on which side of `threshold` a mean lies, if it stays `mean`; None if too many.

    >>> samples_to_decide(0.98, 0.90), samples_to_decide(0.80, 0.90), samples_to_decide(0.90, 0.90)
    (56, 50, None)
    """
    n = 1
    while state_of(mean * n, n, threshold) == "undecided":
        n *= 2
        if n > MOST:
            return None
    low = n // 2
    while n - low > 1:
        middle = (low + n) // 2
        low, n = (middle, n) if state_of(mean * middle, middle, threshold) == "undecided" else (low, middle)
    return n


def to_decide(point: CurvePoint) -> str:
    """What would decide an undecided length, or why it is not tested; empty if it is decided."""
    threshold = point.threshold
    if not point.tested:
        return f"not tested: {(point.blocked_by or 'not run').replace('_', ' ')}"
    if point.state != "undecided" or threshold is None:
        return ""
    n, mean = int(point.n_effective), point.mean or 0.0
    if reason := cannot_show(format_length(point.length), n, threshold):
        return reason
    parts = []
    needed = min_n(threshold, math.ceil(n - mean * n - 1e-9))
    if needed is not None and needed > n:
        parts.append(f"{needed - n} more samples without a miss would show > {threshold:.2f}")
    same = samples_to_decide(mean, threshold)
    if same is None:
        parts.append("if the mean stays where it is, no affordable number decides")
    elif same > n:
        parts.append(f"if the mean stays {mean:.3f}, {same:,} samples in all would decide")
    return "; ".join(parts) + "."


def verdict_table(curves: Iterable[Curve]) -> "pd.DataFrame":
    """One row per headline, threshold and length: n, mean, interval, state, and what would decide."""
    import pandas as pd

    columns = ["headline", "threshold", "length", "n", "mean", "low", "high", "state", "what would decide"]
    rows = []
    for curve in curves:
        for point in curve.points:
            limits = point.limits
            bounds = (limits.low, limits.high) if limits else (math.nan, math.nan)
            mean = math.nan if point.mean is None else point.mean
            place = (curve.name, f"> {curve.threshold:.2f}", format_length(point.length), point.n)
            rows.append((*place, mean, *bounds, point.state.replace("_", " "), to_decide(point)))
    return pd.DataFrame(rows, columns=columns)


def conclude(results: "pd.DataFrame", curves: Sequence[Curve], *, simulated: bool) -> str:
    """The conclusion in words, a paragraph each; the first curve of a capability carries its headline."""
    lines = []
    if simulated:
        lines.append("SIMULATED: a simulated model gave these answers; nothing here is about a real one.")
    lines.append(_samples(results))
    seen: set[str] = set()
    for curve in curves:
        if curve.name not in seen:
            lines.append(_headline(curve))
            seen.add(curve.name)
        if any(point.tested for point in curve.points):
            lines.append(_question(curve))
    for name in ("retrieval", "reasoning"):
        if name not in seen:
            lines.append(f"{name.capitalize()} was not measured: this run has no task for it.")
    return "\n\n".join(lines)


def _samples(results: "pd.DataFrame") -> str:
    counts = results["outcome"].value_counts()
    found = [f"{int(counts[name]):,} {name.replace('_', ' ')}" for name in OUTCOMES if counts.get(name, 0)]
    if not found:
        return "There is no sample in results.csv, so that nothing can be concluded."
    noun = "sample" if len(results) == 1 else "samples"
    return f"{len(results):,} {noun}: {', '.join(found)}."


def _headline(curve: Curve) -> str:
    tasks = join_words([plain(task) for task in curve.tasks])
    name, rule = curve.name.capitalize(), percent(curve.threshold or 0.0)
    if not curve.points:
        return f"{name} ({tasks}) was not measured: this run holds no sample of its tasks."
    estimate = effective(curve)
    if estimate.state == "not_measured":
        return " ".join((f"{name} ({tasks}) was not measured.", *estimate.notes))
    best = f"best estimate {estimate.text}" if estimate.value or estimate.censored else "there is no best estimate"
    if estimate.method == "ascend":
        first = f"{name} ({tasks}): the adaptive search says {estimate.text} tokens."
    elif estimate.low is None:
        first = f"{name} ({tasks}): no length is shown to be reliable at {rule}; {best}."
    else:
        first = f"{name} ({tasks}) is reliable at {rule} up to {format_length(estimate.low)}; {best}."
    last = max((point for point in curve.points if point.tested), key=lambda point: point.length)
    limits = last.limits
    assert limits is not None and last.mean is not None, "a tested point has limits"
    numbers = f"{percent(last.mean)} ({percent(limits.low)} to {percent(limits.high)}, n {last.n})"
    longest = f"At {format_length(last.length)}, the longest tested length, its mean score is {numbers}."
    return " ".join((first, longest, *estimate.notes))


def _question(curve: Curve) -> str:
    """`Recall > 0.95 is shown at 4k and 8k; refuted at 64k; ...`"""
    words = {"pass": "shown at", "fail": "refuted at", "undecided": "undecided at", "not_tested": "not tested at"}
    parts = []
    for state, text in words.items():
        lengths = [format_length(point.length) for point in curve.points if point.state == state]
        if lengths:
            parts.append(f"{text} {join_words(lengths)}")
    what = "Recall" if curve.name == "retrieval" else "Mean score"
    return f"{what} > {curve.threshold:.2f} is {'; '.join(parts)}."
