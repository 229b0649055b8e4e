"""Did the server read all that was sent? Its prompt count against ours, by the rules of three kinds of tokenizer.

    own tokenizer and template    server = ours + a constant, learnt from the first replies: not one token less
    template unknown              the template can only add: at most 0.5% less
    labelled fallback             server = ours x a ratio, learnt from the first replies: at most 2% less, and never
                                  less than a third: a server that cuts from the first reply on teaches no ratio

The constant and the ratio are learnt task by task, since tasks differ in answer prefix and in kind of text.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median_high

CALIBRATION = 5
"""Replies that a constant or a ratio is learnt from."""
TEMPLATE_TOKENS = 64
"""No chat template alone is longer; a larger shortfall is never taken for a constant."""


LEAST_RATIO = 0.3
"""No tokenizer is so coarse that it counts fewer tokens than this share of the fallback's: even the first reply was cut."""


@dataclass(slots=True, kw_only=True)
class TruncationGuard:
    """Compares counts reply by reply; feed it the shortest lengths first."""

    knows_template: bool
    is_estimate: bool
    _offsets: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list), init=False)
    _ratios: dict[str, dict[int, list[float]]] = field(default_factory=lambda: defaultdict(dict), init=False)

    def check(self, task: str, *, length: int, ours: int, server: int, prefix: int = 0) -> str | None:
        """None if the server read everything, else a sentence that says what is missing.

        Args:
            ours, server: tokens of the prompt by each count.
            prefix: tokens of the answer prefix, which some servers leave out of their count.
        """
        if self.is_estimate:
            least = self._least_by_ratio(task, length, ours, server)
        elif self.knows_template:
            least = self._least_by_constant(task, ours, server) - prefix
        else:
            least = 0.995 * ours - prefix
        if server >= least:
            return None
        kind = "about " if self.is_estimate or not self.knows_template else ""
        return (
            f"the server read {server:,} prompt tokens where {kind}{round(least):,} were sent: it cuts prompts; "
            f"raise its window (for example --max-model-len or num_ctx) or test shorter lengths"
        )

    def _least_by_constant(self, task: str, ours: int, server: int) -> float:
        offsets = self._offsets[task]
        if len(offsets) < CALIBRATION and server - ours >= -TEMPLATE_TOKENS:
            offsets.append(server - ours)
        return ours + (min(offsets) if offsets else -TEMPLATE_TOKENS)

    def _least_by_ratio(self, task: str, length: int, ours: int, server: int) -> float:
        """The template's tokens are taken off first, so that a ratio of short prompts holds for long ones."""
        by_length = self._ratios[task]
        known = [median_high(ratios) for shorter, ratios in by_length.items() if shorter <= length]
        least = max(0.98 * max(known, default=0.0), LEAST_RATIO) * ours
        if server >= least and len(by_length.get(length, ())) < CALIBRATION:
            by_length.setdefault(length, []).append(max(server - TEMPLATE_TOKENS, 0) / ours)
        return least
