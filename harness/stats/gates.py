"""Gates: `METRIC[@LENGTH] OP NUMBER[UNIT]`, read with errors that name the column, and the exit code of several.

recall@64k > 0.95, effective_reasoning >= 32k, ruler.vt@128k >= 70%, ttft_p95@64k < 30s, cost_per_query@128k < $0.5
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from longreach.harness.errors import ConfigError, UnknownName
from longreach.harness.lengths import format_length, parse_length
from longreach.harness.registry import did_you_mean

Kind = Literal["rate", "length", "time", "money"]
Verdict = Literal["pass", "fail", "undecided"]
METRICS: dict[str, Kind] = {
    "recall": "rate",
    "reasoning": "rate",
    "effective_retrieval": "length",
    "effective_reasoning": "length",
    "ttft_p50": "time",
    "ttft_p95": "time",
    "cost_per_query": "money",
    "no_answer_rate": "rate",
    "refused_rate": "rate",
}
"""Metrics that every run has; the names of its tasks are rates beside them."""
_UNITS: dict[Kind, dict[str, float]] = {
    "rate": {"": 1.0, "%": 0.01},
    "length": {"": 1.0, "k": 1024.0, "m": 1048576.0},
    "time": {"": 1.0, "s": 1.0, "ms": 0.001},
    "money": {"": 1.0, "$": 1.0, "usd": 1.0},
}
_EXAMPLES: dict[Kind, str] = {
    "rate": "0.95 or 95%",
    "length": "32k or 32768",
    "time": "30s or 500ms",
    "money": "0.5 or $0.5",
}
_METRIC = re.compile(r"[^\W\d][^\s@<>=!≤≥\[\]]*(?:\[[^\]]*\])?")
_LENGTH = re.compile(r"[0-9][\w.,]*")
_OPERATOR = re.compile(r">=|<=|≥|≤|>|<")
_NUMBER = re.compile(r"(\$?)\s*((?:\d+(?:[_,]\d+)*)?\.?\d+(?:[eE][-+]?\d+)?)\s*([^\W\d_]*[%$]?)")
_SPELLED = {"≥": ">=", "≤": "<="}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One demand on a run."""

    text: str
    metric: str
    kind: Kind
    length: int | None
    """Tokens; None = over all lengths."""
    op: str
    """>, >=, <, <=."""
    bound: float
    """A rate as 0 to 1, tokens, seconds, or USD."""

    @property
    def at_least(self) -> bool:
        """Larger values are better."""
        return self.op in (">", ">=")

    def decide(self, low: float, high: float) -> Verdict:
        """`pass` if the whole interval is on the right side, `fail` if it is on the wrong one."""
        right = {
            ">": (low > self.bound, high <= self.bound),
            ">=": (low >= self.bound, high < self.bound),
            "<": (high < self.bound, low >= self.bound),
            "<=": (high <= self.bound, low > self.bound),
        }[self.op]
        return "pass" if right[0] else "fail" if right[1] else "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """What a run says to a gate."""

    gate: Gate
    verdict: Verdict
    value: float | None
    """Best estimate in the gate's unit; None if nothing was measured."""
    low: float | None
    high: float | None
    """95% interval; None where it has no such end."""
    n: int
    shown: str
    """The value with its interval, for people."""
    missing: str
    """What would decide it, or why it cannot be decided; empty when it is."""

    @property
    def line(self) -> str:
        """`pass       recall@64k > 0.95: 0.990 (95%: 0.964 to 0.999, n 200)`"""
        return f"{self.verdict:<10} {self.gate.text}: {self.shown}{'. ' + self.missing if self.missing else ''}"

    def to_dict(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in ("verdict", "value", "low", "high", "n", "shown", "missing")}
        return {"gate": self.gate.text, **values}


class _Reader:
    """Reads a gate from left to right; errors name the column."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def blank(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self.blank()
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def error(self, what: str, at: int | None = None) -> ConfigError:
        column = (self.at if at is None else at) + 1
        return ConfigError(
            f"gate {self.text!r}, column {column}: {what}; a gate reads METRIC[@LENGTH] OP NUMBER[UNIT], "
            f"for example 'recall@64k > 0.95'"
        )


def parse_gate(text: str, check: Callable[[str, str], None] | None = None) -> Gate:
    """The gate that `text` spells. Whether its metric exists is known only beside a run.

    Args:
        check: called with the text and the metric before the rest is read, so that a misspelt one is the first complaint.

    >>> parse_gate("ttft_p95@64k < 500ms").bound
    0.5

    Raises:
        ConfigError: not a gate; the message names the column and what belongs there.
    """
    reader = _Reader(text)
    match = reader.take(_METRIC)
    if not match:
        raise reader.error("a metric is needed here")
    metric = match[0]
    if check:
        check(text, metric)
    kind = METRICS.get(metric, "rate")
    length = _length(reader, kind)
    reader.blank()
    start = reader.at
    operator = reader.take(_OPERATOR)
    if not operator or reader.text[reader.at : reader.at + 1] in ("=", "<", ">"):
        raise reader.error("one of > >= < <= is needed here", start)
    op = _SPELLED.get(operator[0], operator[0])
    bound = _bound(reader, kind)
    return Gate(text=" ".join(text.split()), metric=metric, kind=kind, length=length, op=op, bound=bound)


def _length(reader: _Reader, kind: Kind) -> int | None:
    reader.blank()
    start = reader.at
    if not reader.text.startswith("@", start):
        return None
    if kind == "length":
        raise reader.error("an effective length is a property of the whole run and takes no @LENGTH")
    reader.at += 1
    match = reader.take(_LENGTH)
    if not match:
        raise reader.error("a length such as 64k is needed after @")
    try:
        return parse_length(match[0])
    except ConfigError as error:
        raise reader.error(str(error), start + 1) from error


def _bound(reader: _Reader, kind: Kind) -> float:
    reader.blank()
    start = reader.at
    match = reader.take(_NUMBER)
    if not match:
        raise reader.error(f"a number is needed here, such as {_EXAMPLES[kind]}")
    unit = match[3].lower() or match[1]
    if unit not in _UNITS[kind] or (match[1] and kind != "money"):
        at = match.start(1) if match[1] else match.start(3)
        raise reader.error(f"{match[1] or match[3]!r} is no unit of a {kind}; write {_EXAMPLES[kind]}", at)
    reader.blank()
    if reader.at < len(reader.text):
        raise reader.error(f"{reader.text[reader.at :]!r} is left over (give several gates as several arguments)")
    bound = float(match[2].replace(",", "").replace("_", "")) * _UNITS[kind][unit]
    if kind == "rate" and not 0.0 <= bound <= 1.0:
        raise reader.error(f"a rate lies between 0 and 1, not {bound:g}; write {_EXAMPLES['rate']}", start)
    return bound


def check_metric(text: str, metric: str, labels: Iterable[str], registered: Iterable[str] = ()) -> None:
    """Refuses a metric that is neither a fixed one, nor a task of the run (`labels`), nor a task that exists at all.

    Raises:
        UnknownName: the nearest metric is named.
    """
    labels = list(labels)
    if metric in METRICS or metric in labels:
        return
    base = metric.partition("[")[0]
    variants = [label for label in labels if label.partition("[")[0] == base]
    if variants:
        raise UnknownName(
            f"gate {text!r}, column 1: this run has no task {metric!r}, but {', '.join(variants)}; name one of them"
        )
    if base not in registered:
        near = did_you_mean(metric, [*METRICS, *labels])
        raise UnknownName(f"gate {text!r}, column 1: there is no metric {metric!r}; {near}")


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """1 if any gate failed, else 3 if any is undecided, else 0."""
    return 1 if "fail" in verdicts else 3 if "undecided" in verdicts else 0


def show(kind: Kind, value: float) -> str:
    """A value in the unit of its kind."""
    if kind == "length":
        return format_length(int(value))
    if kind == "time":
        return f"{value:.3g} s"
    return f"${value:.4g}" if kind == "money" else f"{value:.3f}"
