"""Texts made of elements: what stands between two of them, how one is hidden among them, and how the text ends.

A window of such a text begins with an element, and needles are elements of their own between whole ones. Only the last
element may be cut, and only inside its free text (in plain lines: anywhere), so that a constant ending makes it whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longreach.suites.cuts import UNIT, Cuts, Ints, make_cuts


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How elements are put together."""

    separator: str = "\n"
    """Between two elements: newlines only."""
    close: str = ""
    """What ends an element after its free text."""

    def together(self, elements: Sequence[str]) -> str:
        """Several elements as one text."""
        return self.separator.join(elements)


LINES = Layout()
"""Plain lines, as in RULER's noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A generated text, with its elements where it is made of such."""

    text: str
    layout: Layout | None = None
    ends: Ints | None = None
    """Character where each element ends, ascending."""
    free: Ints | None = None
    """Characters where the free text of each begins and ends, shape (n, 2)."""


def made_of(elements: Sequence[tuple[str, str]], layout: Layout) -> Made:
    """The text of elements that are given as what stands before the free text, and the free text."""
    texts = [opening + free + layout.close for opening, free in elements]
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    starts = np.append(0, np.cumsum(sizes + len(layout.separator))[:-1])
    ends = starts + sizes
    openings = np.array([len(opening) for opening, _ in elements], dtype=np.int64)
    free = np.stack((starts + openings, ends - len(layout.close)), axis=1)
    return Made(text=layout.together(texts), layout=layout, ends=ends, free=free)


def unit_cuts(cuts: Cuts, made: Made) -> Cuts:
    """The cuts of a text with level UNIT between its elements, and windows that end only where that can be mended."""
    assert made.layout is not None and made.ends is not None and made.free is not None
    positions = cuts.positions
    at = np.minimum(np.searchsorted(positions, made.ends), positions.size - 1)
    # A newline may be one token with the sign before it: then the cut stands behind it.
    at = at[positions[at] <= made.ends + len(made.layout.separator)]
    levels = cuts.levels.copy()
    levels[0] = levels[at] = UNIT
    element = np.minimum(np.searchsorted(made.ends, positions), made.ends.size - 1)
    inside = (positions > made.free[element, 0]) & (positions <= made.free[element, 1])
    if not made.layout.close:
        inside[at] = True
    ends = np.where(inside, levels, -1).astype(np.int8)
    return make_cuts(positions, cuts.counts, levels, ends)
