"""ASCEND: the adaptive scan for an effective length. Short lengths first, nothing skipped, stop at the first failure.

A pure state machine: it is told which blocks have come back and says which to draw next. A block is one sample per
(task, depth stratum), and decisions fall at complete blocks in the order of their numbers, whatever order they arrive
in. Valid at any stop: with 97.5% confidence the verdict covers no length whose mean is at or below the low end of the
zone, and with 97.5% no length at or above its high end is called a failure.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from longreach.harness.stats.evalues import Evidence, Zone, strict_evidence, tempering, zone_evidence

Step = Literal["open", "pass", "fail", "borderline pass", "borderline fail", "untestable", "not supported"]
Cause = Literal["failed", "overflow"]
MAX_DROPPED = 5
"""Blocks that may fail for good at one length, as long as fewer have been completed."""


class Block(NamedTuple):
    """Name of a block: what to draw, or what came back."""

    length: int
    number: int
    """From 0; a block that fails for good is replaced by the next number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is fixed before the first sample; changing any of it means a new scan."""

    lengths: tuple[int, ...]
    """Ascending, tokens."""
    zone: Zone
    size: int
    """Samples in a block: tasks x strata."""
    alpha: float = 0.025
    """Chance that the verdict covers a length at or below the zone. With several verdicts, their number divides it."""
    beta: float = 0.025
    """Chance that a length at or above the zone is called a failure, over all lengths."""
    cap: int = 300
    """Samples per length; then the mean decides and the length is flagged as borderline."""
    certify: bool = False
    """Go on after the verdict until the threshold itself is certified."""
    refine: bool = False
    """After the verdict, test sqrt(2) x the last length that passed."""
    icc: float = 0.0
    """Assumed correlation of the scores that share a context; each block is one context then (prefix-cache mode)."""

    def __post_init__(self) -> None:
        if not self.lengths or list(self.lengths) != sorted(set(self.lengths)) or self.size < 1 or self.cap < self.size:
            raise ValueError(
                "a scan needs ascending lengths, blocks of at least one sample and a cap of one block or more"
            )

    @property
    def to_pass(self) -> float:
        return math.log(1 / self.alpha)

    @property
    def to_fail(self) -> float:
        return math.log((len(self.lengths) + self.refine) / self.beta)

    @property
    def divisor(self) -> float:
        return tempering(self.icc, self.size) if self.icc else 1.0

    def certify_cap(self, length: int) -> int:
        """Samples at `length` after which certifying gives up: 100 at 64k, more where they are cheap or worth less."""
        return round(self.divisor * min(1000, max(100, round(100 * 65536 / length))))


@dataclass(slots=True)
class Stream:
    """The blocks of one length, taken in order."""

    length: int
    rule: Rule
    counts: Counter[float] = field(default_factory=Counter)
    n: int = 0
    """Samples of the blocks that were taken."""
    step: Step = "open"
    taken: list[tuple[float, ...] | Cause] = field(default_factory=list)
    """Blocks that were taken, by number: scores, or why there are none."""
    waiting: dict[int, tuple[float, ...] | Cause] = field(default_factory=dict)
    """Blocks that came back ahead of their turn, or after the decision."""
    stuck: bool = False
    """Too many blocks failed for good."""
    zone: Evidence = field(default_factory=lambda: Evidence(up=0.0, dn=0.0))
    _strict: tuple[int, Evidence] = field(default_factory=lambda: (0, Evidence(up=0.0, dn=0.0)))

    @property
    def s(self) -> float:
        """Sum of scores."""
        return math.fsum(score * n for score, n in self.counts.items())

    @property
    def mean(self) -> float | None:
        return self.s / self.n if self.n else None

    @property
    def strict(self) -> Evidence:
        """Evidence against the threshold itself."""
        if self._strict[0] != self.n:
            self._strict = self.n, strict_evidence(self.counts, self.rule.zone.threshold, self.rule.divisor)
        return self._strict[1]

    @property
    def next(self) -> int:
        """Number of the block to be taken next."""
        return len(self.taken)

    @property
    def used(self) -> list[tuple[float, ...]]:
        """Scores of the blocks that were taken and count."""
        return [block for block in self.taken if not isinstance(block, str)]

    @property
    def certified(self) -> bool:
        """Surely above the threshold."""
        return self.strict.up >= self.rule.to_pass

    @property
    def refuted(self) -> bool:
        """Surely below the threshold, at any length at once."""
        return self.strict.dn >= self.rule.to_fail

    @property
    def passed(self) -> bool:
        return self.step in ("pass", "borderline pass")

    @property
    def failed(self) -> bool:
        return self.step in ("fail", "borderline fail")

    def take(self) -> bool:
        """Takes the next block if it is there; False if it is not."""
        block = self.waiting.pop(self.next, None)
        if block is None:
            return False
        self.taken.append(block)
        if block == "overflow":
            self.step = "not supported"
        elif block == "failed":
            used = len(self.used)
            self.stuck = len(self.taken) - used >= max(MAX_DROPPED, used + 1)
            if self.stuck and self.step == "open":
                self.step = "untestable"
        elif not isinstance(block, str):
            self.counts.update(round(score, 9) for score in block)
            self.n += len(block)
            self._weigh()
        return True

    def _weigh(self) -> None:
        if self.step != "open":  # certifying: the verdict of the scan stands
            return
        rule = self.rule
        self.zone = zone_evidence(self.counts, rule.zone, rule.divisor)
        if self.zone.up >= rule.to_pass:
            self.step = "pass"
        elif self.zone.dn >= rule.to_fail:
            self.step = "fail"
        elif self.n >= rule.cap:
            self.step = "borderline pass" if self.s >= rule.zone.threshold * self.n - 1e-9 else "borderline fail"

    @property
    def certify_done(self) -> bool:
        ended = self.stuck or self.step == "not supported"
        return ended or self.n >= self.rule.certify_cap(self.length) or self.certified or self.refuted

    def fewest(self) -> int:
        """Fewest further blocks after which the length may be decided if all of them pass."""
        if self.step != "open":
            return max(1, math.ceil((self.rule.certify_cap(self.length) - self.n) / self.rule.size))
        gain = zone_evidence({1.0: self.rule.size}, self.rule.zone, self.rule.divisor).up
        to_pass = math.ceil((self.rule.to_pass - self.zone.up) / gain - 1e-9)
        return max(1, min(to_pass, math.ceil((self.rule.cap - self.n) / self.rule.size)))


class Scan:
    """One adaptive scan. Feed it with `put` and `drop`, ask it with `wanted`, read it with `verdict.read`."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._streams = {length: Stream(length=length, rule=rule) for length in rule.lengths}
        self._middle: int | None = None
        self._current = self._find()

    @property
    def streams(self) -> Mapping[int, Stream]:
        """By length, ascending; with the refining length where there is one."""
        return dict(sorted(self._streams.items()))

    @property
    def current(self) -> int | None:
        """The length that is being decided or certified; None when the scan is over."""
        return self._current

    @property
    def finished(self) -> bool:
        return self._current is None

    def put(self, length: int, number: int, scores: Sequence[float]) -> None:
        """A complete block came back: one score in [0, 1] per sample. A block that was seen before is ignored."""
        if len(scores) != self.rule.size or not all(0.0 <= score <= 1.0 for score in scores):
            raise ValueError(
                f"block {number} of length {length} needs {self.rule.size} scores in [0, 1], not {scores!r}"
            )
        self._keep(length, number, tuple(scores))

    def drop(self, length: int, number: int, cause: Cause) -> None:
        """A block cannot be completed: a sample failed for good (a fresh block takes its place), or did not fit."""
        self._keep(length, number, cause)

    def _keep(self, length: int, number: int, block: tuple[float, ...] | Cause) -> None:
        stream = self._streams.get(length) or self._streams.setdefault(length, Stream(length=length, rule=self.rule))
        if number >= stream.next:
            stream.waiting.setdefault(number, block)
        self._advance()

    def wanted(self, in_flight: Collection[Block] = (), ahead: int = 1) -> list[Block]:
        """Blocks to draw now.

        Args:
            in_flight: asked for and not back yet.
            ahead: blocks that may be on their way beyond the last decision; more is faster and wastes up to
                ahead - 1 blocks at the length that fails, none at those where everything passes.
        """
        if self._current is None:
            return []
        stream = self._streams[self._current]
        numbers = range(stream.next, stream.next + min(max(ahead, 1), stream.fewest()))
        names = (Block(stream.length, number) for number in numbers if number not in stream.waiting)
        return [name for name in names if name not in in_flight]

    def with_icc(self, icc: float) -> "Scan":
        """The same blocks under another assumed correlation: what cache mode does when the measured one is larger.

        The cap grows with what a sample is worth less.
        """
        cap = round(self.rule.cap * tempering(icc, self.rule.size) / self.rule.divisor)
        scan = Scan(replace(self.rule, icc=icc, cap=cap))
        for stream in self._streams.values():
            for number, block in (*enumerate(stream.taken), *stream.waiting.items()):
                scan._keep(stream.length, number, block)
        return scan

    def _advance(self) -> None:
        while self._current is not None and self._streams[self._current].take():
            self._current = self._find()

    def _find(self) -> int | None:
        """The length whose next block decides something."""
        grid = [self._streams[length] for length in self.rule.lengths]
        for stream in grid:
            if stream.step == "open":
                return stream.length
            if not stream.passed:
                break
        if self.rule.refine and (middle := self._refining(grid)) is not None:
            stream = self._streams.setdefault(middle, Stream(length=middle, rule=self.rule))
            self._middle = middle
            if stream.step == "open":
                return middle
        return self._certifying() if self.rule.certify else None

    def _refining(self, grid: Sequence[Stream]) -> int | None:
        """The length between the last pass and the first failure, a multiple of 8 tokens."""
        passed = [stream.length for stream in grid if stream.passed]
        failed = [stream.length for stream in grid if stream.failed]
        if not passed or not failed:
            return None
        middle = round(passed[-1] * math.sqrt(2) / 8) * 8
        return middle if passed[-1] < middle < failed[0] else None

    def _certifying(self) -> int | None:
        grid = self.tested()
        for stream in grid:
            if stream.failed and not stream.certify_done:
                return stream.length
        for stream in grid:
            if not stream.passed:
                return None
            if not stream.certify_done:
                return stream.length
            if not stream.certified:
                return None
        return None

    def tested(self) -> list[Stream]:
        """Streams of the lengths that the scan has reached, ascending."""
        reached = {*self.rule.lengths} | ({self._middle} if self._middle else set())
        return [
            stream
            for length, stream in self.streams.items()
            if length in reached and (stream.n or stream.step != "open")
        ]
