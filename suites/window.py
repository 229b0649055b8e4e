"""Which slice of a corpus to take, and at which cuts the needles go: one joint, vectorised search.

Many windows are drawn at once; taken is one whose end is as short of the wanted tokens as asked and which has a cut
near enough to the depth of the anchor, the needle that the depth is about. Sentence ends first; words, then graphemes,
only where those do not do. In a text made of elements (`Layout`) a window starts at one, and needles go between two.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import ceil

import numpy as np
from numpy.typing import NDArray

from longreach.suites.corpus import Corpus
from longreach.suites.cuts import GRAPHEME, LINE, SENTENCE, UNIT, WORD, Cuts, Ints

DRAWS = (64, 1024)
"""Windows tried at once; the second number only where the first finds nothing."""
DEPTH_TOLERANCE = 0.009
"""Fraction of the haystack by which the anchor may miss its depth; the promise is 0.01."""
OTHER_TOLERANCE = 0.03
"""The same for the other needles: farther off than this, a word's end is taken where a sentence's would be nicer."""
SLACK = 1
"""Tokens by which the window may miss the wanted count on either side."""
WIDE = 3
"""The same where a window of whole elements ends with one of their sentences."""
Level = tuple[int, int, int]
"""Levels of the window's end and of the anchor's cut, and slack."""
LEVELS: tuple[Level, ...] = (
    (SENTENCE, SENTENCE, SLACK),
    (WORD, SENTENCE, SLACK),
    (LINE, LINE, SLACK),
    (WORD, LINE, SLACK),
    (WORD, WORD, SLACK),
    (GRAPHEME, GRAPHEME, SLACK),
)
"""In order of preference."""
UNIT_LEVELS: tuple[Level, ...] = (
    (UNIT, UNIT, SLACK),
    (SENTENCE, UNIT, WIDE),
    (WORD, UNIT, SLACK),
    (WORD, UNIT, WIDE),
    (GRAPHEME, UNIT, SLACK),
)
"""The same for a text made of elements."""
CANDIDATE_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Indices of cuts: the slice is `start` to `end`, and needle i goes to `needles[i]`."""

    start: int
    end: int
    needles: tuple[int, ...]

    def n_tokens(self, cuts: Cuts) -> int:
        """Tokens of the slice, needles not counted."""
        return int(cuts.counts[self.end]) - int(cuts.counts[self.start])


def _starts(corpus: Corpus, n_tokens: int, bits: int, n: int) -> Ints:
    """`n` cuts (indices) where a window of `n_tokens` may start: starts of sentences or elements that leave room for it.

    Args:
        bits: CANDIDATE_BITS random ones for each.
    """
    cuts = corpus.cuts
    level = UNIT if corpus.layout else SENTENCE
    starts, counts = cuts.by_level[level][:-1], cuts.counts_by_level[level][:-1]
    room = int(counts.searchsorted(min(cuts.n_tokens - n_tokens, corpus.period - 1), side="right"))
    raw = np.frombuffer(bits.to_bytes(CANDIDATE_BITS // 8 * n, "little"), dtype="<u4")
    scaled = raw.astype(np.uint64) * np.uint64(max(room, 1)) >> np.uint64(CANDIDATE_BITS)
    picked: Ints = starts[scaled.astype(np.int64)]
    return picked


def choose(
    corpus: Corpus,
    n_tokens: int,
    depths: Sequence[float],
    rng: random.Random,
    start: int | None = None,
    anchor: int = 0,
    *,
    every_depth: bool = False,
    keeps_start: bool = False,
) -> Window | None:
    """A window of `n_tokens` (give or take a few) with a cut near each depth; None if the text allows none.

    Args:
        start: cut that the window has to start at (a second try); else it is drawn.
        anchor: index of the needle whose depth is promised.
        every_depth: the other needles leave the ends of sentences as soon as the anchor would.
        keeps_start: `start` is kept even where another would have a place nearer to the depth.
    """
    others = DEPTH_TOLERANCE if every_depth else OTHER_TOLERANCE
    cuts = corpus.cuts
    numbers: tuple[int, ...] = DRAWS
    if start is not None:  # a text's elements may leave no place near the depth from there
        numbers = DRAWS[-1:] if corpus.layout and not keeps_start else ()
    # All bits are drawn, whether they are looked at or not: what is drawn after this window does not depend on luck.
    pools = [cache(partial(_starts, corpus, n_tokens, rng.getrandbits(CANDIDATE_BITS * n), n)) for n in numbers]
    if start is not None:
        pools.insert(0, cache(partial(np.array, [start])))
    levels = UNIT_LEVELS if corpus.layout else LEVELS
    for tolerance in (DEPTH_TOLERANCE, 1.0) if corpus.layout else (DEPTH_TOLERANCE,):
        for level in levels:
            for pool in pools:
                hit = _best_hit(cuts, pool(), n_tokens, depths, level, anchor, tolerance)
                if hit is not None:
                    return Window(
                        start=hit[0], end=hit[1], needles=_place(cuts, *hit, depths, level[1], anchor, others)
                    )
    nearest = _nearest(cuts, pools[-1](), n_tokens, depths[anchor : anchor + 1])
    if nearest is None:
        return None
    finest = UNIT if corpus.layout else GRAPHEME
    return Window(start=nearest[0], end=nearest[1], needles=_place(cuts, *nearest, depths, finest, anchor, others))


def _ends(cuts: Cuts, starts: Ints, limit: int, level: int) -> tuple[Ints, Ints]:
    """Index of the last cut of `level` that keeps each window within `limit` tokens, and the window's tokens."""
    if not cuts.ends_by_level[level].size:
        return starts, np.zeros_like(starts)
    limits = cuts.counts[starts] + limit
    at = cuts.end_counts_by_level[level].searchsorted(limits, side="right") - 1
    ends: Ints = np.maximum(cuts.ends_by_level[level][at], starts)
    return ends, cuts.counts[ends] - cuts.counts[starts]


def _depth_errors(cuts: Cuts, starts: Ints, ends: Ints, depths: Sequence[float], level: int) -> NDArray[np.float64]:
    """Tokens between each wanted depth and the nearest cut of `level` inside each window, shape (n_depths, n_windows)."""
    among = cuts.counts_by_level[level]
    low, high = cuts.counts[starts], cuts.counts[ends]
    wanted = low + np.array(depths)[:, None] * (high - low)
    after = among.searchsorted(np.ceil(wanted).astype(np.int64))  # a search for floats would copy all of `among`
    right = among.take(after, mode="clip")
    right = np.where(right > high, low if level == UNIT else high, right)
    left = np.maximum(among[np.maximum(after - 1, 0)], low)
    errors: NDArray[np.float64] = np.minimum(np.abs(right - wanted), np.abs(wanted - left))
    for row, depth in enumerate(depths):
        if depth in (0.0, 1.0):
            errors[row] = 0.0
    return errors


def _best_hit(
    cuts: Cuts, starts: Ints, n_tokens: int, depths: Sequence[float], level: Level, anchor: int, tolerance: float
) -> tuple[int, int] | None:
    """Start and end of a window that fits; of several, the one with the other needles nearest to their depths.

    With a `tolerance` of 1 any depth fits, and the nearest is taken.
    """
    end_level, needle_level, slack = level
    ends, sizes = _ends(cuts, starts, n_tokens + slack, end_level)
    fits = np.flatnonzero(np.abs(sizes - n_tokens) <= slack)
    if not fits.size:
        return None
    starts, ends = starts[fits], ends[fits]
    if not depths:
        return int(starts[0]), int(ends[0])
    errors = _depth_errors(cuts, starts, ends, depths, needle_level)
    # One token less than the tolerance: whoever counts the text before the needle alone may be one off.
    hits = np.flatnonzero(errors[anchor] <= max(0.5, tolerance * n_tokens - 1.0))
    if not hits.size:
        return None
    if tolerance < 1.0:
        errors[anchor] = 0.0  # near enough: the others decide
        best = hits[errors[:, hits].max(axis=0).argmin()]
    else:
        best = hits[errors[anchor, hits].argmin()]
    return int(starts[best]), int(ends[best])


def _nearest(cuts: Cuts, starts: Ints, n_tokens: int, depths: Sequence[float]) -> tuple[int, int] | None:
    """Where nothing fits: the finest cuts, the size first, then the depth."""
    ends, sizes = _ends(cuts, starts, n_tokens + SLACK, GRAPHEME)
    errors = np.maximum(np.abs(sizes - n_tokens), SLACK) * 1e6
    errors = errors + _depth_errors(cuts, starts, ends, depths, GRAPHEME).sum(axis=0)
    best = int(np.argmin(errors))
    return (int(starts[best]), int(ends[best])) if sizes[best] > 0 else None


def _place(
    cuts: Cuts, start: int, end: int, depths: Sequence[float], level: int, anchor: int, others: float
) -> tuple[int, ...]:
    """Cuts for all needles, in order: the anchor's at its depth, the others on either side, each its own if there is room.

    Args:
        others: fraction of the haystack by which the other needles may miss their depths for the end of a sentence.
    """
    if not depths:
        return ()
    low, high = int(cuts.counts[start]), int(cuts.counts[end])
    spots = [low + depth * (high - low) for depth in depths]
    middle = _cut_at(cuts, start, end, spots[anchor], level, DEPTH_TOLERANCE * (high - low))
    place = start if depths[anchor] == 0.0 else end if depths[anchor] == 1.0 else start if middle is None else middle
    allowed = others * (high - low)
    before = _spread(cuts, start, place - 1, spots[:anchor], level, allowed)
    after = _spread(cuts, place + 1, end, spots[anchor + 1 :], level, allowed, end)
    return (*(min(max(cut, start), place) for cut in before), place, *(max(cut, place) for cut in after))


def _spread(
    cuts: Cuts, first: int, last: int, spots: Sequence[float], level: int, allowed: float, end: int = -1
) -> list[int]:
    """Cuts from `first` to `last` (indices) nearest to `spots` tokens, each its own as long as there are any.

    Needles that find no cut left share that of the one before, or of the anchor: an index outside the range says so.

    Args:
        end: the window's end, which is a place for a needle whatever its level; -1 if it is not in the range.
    """
    chosen: list[int] = []
    least = first
    for spot in spots:
        at = end if least <= end and spot >= cuts.counts[end] else _cut_at(cuts, least, last, spot, level, allowed)
        chosen.append(last + 1 if at is None else at)
        least = chosen[-1] + 1
    top = last
    for i in range(len(chosen) - 1, -1, -1):  # needles that were crowded at the end move back
        if chosen[i] > top:
            at = end if top == end else _cut_at(cuts, first, top, float(cuts.counts[max(top, 0)]), level, allowed)
            chosen[i] = first - 1 if at is None else at
        top = chosen[i] - 1
    return chosen


def _cut_at(cuts: Cuts, first: int, last: int, wanted: float, level: int, allowed: float) -> int | None:
    """The cut between the indices `first` and `last` nearest to `wanted` tokens, at the coarsest level near enough.

    None where there is none. Level UNIT has no finer ones.
    """
    best, distance = None, float("inf")
    for finer in range(level, -1, -1) if level < UNIT else (UNIT,):
        among, counts = cuts.by_level[finer], cuts.counts_by_level[finer]
        low, high = int(among.searchsorted(first)), int(among.searchsorted(last, side="right"))
        if low >= high:
            continue
        after = int(counts.searchsorted(ceil(wanted)))
        for at in (after - 1, after):
            at = min(max(at, low), high - 1)
            if (missed := abs(int(counts[at]) - wanted)) < distance:
                best, distance = int(among[at]), missed
        if distance <= allowed:
            break
    return best


def move_end(cuts: Cuts, window: Window, n_tokens: int) -> Window:
    """The window with its end moved by about `n_tokens` (negative: back); needles stay, those at the end go with it."""
    wanted = int(cuts.counts[window.end]) + n_tokens
    among = cuts.ends_by_level[GRAPHEME]
    at = int(np.searchsorted(cuts.end_counts_by_level[GRAPHEME], wanted, side="right")) - 1
    end = max(int(among[min(max(at, 0), among.size - 1)]), window.start + 1)
    needles = tuple(end if cut == window.end else min(cut, end) for cut in window.needles)
    return Window(start=window.start, end=end, needles=needles)
