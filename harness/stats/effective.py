"""Estimate, and effective lengths by a rule: of our own states (the "gate") and of published tables.

Contiguous is the word: an effective length is the largest L such that L and every shorter length hold.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from longreach.harness.errors import ConfigError
from longreach.harness.lengths import format_length

Censored = Literal["above grid", "below grid"]
Verdict = Literal["measured", "undecided", "refused", "not_measured"]
Definition = Literal["ruler", "nolima", "absolute", "largest_passing"]
DEFINITIONS: tuple[Definition, ...] = get_args(Definition)

RULER_THRESHOLD = 85.6
"""Score of Llama-2-7B-chat at 4k, on a scale of 0 to 100 (Hsieh et al. 2024, section 4)."""
NOLIMA_SHARE = 0.85
"""Share of the base score (Modarressi et al. 2025, section 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An effective length (tokens) with its bracket, or the word for why there is none."""

    value: int | None
    """Best estimate; None if nothing passes or nothing was measured."""
    low: int | None
    """Lower end of the bracket: what is reliable. None if no length is."""
    high: int | None
    """Upper end of the bracket. Equal to the largest tested length where no upper end was found."""
    censored: Censored | None
    state: Verdict
    definition: str
    """The rule in words: tasks, depths, threshold."""
    threshold: float | None
    level: float | None
    """Confidence of the bracket; None where the table gives no counts."""
    method: str
    n: int
    """Samples behind it."""
    notes: tuple[str, ...] = ()
    """Whole sentences: what limits it."""
    first: int | None = None
    """Shortest length of the grid."""
    high_found: bool = False
    """True: something above `high` fails or does not fit, so that `high` is a true upper end."""

    @property
    def text(self) -> str:
        """The best estimate in words: `65,536`, `>= 131,072 (largest tested)`, `< 4,096`, `not measured`."""
        if self.state == "not_measured":
            return "not measured"
        if self.censored == "below grid" and self.high is not None:
            return f"< {self.first or self.high:,}"
        if self.value is None:
            return "cannot be stated"
        return f">= {self.value:,} (largest tested)" if self.censored == "above grid" else f"{self.value:,}"

    def to_dict(self) -> dict[str, Any]:
        """The contract's keys, and what else there is."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "censored": self.censored,
            "state": self.state,
            "definition": self.definition,
            "threshold": self.threshold,
            "confidence": self.level,
            "method": self.method,
            "n": self.n,
            "text": self.text,
            "high_found": self.high_found,
            "notes": list(self.notes),
        }


def contiguous(lengths: Sequence[int], passes: Sequence[bool]) -> int | None:
    """Largest length that passes together with every shorter one; None if the first fails."""
    value = None
    for length, good in zip(lengths, passes, strict=True):
        if not good:
            return value
        value = length
    return value


def non_monotone(lengths: Sequence[int], passes: Sequence[bool]) -> str | None:
    """A warning if a length passes above one that fails."""
    lost = next((i for i, good in enumerate(passes) if not good), None)
    if lost is None:
        return None
    again = next((lengths[i] for i in range(lost + 1, len(passes)) if passes[i]), None)
    if again is None:
        return None
    return f"non-monotone: fails at {format_length(lengths[lost])}, passes again at {format_length(again)}"


def _threshold(definition: str, base: float | None, threshold: float | None) -> tuple[float, str]:
    if definition == "ruler":
        return RULER_THRESHOLD, "score >= 85.6 (0 to 100) at every length up to it (RULER)"
    if definition == "nolima":
        if base is None or not math.isfinite(base) or base <= 0:
            raise ConfigError("definition 'nolima' needs the base score: pass base=..., on the scale of the scores")
        # Printed bases are rounded to 0.1 and so are thresholds; the rule itself is on the unrounded product.
        return NOLIMA_SHARE * base, f"score >= 0.85 x base ({base:g}) at every length up to it (NoLiMa)"
    if threshold is None or not math.isfinite(threshold):
        raise ConfigError(
            f"definition {definition!r} needs a threshold: pass threshold=..., on the scale of the scores"
        )
    if definition == "absolute":
        return threshold, f"score >= {threshold:g} at every length up to it"
    return threshold, f"largest length with score >= {threshold:g}, shorter ones ignored"


def _checked(lengths: Sequence[int], scores: Sequence[float | None]) -> list[tuple[int, float]]:
    if len(lengths) != len(scores):
        raise ConfigError(f"{len(lengths)} lengths with {len(scores)} scores; give one score per length")
    rows = sorted(zip(lengths, scores, strict=True))
    tested: list[tuple[int, float]] = []
    for length, score in rows:
        if tested and tested[-1][0] == length:
            raise ConfigError(f"length {length} is given twice; give each length once")
        if score is None or not math.isfinite(score):
            break  # a length that was not tested says nothing, and blocks the longer ones
        tested.append((int(length), float(score)))
    if not tested:
        raise ConfigError("there is no score at the shortest length, so that no effective length follows")
    return tested


def _check_scale(tau: float, scores: Sequence[float]) -> None:
    """Refuses fractions held against percents, and percents against fractions."""
    if tau > 1 and max(scores) <= 1 and max(scores) > 0:
        raise ConfigError(
            f"the scores lie between 0 and 1, but the threshold is {tau:g} on a scale of 0 to 100; "
            f"multiply the scores by 100"
        )
    if 0 < tau < 1 < max(scores):
        raise ConfigError(
            f"the threshold is {tau:g}, but a score is {max(scores):g}; give both on one scale, 0 to 1 or 0 to 100"
        )


def effective_length(
    lengths: Sequence[int],
    scores: Sequence[float | None],
    definition: Definition = "ruler",
    base: float | None = None,
    threshold: float | None = None,
) -> Estimate:
    """Effective length of a table of published scores, by a published definition. Such tables carry no counts, so
    there is no interval: `level` is None, and low = high = value.

    Args:
        lengths: tokens, in any order. scores: one per length; None or NaN = not tested, which blocks longer lengths.
        definition: `ruler`: >= 85.6 on a scale of 0 to 100, unbroken from the shortest. `nolima`: >= 0.85 x `base`,
            unbroken. `absolute`: >= `threshold`, unbroken. `largest_passing`: the largest length with >= `threshold`.

    Raises:
        ConfigError: base or threshold missing, lengths and scores that do not match, an unknown definition.

    Example:
        >>> effective_length([4096, 8192, 16384], [96.3, 87.0, 81.2]).value
        8192
    """
    if definition not in DEFINITIONS:
        raise ConfigError(f"there is no definition {definition!r}; use {', '.join(DEFINITIONS)}")
    tau, words = _threshold(definition, base, threshold)
    rows = _checked(lengths, scores)
    _check_scale(tau, [score for _, score in rows])
    grid = [length for length, _ in rows]
    # Scores are printed with one decimal: a sum in binary may fall a hair short of what is printed.
    passes = [score >= tau - 1e-9 for _, score in rows]
    if definition == "largest_passing":
        value = max((length for length, good in zip(grid, passes, strict=True) if good), default=None)
    else:
        value = contiguous(grid, passes)
    censored: Censored | None = "below grid" if value is None else "above grid" if value == grid[-1] else None
    warning = non_monotone(grid, passes)
    return Estimate(
        value=value,
        low=value,
        high=grid[0] if value is None else value,
        censored=censored,
        state="measured",
        definition=words,
        threshold=tau,
        level=None,
        method=f"published:{definition}",
        n=0,
        notes=(f"The table is {warning}.",) if warning else (),
        first=grid[0],
        high_found=value != grid[-1],
    )
