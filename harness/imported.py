"""What an importer hands over: the samples and summary rows of another tool, still in no folder.

An importer is one function `read(paths) -> ImportedRun`, found through the entry points `longreach.imports`. It takes over
what the other tool measured and says what it did not understand; it never makes a score of a missing one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longreach.harness.record import COUNTED, Outcome
from longreach.harness.task import Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTask:
    """One task of the other tool."""

    label: str
    """`tool:task`, or the name of our own task if it ran there."""
    capability: Capability
    family: str
    chance: float = 0.0
    version: int = 1
    source: str = ""
    own: Mapping[str, Any] | None = None
    """Our own task that ran elsewhere: {"task": name, "params": {...}, "id": task id}."""
    is_beside: bool = False
    """Its battery keeps it out of the headline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSample:
    """One sample. `place` must be unique in a run; of two with one place the rule of `ImportedRun` decides."""

    task: str
    """Label of its task."""
    length: int
    """Tokens as the other tool counts them; see `ImportedRun.lengths`."""
    depth: float | None = None
    index: int
    seed: int = 0
    outcome: Outcome = "scored"
    score: float | None
    """0 to 1; None for outcomes that are never scored."""
    published: float | None = None
    """Value by the published rule, where `score` is another one."""
    parts: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    target: tuple[str, ...] = ()
    placed: tuple[float, ...] = ()
    prompt_sha256: str | None = None
    n_tokens: int | None = None
    n_prompt_tokens: int | None = None
    n_output_tokens: int | None = None
    latency_s: float | None = None
    finish: str | None = None
    error: str | None = None
    groups: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, int, float | None, int, int]:
        return self.task, self.length, self.depth, self.index, self.seed


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow:
    """A mean without its samples. It is shown beside the measured rows and feeds no effective length."""

    task: str
    length: int
    mean: float
    """0 to 1."""
    n: int | None = None
    """Samples behind it; None if nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """All that was understood of one or more files.

    Two samples of one place: an answer beats a failure, and of two answers the later file (or line) counts.
    """

    tool: str
    """Name of the format; `imported:<tool>` is the origin of its records."""
    model: str | None
    """As the other tool names it; None if it does not."""
    tasks: Sequence[ImportedTask]
    samples: Sequence[ImportedSample] = ()
    rows: Sequence[SummaryRow] = ()
    vendor: bool = False
    """The rows are what a vendor printed, not what a tool wrote."""
    tokenizer: str = "not stated"
    """By which lengths are counted, in words or as a SPEC."""
    tokenizer_spec: str | None = None
    """SPEC of the tokenizer, where our own tasks ran and their prompts can be rebuilt."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """JSON for the card's provenance: tool version, date, sampling."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader of the numbers needs."""
    not_understood: tuple[str, ...] = ()
    """What was left out, each with its file."""


def is_beside(headline: Mapping[str, Sequence[str]], capability: str, label: str) -> bool:
    """True for a task that a battery keeps out of the headline of its capability, which names others."""
    named = headline.get(capability, ())
    return bool(named) and label not in named


Reader = Callable[[Sequence[Path]], ImportedRun]


def as_score(value: object, *, scale: float = 1.0) -> float | None:
    """The score in [0, 1] that a foreign value stands for; None if it stands for none.

    None, "N/A", "", NaN, infinities and negative sentinels (-1) are no scores, whatever a log calls them.

    >>> as_score(87.5, scale=100), as_score(True), as_score(-1), as_score("N/A"), as_score(float("nan"))
    (0.875, 1.0, None, None, None)
    """
    if isinstance(value, str):
        try:
            value = float(value.strip().removesuffix("%"))
        except ValueError:
            return None
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    found = value / scale
    return found if 0.0 <= found <= 1.0 else None


def deduplicated(samples: Sequence[ImportedSample]) -> tuple[list[ImportedSample], int]:
    """One sample per place, and how many others there were."""
    kept: dict[tuple[str, int, float | None, int, int], ImportedSample] = {}
    for sample in samples:
        old = kept.get(sample.place)
        if old is None or sample.outcome in COUNTED or old.outcome not in COUNTED:
            kept[sample.place] = sample
    return list(kept.values()), len(samples) - len(kept)
