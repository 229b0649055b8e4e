"""Two runs side by side: verdict per task and length and overall, from the samples that both have answered.

worse: the paired test alarms (Holm over the cells of a task family, p < 0.05) and the mean fell. better: it rose.
The whole is worse if a cell or the mean of all pairs is, and better only if the mean of all pairs is.
within noise: the 95% limits of the change lie inside +- margin. cannot tell: none of these.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from longreach.harness.lengths import format_length
from longreach.harness.report.wording import join_words, percent
from longreach.harness.stats.effective import Estimate
from longreach.harness.stats.estimates import Estimates, estimate
from longreach.harness.stats.paired_tests import Change, benjamini_hochberg, change_of, holm, minimal_drop
from longreach.harness.stats.pairs import Pair, Pairing, RunData, context_of, match, sharing
from longreach.harness.stats.settings_diff import Difference, differences, warnings

Verdict = Literal["better", "worse", "within noise", "cannot tell"]
ALPHA = 0.05
MARGIN = 0.05
"""Change of a mean score that does not matter."""
EXPLORE = 0.10  # share of false discoveries among the cells that are worth a look


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """One task at one length."""

    task: str
    family: str
    length: int
    change: Change
    p_holm: float
    """Corrected over the cells of the family."""
    worth_a_look: bool
    """Among the cells that change at a false discovery rate of 10% over the whole comparison."""
    verdict: Verdict
    detectable: float | None
    """Smallest drop that so many pairs would have found four times in five."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthClaim:
    """What may be said about an effective length."""

    capability: str
    base: Estimate
    new: Estimate
    claimed: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that a comparison says."""

    base: str
    new: str
    cells: tuple[CellChange, ...]
    """Task by task in the base's order, lengths ascending."""
    overall: Change | None
    """All pairs together; None if there are none."""
    verdict: Verdict
    reason: str
    """Why, as a sentence."""
    margin: float
    lengths: tuple[LengthClaim, ...]
    pairing: Pairing
    settings: tuple[Difference, ...]
    warnings: tuple[str, ...]
    noise: Change | None
    """Two runs of the same model, where a repeat was given."""

    @property
    def exit_code(self) -> int:
        """1 worse; 3 nothing in common, or cells that the new run could not be tested on; else 0."""
        if self.verdict == "worse":
            return 1
        return 3 if self.overall is None or self.pairing.lost else 0

    def to_dict(self) -> dict[str, Any]:
        """The `regression` of card.json."""
        return {
            "base": self.base,
            "new": self.new,
            "verdict": self.verdict,
            "reason": self.reason,
            "margin": self.margin,
            "overall": _change_dict(self.overall),
            "cells": [
                {name: getattr(cell, name) for name in ("task", "family", "length", "verdict", "p_holm", "detectable")}
                | _change_dict(cell.change)
                for cell in self.cells
            ],
            "effective": [
                {"capability": c.capability, "base": c.base.to_dict(), "new": c.new.to_dict(), "claimed": c.claimed}
                | {"sentence": c.sentence}
                for c in self.lengths
            ],
            "unpaired": [
                {"task": task, "length": length, **{reason.replace(" ", "_"): n for reason, n in reasons.items()}}
                for (task, length), reasons in self.pairing.unpaired.items()
            ],
            "settings": [asdict(difference) for difference in self.settings],
            "warnings": list(self.warnings),
            "noise": _change_dict(self.noise) or None,
        }


def _change_dict(change: Change | None) -> dict[str, Any]:
    return asdict(change) | {"change": change.value, "churn": change.churn} if change else {}


def compare(base: RunData, new: RunData, *, margin: float = MARGIN, repeat: RunData | None = None) -> Comparison:
    """The comparison of two runs.

    Args:
        margin: change of a mean score that does not matter, 0 to 1.
        repeat: the base model once more on the same samples: how much answers change by themselves.
    """
    pairing = match(base.records, new.records)
    noise = _noise(base, repeat) if repeat else None
    several = sharing(base.config)
    cells = _cells(pairing.pairs, margin, noise, several)
    overall = _pooled(pairing.pairs, several)
    verdict, reason = judge(cells, overall, margin)
    return Comparison(
        base=base.name,
        new=new.name,
        cells=cells,
        overall=overall,
        verdict=verdict,
        reason=reason,
        margin=margin,
        lengths=_claims(base, new, cells),
        pairing=pairing,
        settings=tuple(differences(base.config, new.config)),
        warnings=tuple(warnings(base, new, pairing)),
        noise=noise,
    )


def _scores(pairs: Sequence[Pair], several: frozenset[str]) -> tuple[list[float], list[float]]:
    """Scores by context: the mean where several questions share one."""
    contexts: dict[object, list[Pair]] = defaultdict(list)
    for pair in pairs:
        contexts[context_of(pair.base) if pair.base.task in several else id(pair)].append(pair)
    first, second = [], []
    for group in contexts.values():
        first.append(math.fsum(pair.base.score or 0.0 for pair in group) / len(group))
        second.append(math.fsum(pair.new.score or 0.0 for pair in group) / len(group))
    return first, second


def _pooled(pairs: Sequence[Pair], several: frozenset[str]) -> Change | None:
    return change_of(*_scores(pairs, several)) if pairs else None


def _noise(base: RunData, repeat: RunData) -> Change | None:
    return _pooled(match(base.records, repeat.records).pairs, sharing(base.config))


def _cells(
    pairs: Sequence[Pair], margin: float, noise: Change | None, several: frozenset[str]
) -> tuple[CellChange, ...]:
    groups: dict[tuple[str, int], list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.base.task, pair.base.length].append(pair)
    order = list(dict.fromkeys(task for task, _ in groups))
    keys = sorted(groups, key=lambda key: (order.index(key[0]), key[1]))
    changes = {key: change_of(*_scores(groups[key], several)) for key in keys}
    families = {key: groups[key][0].base.family for key in keys}
    corrected: dict[tuple[str, int], float] = {}
    for family in set(families.values()):
        members = [key for key in keys if families[key] == family]
        corrected |= dict(zip(members, holm([changes[key].p for key in members]), strict=True))
    explored = dict(zip(keys, benjamini_hochberg([changes[key].p for key in keys]), strict=True))
    size = {family: sum(f == family for f in families.values()) for family in families.values()}
    return tuple(
        CellChange(
            task=key[0],
            family=families[key],
            length=key[1],
            change=changes[key],
            p_holm=corrected[key],
            worth_a_look=explored[key] < EXPLORE,
            verdict=verdict_of(changes[key], corrected[key], margin),
            detectable=_detectable(changes[key], noise, size[families[key]]),
        )
        for key in keys
    )


def _detectable(change: Change, noise: Change | None, tests: int) -> float | None:
    """With the churn of the repeat; else with what changed in both directions here, 2% at least."""
    churn = noise.churn if noise else max(2 * min(change.lost, change.won) / change.n, 0.02)
    return minimal_drop(change.n, churn, tests)


def verdict_of(change: Change, p: float, margin: float) -> Verdict:
    """The verdict of one change whose corrected p-value is `p`."""
    if p < ALPHA and change.value:
        return "worse" if change.value < 0 else "better"
    return "within noise" if -margin <= change.low and change.high <= margin else "cannot tell"


def judge(cells: Sequence[CellChange], overall: Change | None, margin: float) -> tuple[Verdict, str]:
    """The overall verdict and why.

    A cell alarms for the whole only if it does so after a further correction for the number of families; all pairs
    together are tested once more, which finds a small drop everywhere. With nothing changed, "worse" comes up in at most
    5% of comparisons.
    """
    if overall is None:
        return "cannot tell", "The runs have no scored sample in common."
    n_families = len({cell.family for cell in cells})
    firm = [cell for cell in cells if cell.verdict in ("worse", "better") and cell.p_holm * n_families < ALPHA]
    pooled = verdict_of(overall, overall.p, margin)
    words: dict[Verdict, str] = {"worse": "fell", "better": "rose"}
    for wanted, word in words.items():
        where = [f"{cell.task} at {format_length(cell.length)}" for cell in firm if cell.verdict == wanted]
        if pooled == wanted:
            where.append(f"the mean over all {overall.n:,} pairs")
        if where and (wanted == "worse" or pooled == wanted):
            return wanted, f"Scores {word} in {join_words(where)}."
    loose = [cell for cell in cells if cell.verdict in ("worse", "better") and cell not in firm]
    tail = ""
    if risen := [f"{cell.task} at {format_length(cell.length)}" for cell in firm]:
        tail = f" Scores rose in {join_words(risen)}, which is not shown for the whole."
    if loose:
        names = join_words([f"{cell.task} at {format_length(cell.length)}" for cell in loose])
        tail += f" {names} alone would alarm, but not after correction for {n_families} families."
    if pooled == "within noise":
        return pooled, f"The mean over all {overall.n:,} pairs changed by less than {percent(margin)} either way.{tail}"
    start = "No test alarms" if not firm else "The mean is not shown to change"
    return "cannot tell", f"{start}, and {overall.n:,} pairs leave room for more than {percent(margin)}.{tail}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _claims(base: RunData, new: RunData, cells: Sequence[CellChange]) -> tuple[LengthClaim, ...]:
    before, after = (estimate(run.records, run.config) for run in (base, new))
    claims = []
    for capability in before.effective:
        if capability in before.headline and capability in after.headline:
            claims.append(_claim(capability, before, after, cells))
    return tuple(claims)


def _claim(capability: str, before: Estimates, after: Estimates, cells: Sequence[CellChange]) -> LengthClaim:
    """An effective length has changed only if the brackets are disjoint, or the paired test fires at a length that
    changed sides: buckets alone jump with a single sample."""
    old, new = before.effective[capability], after.effective[capability]
    name = f"effective {capability}"
    shown = f"{name}: {old.text} before, {new.text} now"
    if (old.value, old.low, old.high) == (new.value, new.low, new.high):
        return LengthClaim(
            capability=capability, base=old, new=new, claimed=False, sentence=f"{_upper(shown)}: no change."
        )
    first, second = (_ends(item, found.headline[capability].lengths) for item, found in ((old, before), (new, after)))
    apart = second[1] < first[0] or first[1] < second[0]
    grid = before.headline[capability].lengths
    reached = [item.value or 0 for item in (old, new)]
    moved = [length for length in grid if min(reached) < length <= max(reached)]
    tasks = before.headline[capability].tasks
    wanted = "worse" if reached[1] < reached[0] else "better"
    fired = sorted({c.length for c in cells if c.task in tasks and c.length in moved and c.verdict == wanted})
    if apart:
        why = "the brackets do not overlap"
    elif fired:
        why = f"the paired test alarms at {join_words([format_length(length) for length in fired])}"
    elif moved:
        where = join_words([format_length(length) for length in moved], "or")
        why = f"not shown, since the brackets overlap and the paired test does not alarm at {where}"
    elif reached[0] != reached[1]:
        why = "not shown, since the brackets overlap and the runs share no length between the two"
    else:
        why = "the best estimate is the same; only its bracket differs, and the brackets overlap"
    claimed = apart or bool(fired)
    return LengthClaim(capability=capability, base=old, new=new, claimed=claimed, sentence=f"{_upper(shown)}: {why}.")


def _ends(item: Estimate, grid: Sequence[int]) -> tuple[float, float]:
    """Bracket as numbers: no length is 0; an end that was not found is infinite."""
    if item.censored == "below grid" and item.state == "measured":
        return 0.0, 0.0
    unbounded = item.high is None or item.high == grid[-1] or item.censored == "above grid"
    return float(item.low or 0), math.inf if unbounded else float(item.high or 0)
