"""What canaries showed about an endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from longreach.harness.stats.usage import MOST_ADDED, MOST_RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One length: what was sent, what the server says that it read, what was found."""

    length: int
    sent: int
    """Tokens of the prompt by our count."""
    read: int | None = None
    """Tokens of the prompt by the server's count; None = not reported."""
    state: str = "unknown"
    """read, truncated, overflow, too_large, failed, or unknown where nothing tells."""
    lost: str | None = None
    """start, end, or None where no answer shows which part is missing."""
    error: str | None = None


@dataclass(slots=True, kw_only=True)
class Checked:
    """What the canaries showed."""

    usage: bool = False
    streaming: bool = False
    cached: str = "unknown"
    """reported, or unknown."""
    reasoning: bool = False
    answers: bool = False
    """The short canaries were answered rightly."""
    empty: bool = False
    """An answer was empty at its limit: reasoning may have used it up."""
    template_tokens: int | None = None
    """Tokens that the server adds to the text of a message."""
    ratio: float | None = None
    """Server's tokens over ours."""
    readings: list[Reading] = field(default_factory=list)
    requests: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the model says about itself."""

    @property
    def truncated(self) -> Reading | None:
        """The first length of which a part was not read."""
        return next((reading for reading in self.readings if reading.state == "truncated"), None)

    @property
    def longest_read(self) -> int:
        """Longest length that was read whole, 0 if none."""
        return max((reading.length for reading in self.readings if reading.state == "read"), default=0)

    @property
    def counts_wrongly(self) -> bool:
        """True if the counts are too many for any tokenizer and any template."""
        return (self.ratio or 0.0) > MOST_RATIO or (self.template_tokens or 0) > MOST_ADDED

    def to_dict(self) -> dict[str, Any]:
        """JSON, without what the model says about itself, and without sizes that cannot be right."""
        names = ("usage", "streaming", "cached", "reasoning", "answers", "template_tokens", "ratio", "requests")
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.counts_wrongly:
            found |= {"template_tokens": None, "ratio": None}
        found["readings"] = [
            {name: getattr(reading, name) for name in ("length", "sent", "read", "state", "lost")}
            for reading in self.readings
        ]
        return found | {"length": max((reading.length for reading in self.readings), default=0)}
