"""Position against length in plain words."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from longreach.harness.lengths import format_length
from longreach.harness.report.compare_text import change_text
from longreach.harness.report.wording import percent
from longreach.harness.stats.bias import Bias, Shape
from longreach.harness.stats.contrasts import Contrast

if TYPE_CHECKING:
    from longreach.harness.stats.firth import Effect


def bias_sentences(found: Sequence[Bias]) -> list[str]:
    """Two or three sentences per task."""
    return [sentence for bias in found for sentence in _sentences(bias)]


def _sentences(bias: Bias) -> list[str]:
    level, at = bias.level, format_length(bias.reference)
    design = f"the same {bias.items} items in every cell of {len(bias.lengths)} lengths x {len(bias.depths)} depths"
    if bias.nested:
        design += ", the filler of a shorter length being the beginning of that of a longer one"
    limits = f"{percent(max(level.low, 0.0))} to {percent(min(level.high, 1.0))}"
    lines = [
        f"{bias.task} ({design}) {_slope(bias.slope)}; at {at} it scores {percent(level.value)} ({limits}); "
        + f"{_position(bias.position)}{_interaction(bias.interaction)}."
    ]
    if bias.paired is not None:
        lines.append(
            f"The same questions at {format_length(bias.lengths[-1])} instead of {format_length(bias.lengths[0])}: "
            f"{change_text(bias.paired)} points, {bias.paired.lost} lost and {bias.paired.won} won of {bias.paired.n} "
            f"(p {bias.paired.p:.2g}, {bias.paired.method})."
        )
    if bias.shape is not None:
        lines.append(_shape(bias.shape))
    if bias.items < 30:
        lines.append(f"{bias.items} items per cell are a screening; take --samples 30 for claims.")
    return lines


def _shape(shape: Shape) -> str:
    penalty = " with Firth's penalty" if shape.method == "Firth" else ""
    return (
        f"The same as a logistic curve{penalty}, averaged over the samples, errors by {shape.clusters} template families: "
        f"{_signed(shape.doubling)} per doubling; {_signed(shape.position)} from the middle to the edges."
    )


def _signed(effect: "Effect") -> str:
    """`-11 points (-18 to -5)`; without limits where there is no error to measure against."""
    limits = f" ({100 * effect.low:+.0f} to {100 * effect.high:+.0f})" if effect.p < 1.0 else " (no limits)"
    return f"{100 * effect.value:+.0f} points{limits}"


def _slope(effect: Contrast) -> str:
    if effect.low <= 0.0 <= effect.high:
        return f"shows no effect of length (less than {_bound(effect)} points per doubling)"
    verb = "loses" if effect.value < 0 else "gains"
    return f"{verb} {_points(effect)} per doubling"


def _position(effect: Contrast) -> str:
    if effect.low <= 0.0 <= effect.high:
        return f"no effect of position is detectable (less than {_bound(effect)} points)"
    return f"the middle is {_points(effect)} {'below' if effect.value > 0 else 'above'} the edges"


def _interaction(effect: Contrast) -> str:
    if effect.low <= 0.0 <= effect.high:
        return ""
    return f", and this gap {'grows' if effect.value > 0 else 'shrinks'} by {_points(effect)} per doubling"


def _points(effect: Contrast) -> str:
    """Size with its limits, without sign: `11 points (5 to 18)`."""
    low, high = sorted((abs(effect.low), abs(effect.high)))
    return f"{100 * abs(effect.value):.0f} points ({100 * low:.0f} to {100 * high:.0f})"


def _bound(effect: Contrast) -> str:
    return f"{math.ceil(1000 * max(-effect.low, effect.high)) / 10:.1f}"
