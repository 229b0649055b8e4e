"""Gates on a run: the value, its 95% interval, the verdict, and what is missing where it cannot be given."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.record import COUNTED, Record
from longreach.harness.registry import tasks
from longreach.harness.report.wording import join_words
from longreach.harness.stats.cells import task_facts
from longreach.harness.stats.curves import Curve, CurvePoint
from longreach.harness.stats.effective import Estimate
from longreach.harness.stats.estimates import Estimates, estimate
from longreach.harness.stats.gates import Gate, GateResult, check_metric, parse_gate, show
from longreach.harness.stats.intervals import TAIL, Interval, cannot_show, clopper_pearson, needed_text, wilson
from longreach.harness.stats.usage import cache_state, quantile
from longreach.harness.stats.verdict import unanswered_note

_CAPABILITY = {"recall": "retrieval", "reasoning": "reasoning"}
_MOST = 1 << 20  # samples; nobody runs more


def check_gates(texts: Sequence[str], records: Sequence[Record], config: Mapping[str, Any]) -> list[GateResult]:
    """Every gate against one run.

    Raises:
        ConfigError: a text that is no gate. UnknownName: no such metric.
    """
    labels = task_facts(config, records)
    gates = [parse_gate(text, partial(check_metric, labels=labels, registered=tasks())) for text in texts]
    estimates = estimate(records, config)
    counted = [record for record in records if record.outcome in COUNTED and not record.is_reported]
    return [_check(gate, estimates, counted, config) for gate in gates]


def _check(gate: Gate, estimates: Estimates, counted: Sequence[Record], config: Mapping[str, Any]) -> GateResult:
    if gate.kind == "length":
        return _effective(gate, estimates)
    here = [record for record in counted if gate.length in (None, record.length)]
    if gate.metric in ("no_answer_rate", "refused_rate"):
        outcome = gate.metric.removesuffix("_rate")
        return _rate(gate, sum(record.outcome == outcome for record in here), len(here), _no_length(gate, estimates))
    if gate.kind == "time":
        return _ttft(gate, here, _no_length(gate, estimates))
    if gate.kind == "money":
        return _money(gate, here, _no_length(gate, estimates))
    return _score(gate, estimates)


def _undecided(gate: Gate, why: str, n: int = 0) -> GateResult:
    return GateResult(
        gate=gate, verdict="undecided", value=None, low=None, high=None, n=n, shown="not measured", missing=why
    )


def _no_length(gate: Gate, estimates: Estimates) -> str:
    """Why a length has no samples."""
    lengths = sorted({cell.length for cell in estimates.cells if cell.n})
    found = join_words([format_length(length) for length in lengths]) or "nothing"
    where = f"at {format_length(gate.length)}" if gate.length else "in this run"
    return f"Nothing was measured {where}; the run holds {found}."


def _score(gate: Gate, estimates: Estimates) -> GateResult:
    """A mean score: of a headline, or of one task."""
    if gate.metric in _CAPABILITY:
        curve = estimates.headline.get(_CAPABILITY[gate.metric])
        if curve is None:
            return _undecided(gate, " ".join(estimates.effective[_CAPABILITY[gate.metric]].notes))
    else:
        curve = next((curve for curve in estimates.tasks if curve.name == gate.metric), None)
        if curve is None:
            return _undecided(gate, f"{gate.metric} is not part of this run; add it with --tasks.")
    points = [point for point in curve.points if gate.length in (None, point.length)]
    if not points:
        return _undecided(gate, _no_length(gate, estimates))
    for point in points:
        if not point.tested:
            return _undecided(gate, _untested(point), point.n)
        if not point.supports_claim:
            return _undecided(gate, unanswered_note(point), point.n)
    if points[0].counts is not None:
        if len(points) > 1:
            return _undecided(gate, "A scan has chosen its own n at each length; name one, such as @64k.")
        return _adaptive(gate, points[0])
    # As for one length: unevenly filled lengths count as if all were as thin as the thinnest.
    n = len(points) * min(point.n_effective for point in points)
    mean = math.fsum(point.mean or 0.0 for point in points) / len(points)
    return _rate(gate, mean * n, n, "", n_shown=sum(point.n for point in points), name=_name(points))


def _adaptive(gate: Gate, point: CurvePoint) -> GateResult:
    """A mean score of an adaptive scan: limits that hold at any stop."""
    limits, mean = point.limits, point.mean
    assert limits is not None and mean is not None, "a tested point has a mean"
    verdict = gate.decide(limits.low, limits.high)
    where = format_length(point.length)
    return GateResult(
        gate=gate,
        verdict=verdict,
        value=mean,
        low=limits.low,
        high=limits.high,
        n=point.n,
        shown=_shown(gate, mean, limits, point.n) + ", limits valid at any stop",
        missing=""
        if verdict != "undecided"
        else f"A scan stops when its zone is decided; a fixed grid at {where} decides this.",
    )


def _name(points: Sequence[CurvePoint]) -> str:
    return format_length(points[0].length) if len(points) == 1 else "the mean over all lengths"


def _untested(point: CurvePoint) -> str:
    length, cause = format_length(point.length), point.blocked_by
    reason = {
        "overflow": "prompts did not fit the model there",
        "truncated": "the server cut prompts there",
        "missing": f"{join_words(list(point.blocking))} has no samples there",
        "failed": "its samples failed in transport",
    }.get(cause or "", "its samples were not run")
    return f"{length} is not tested: {reason}."


def interval_of(s: float, n: float) -> Interval:
    """Wilson and Clopper-Pearson together: what is shown never says more than what is claimed."""
    shown, exact = wilson(s, n), clopper_pearson(s, n)
    return Interval(low=min(shown.low, exact.low), high=max(shown.high, exact.high))


def _rate(
    gate: Gate, s: float, n: float, nothing: str, *, n_shown: int | None = None, name: str = "the run"
) -> GateResult:
    if n <= 0:
        return _undecided(gate, nothing)
    limits = interval_of(s, n)
    verdict = gate.decide(limits.low, limits.high)
    count = round(n) if n_shown is None else n_shown
    return GateResult(
        gate=gate,
        verdict=verdict,
        value=s / n,
        low=limits.low,
        high=limits.high,
        n=count,
        shown=_shown(gate, s / n, limits, count),
        missing=_more(gate, s / n, int(n + 1e-9), name) if verdict == "undecided" else "",
    )


def _shown(gate: Gate, value: float, limits: Interval, n: int) -> str:
    high = "no upper bound" if math.isinf(limits.high) else show(gate.kind, limits.high)
    return f"{show(gate.kind, value)} (95%: {show(gate.kind, limits.low)} to {high}, n {n:,})"


def _more(gate: Gate, value: float, n: int, name: str) -> str:
    """What would decide a rate, as a sentence."""
    if gate.at_least and (sentence := cannot_show(name, n, gate.bound)):
        return sentence
    if not gate.at_least and (clean := _clean(gate)) and n < clean:
        return (
            f"{n} samples cannot show it: even none of {n} leaves up to {interval_of(0, n).high:.3f}. Needs 0/{clean}."
        )
    enough = _enough(gate, value, n)
    if enough is None:
        return "The value lies on the bound itself; no number of samples is likely to decide."
    text = f"If it stays at {value:.3f}, about {enough:,} samples decide it."
    return text if not gate.at_least or value <= gate.bound else f"{text} {needed_text(gate.bound)}"


def _clean(gate: Gate) -> int | None:
    """Fewest samples, none of them a hit, that show a rate below the bound."""
    n = 1
    while n < _MOST and gate.decide(0.0, interval_of(0, n).high) != "pass":
        n += max(1, n // 200)
    while n > 1 and gate.decide(0.0, interval_of(0, n - 1).high) == "pass":
        n -= 1
    return n if n < _MOST else None


def _enough(gate: Gate, value: float, n: int) -> int | None:
    """Samples that decide the gate if the rate stays as it is, to two digits; None if none do."""
    while n < _MOST:
        n = math.ceil(n * 1.1) + 1
        limits = interval_of(value * n, n)
        if gate.decide(limits.low, limits.high) != "undecided":
            digits = max(len(str(n)) - 2, 0)
            unit = int(10**digits)
            return -(-n // unit) * unit
    return None


def _effective(gate: Gate, estimates: Estimates) -> GateResult:
    capability = gate.metric.removeprefix("effective_")
    found, curve = estimates.effective[capability], estimates.headline.get(capability)
    if found.state == "not_measured" or curve is None:
        return _undecided(gate, " ".join(found.notes), found.n)
    high = _upper_end(found, curve)
    low = float(found.low or 0)
    verdict = gate.decide(low, high)
    value = float(found.value) if found.value is not None else None
    below, above = (
        (format_length(int(low)) if low else "nothing"),
        (format_length(int(high)) if 0 < high < math.inf else ""),
    )
    bracket = f"{below} to {above or 'no upper end' if high else f'below {format_length(curve.points[0].length)}'}"
    reasons = list(found.notes) if verdict == "undecided" else []
    if reasons and found.method == "ascend":
        reasons.append("A gate needs the strict bracket: longreach find --certify goes on in the same folder.")
    if verdict == "undecided" and not reasons:
        reasons = [f"The bracket holds {format_length(int(gate.bound))}; more samples at the lengths inside it decide."]
    return GateResult(
        gate=gate,
        verdict=verdict,
        value=value,
        low=low or None,
        high=high if 0 < high < math.inf else None,
        n=found.n,
        shown=f"best estimate {found.text}, bracket {bracket} (n {found.n:,})",
        missing=" ".join(reasons),
    )


def _upper_end(found: Estimate, curve: Curve) -> float:
    """Largest effective length that the bracket allows: 0 if even the first length surely fails."""
    if found.method == "ascend":  # the levels of a scan are fixed by all its lengths, not by those that it reached
        first_fails = found.high_found and found.high == found.first and curve.points[0].state == "fail"
        return 0.0 if first_fails else float(found.high or 0) if found.high_found else math.inf
    tail = TAIL / len(curve.points)
    first_bad = next((i for i, point in enumerate(curve.points) if point.fails_at(tail)), None)
    ends = [0.0, *(float(point.length) for point in curve.points)]
    return math.inf if first_bad is None else ends[first_bad]


def order_statistics(values: Sequence[float], share: float, tail: float = TAIL) -> Interval:
    """Distribution-free bounds of a quantile, `tail` for each side; 0 and infinity where there are too few values."""
    from scipy.special import bdtr

    ordered, n = sorted(values), len(values)
    low = max((k for k in range(1, n + 1) if bdtr(k - 1, n, share) <= tail), default=0)
    high = min((k for k in range(1, n + 1) if bdtr(k - 1, n, share) >= 1 - tail), default=0)
    return Interval(low=ordered[low - 1] if low else 0.0, high=ordered[high - 1] if high else math.inf)


def _ttft(gate: Gate, here: Sequence[Record], nothing: str) -> GateResult:
    """Time to first token of first attempts; cold prompts alone where there are both kinds."""
    timed = [record for record in here if record.ttft_s is not None and len(record.attempts) <= 1]
    if not timed:
        return _undecided(gate, nothing if not here else "The backend reported no time to first token.")
    kinds = {cache_state(record) for record in timed}
    kind = "cold" if "cold" in kinds else "cached" if kinds == {"cached"} else ""
    values = [float(record.ttft_s or 0.0) for record in timed if not kind or cache_state(record) == kind]
    share = 0.95 if gate.metric.endswith("p95") else 0.5
    limits = order_statistics(values, share)
    verdict, value, n = gate.decide(limits.low, limits.high), quantile(values, share), len(values)
    needed = math.ceil(math.log(TAIL) / math.log(share))
    missing = f"An upper bound needs {needed} samples." if n < needed else "More samples narrow the interval."
    return GateResult(
        gate=gate,
        verdict=verdict,
        value=value,
        low=limits.low,
        high=limits.high if limits.high < math.inf else None,
        n=n,
        shown=_shown(gate, value or 0.0, limits, n) + (f", {kind} prompts" if kind else ", cache state unknown"),
        missing=missing if verdict == "undecided" else "",
    )


def _money(gate: Gate, here: Sequence[Record], nothing: str) -> GateResult:
    """Mean cost of a query with Student's interval: costs have no ceiling that would spoil it."""
    if not here:
        return _undecided(gate, nothing)
    costs = [record.cost_usd for record in here if record.cost_usd is not None]
    if len(costs) < len(here):
        return _undecided(gate, "The price is unknown; give --price-in and --price-out and rescore or resume the run.")
    if len(costs) < 2:
        return _undecided(gate, "One query has no interval; run at least two.", 1)
    from scipy.special import stdtrit

    n, mean = len(costs), math.fsum(costs) / len(costs)
    spread = math.sqrt(math.fsum((cost - mean) ** 2 for cost in costs) / (n - 1) / n)
    half = float(stdtrit(n - 1, 1 - TAIL)) * spread
    limits = Interval(low=max(0.0, mean - half), high=mean + half)
    verdict = gate.decide(limits.low, limits.high)
    return GateResult(
        gate=gate,
        verdict=verdict,
        value=mean,
        low=limits.low,
        high=limits.high,
        n=n,
        shown=_shown(gate, mean, limits, n),
        missing="More samples narrow the interval." if verdict == "undecided" else "",
    )
