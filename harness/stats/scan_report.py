"""What a scan has found so far: verdict, strict bracket, one line of evidence per length, and the sentence for people."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.report.wording import join_words, percent
from longreach.harness.stats.ascend import Scan, Step, Stream
from longreach.harness.stats.effective import Censored, Estimate, contiguous


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """One length that the scan has reached. Evidence is in natural logs."""

    length: int
    n: int
    s: float
    mean: float | None
    step: Step
    up: float
    dn: float
    strict_up: float
    strict_dn: float
    certified: bool
    """The mean is surely above the threshold itself."""
    refuted: bool
    """The mean is surely below it."""
    logged: int
    """Samples that came back after the decision; kept, not used."""

    @property
    def hits(self) -> str:
        """Sum of scores / samples: 44/45."""
        return f"{self.s:.6g}/{self.n}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """A scan at one moment; valid at any."""

    value: int | None
    """Last length that passed with all shorter ones; None if the first did not."""
    low: int | None
    """Strict bracket: last length certified with all shorter ones."""
    high: int
    """Strict bracket: the length before the first that is refuted or not supported; the largest length if there is none
    (the smallest if that is the very first)."""
    high_found: bool
    """Something above `high` is refuted or not supported."""
    censored: Censored | None
    finished: bool
    sentence: str
    notes: tuple[str, ...]
    lengths: tuple[Reached, ...]
    n: int
    tokens: int
    """Length x samples, those that were not used included."""
    assumed_icc: float = 0.0
    """Correlation of scores that share a context, for which the evidence is tempered; 0: each has its own."""
    icc: float | None = None
    """The measured one."""

    def estimate(self, definition: str, threshold: float, first: int) -> Estimate:
        """The form in which cards hold an effective length."""
        single = self.finished and self.low == self.high
        return Estimate(
            value=self.value,
            low=self.low,
            high=self.high,
            censored=self.censored,
            state="measured" if single or (self.censored == "below grid" and self.high == first) else "undecided",
            definition=definition,
            threshold=threshold,
            level=0.95,
            method="ascend",
            n=self.n,
            notes=(self.sentence, *self.notes),
            first=first,
            high_found=self.high_found,
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_scan(scan: Scan, stopped: str | None = None) -> ScanReport:
    """What `scan` has found.

    Args:
        stopped: why it ended early ("the token budget ended"), for the sentence.
    """
    streams = scan.tested()
    grid = [stream.length for stream in streams]
    value = contiguous(grid, [stream.passed for stream in streams])
    low = contiguous(grid, [stream.certified and stream.step != "not supported" for stream in streams])
    ceiling = next((i for i, s in enumerate(streams) if s.refuted or s.step == "not supported"), None)
    high = scan.rule.lengths[-1] if ceiling is None else grid[max(ceiling - 1, 0)]
    censored: Censored | None = None
    if streams and streams[0].failed:
        censored = "below grid"
    elif value == scan.rule.lengths[-1] or (value is not None and streams[-1].step == "not supported"):
        censored = "above grid"
    lengths = tuple(_reached(stream) for stream in streams)
    return ScanReport(
        value=value,
        low=low,
        high=high,
        high_found=ceiling is not None,
        censored=censored,
        finished=scan.finished,
        sentence=_sentence(scan, streams, value, stopped),
        notes=tuple(_notes(streams, low, high if ceiling is not None else None, value)),
        lengths=lengths,
        n=sum(item.n for item in lengths),
        tokens=sum(item.length * (item.n + item.logged) for item in lengths),
        assumed_icc=scan.rule.icc,
    )


def _reached(stream: Stream) -> Reached:
    return Reached(
        length=stream.length,
        n=stream.n,
        s=stream.s,
        mean=stream.mean,
        step=stream.step,
        up=stream.zone.up,
        dn=stream.zone.dn,
        strict_up=stream.strict.up,
        strict_dn=stream.strict.dn,
        certified=stream.certified,
        refuted=stream.refuted,
        logged=sum(len(block) for block in stream.waiting.values() if not isinstance(block, str)),
    )


def _sentence(scan: Scan, streams: Sequence[Stream], value: int | None, stopped: str | None) -> str:
    """Zone statement: the last length that passed, and what came after it."""
    rule = scan.rule
    passed = next((stream for stream in streams if stream.length == value), None)
    after = next((stream for stream in streams if not stream.passed), None)
    parts = []
    if passed is not None:
        parts.append(_about(passed, f"> {rule.zone.low:.2f} with {percent(1 - rule.alpha, 1)} confidence"))
    if after is not None:
        parts.append(_about(after, f"< {rule.zone.high:.2f} with {percent(1 - rule.beta, 1)} confidence"))
    elif value == rule.lengths[-1]:
        parts.append("it is the largest length tested")
    text = "; ".join(parts) or "nothing was tested"
    return f"{text}; stopped because {stopped}." if stopped else f"{text}."


def _about(stream: Stream, claim: str) -> str:
    length, hits = format_length(stream.length), f"{stream.s:.6g}/{stream.n}"
    if stream.step in ("pass", "fail"):
        return f"{length} {stream.step}{'es' if stream.step == 'pass' else 's'} ({claim}, {hits})"
    if stream.step == "not supported":
        return f"{length} is not supported (a prompt did not fit, or was cut)"
    if stream.step == "untestable":
        return f"{length} could not be tested (too many samples failed in transport)"
    if stream.step == "open":
        return f"{length} is undecided so far ({hits})"
    side = "passed" if stream.step == "borderline pass" else "failed"
    return f"{length} is borderline (mean {stream.mean or 0.0:.3f}, {hits}) and counts as {side}"


def _notes(streams: Sequence[Stream], low: int | None, high: int | None, value: int | None) -> list[str]:
    notes = []
    border = [format_length(stream.length) for stream in streams if stream.step.startswith("borderline")]
    if border:
        notes.append(f"Borderline: {join_words(border)} lay too near the threshold to decide; the mean chose the side.")
    outside = (high is not None and value is not None and value > high) or (low is not None and (value or 0) < low)
    if outside:
        upper = f"at most {format_length(high)}" if high is not None else f"at least {format_length(low or 0)}"
        notes.append(
            f"The strict bracket says {upper}; it goes before the verdict of the scan, which ignores the zone."
        )
    return notes
