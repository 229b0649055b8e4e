"""Which slice of a corpus to take, and at which cuts the needles go: one joint, vectorised search.

Many windows are drawn at once; taken is one whose end is as short of the wanted tokens as asked and which has a cut
near enough to the first needle's depth. Sentence ends first; words, then graphemes, only where those do not do.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longreach.suites.corpus import Corpus
from longreach.suites.cuts import GRAPHEME, LINE, SENTENCE, WORD, Cuts, Ints

DRAWS = (64, 1024)
"""Windows tried at once; the second number only where the first finds nothing."""
DEPTH_TOLERANCE = 0.009
"""Fraction of the haystack by which the first needle may miss its depth; the promise is 0.01."""
LATER_TOLERANCE = 0.03
"""The same for the needles after it: farther off than this, a word's end is taken where a sentence's would be nicer."""
LEVELS = ((SENTENCE, SENTENCE), (WORD, SENTENCE), (LINE, LINE), (WORD, LINE), (WORD, WORD), (GRAPHEME, GRAPHEME))
"""Levels of the window's end and of the first needle's cut, in order of preference."""
SLACK = 1
"""Tokens by which the window may miss the wanted count on either side."""
CANDIDATE_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Indices of cuts: the slice is `start` to `end`, and needle i goes to `needles[i]`."""

    start: int
    end: int
    needles: tuple[int, ...]


def draw_starts(corpus: Corpus, n_tokens: int, rng: random.Random, n: int) -> Ints:
    """`n` random cuts (indices) where a window of `n_tokens` may start: sentence starts that leave room for it."""
    cuts = corpus.cuts
    starts, counts = cuts.by_level[SENTENCE][:-1], cuts.counts_by_level[SENTENCE][:-1]
    room = int(np.searchsorted(counts, min(cuts.n_tokens - n_tokens, corpus.period - 1), side="right"))
    raw = np.frombuffer(rng.getrandbits(CANDIDATE_BITS * n).to_bytes(CANDIDATE_BITS // 8 * n, "little"), dtype="<u4")
    scaled = raw.astype(np.uint64) * np.uint64(max(room, 1)) >> np.uint64(CANDIDATE_BITS)
    picked: Ints = starts[scaled.astype(np.int64)]
    return picked


def choose(
    corpus: Corpus, n_tokens: int, depths: Sequence[float], rng: random.Random, start: int | None = None
) -> Window | None:
    """A window of `n_tokens` (give or take SLACK) with a cut near each depth; None if the text allows none.

    Args:
        start: cut that the window has to start at (a second try); else it is drawn.
    """
    cuts = corpus.cuts
    pools = (np.array([start]),) if start is not None else tuple(draw_starts(corpus, n_tokens, rng, n) for n in DRAWS)
    for end_level, level in LEVELS:
        for starts in pools:
            hit = _best_hit(cuts, starts, n_tokens, depths, end_level, level)
            if hit is not None:
                return Window(start=hit[0], end=hit[1], needles=_place(cuts, *hit, depths, level))
    nearest = _nearest(cuts, pools[-1], n_tokens, depths)
    if nearest is None:
        return None
    return Window(start=nearest[0], end=nearest[1], needles=_place(cuts, *nearest, depths, GRAPHEME))


def _ends(cuts: Cuts, starts: Ints, n_tokens: int, level: int) -> tuple[Ints, Ints]:
    """Index of the last cut of `level` that keeps each window within n_tokens + SLACK, and the window's tokens."""
    limits = cuts.counts[starts] + n_tokens + SLACK
    ends: Ints = cuts.by_level[level][np.searchsorted(cuts.counts_by_level[level], limits, side="right") - 1]
    return ends, cuts.counts[ends] - cuts.counts[starts]


def _depth_errors(cuts: Cuts, starts: Ints, ends: Ints, depth: float, level: int) -> NDArray[np.float64]:
    """Tokens between the wanted depth and the nearest cut of `level` inside each window."""
    if depth in (0.0, 1.0):
        return np.zeros(starts.size)
    among = cuts.counts_by_level[level]
    low, high = cuts.counts[starts], cuts.counts[ends]
    wanted = low + depth * (high - low)
    after = np.searchsorted(among, wanted)
    right = np.minimum(among[np.minimum(after, among.size - 1)], high)
    left = np.maximum(among[np.maximum(after - 1, 0)], low)
    errors: NDArray[np.float64] = np.minimum(np.abs(right - wanted), np.abs(wanted - left))
    return errors


def _best_hit(
    cuts: Cuts, starts: Ints, n_tokens: int, depths: Sequence[float], end_level: int, level: int
) -> tuple[int, int] | None:
    """Start and end of a window that fits; of several, the one with the later needles nearest to their depths."""
    ends, sizes = _ends(cuts, starts, n_tokens, end_level)
    good = np.abs(sizes - n_tokens) <= SLACK
    if depths and good.any():
        # One token less than the tolerance: whoever counts the text before the needle alone may be one off.
        allowed = max(0.5, DEPTH_TOLERANCE * n_tokens - 1.0)
        good &= _depth_errors(cuts, starts, ends, depths[0], level) <= allowed
    hits = np.flatnonzero(good)
    if not hits.size:
        return None
    best = hits[0]
    if len(depths) > 1 and hits.size > 1:
        worst = np.max([_depth_errors(cuts, starts[hits], ends[hits], depth, level) for depth in depths[1:]], axis=0)
        best = hits[int(np.argmin(worst))]
    return int(starts[best]), int(ends[best])


def _nearest(cuts: Cuts, starts: Ints, n_tokens: int, depths: Sequence[float]) -> tuple[int, int] | None:
    """Where nothing fits: the finest cuts, the size first, then the first needle's depth."""
    ends, sizes = _ends(cuts, starts, n_tokens, GRAPHEME)
    errors = np.maximum(np.abs(sizes - n_tokens), SLACK) * 1e6
    if depths:
        errors = errors + _depth_errors(cuts, starts, ends, depths[0], GRAPHEME)
    best = int(np.argmin(errors))
    return (int(starts[best]), int(ends[best])) if sizes[best] > 0 else None


def _place(cuts: Cuts, start: int, end: int, depths: Sequence[float], level: int) -> tuple[int, ...]:
    """Cuts for all needles, in order, each its own where there are enough.

    A needle goes to the nearest cut of `level`; to a finer one where that is too far away or already taken.
    """
    low, high = int(cuts.counts[start]), int(cuts.counts[end])
    chosen: list[int] = []
    for number, depth in enumerate(depths):
        allowed = (LATER_TOLERANCE if number else DEPTH_TOLERANCE) * (high - low)
        least = chosen[-1] + 1 if chosen else start
        chosen.append(_nearest_cut(cuts, min(least, end), end, low + depth * (high - low), level, allowed, depth))
    top = end
    for i in range(len(chosen) - 1, -1, -1):  # needles that were crowded at the end move back
        if chosen[i] > top:
            chosen[i] = max(start, _last_cut(cuts, start, top, level))
        top = chosen[i] - 1
    return tuple(chosen)


def _nearest_cut(cuts: Cuts, first: int, last: int, wanted: float, level: int, allowed: float, depth: float) -> int:
    """The cut between the indices `first` and `last` nearest to `wanted` tokens, at the coarsest level that is near enough."""
    if depth in (0.0, 1.0):
        return first if depth == 0.0 else last
    best, distance = last, float("inf")
    for finer in range(level, -1, -1):
        among = cuts.by_level[finer]
        after = int(np.searchsorted(cuts.counts_by_level[finer], wanted))
        for at in (after - 1, after):
            index = int(among[min(max(at, 0), among.size - 1)])
            index = min(max(index, first), last)
            if abs(cuts.counts[index] - wanted) < distance:
                best, distance = index, float(abs(cuts.counts[index] - wanted))
        if distance <= allowed:
            break
    return best


def _last_cut(cuts: Cuts, start: int, top: int, level: int) -> int:
    """Index of the last cut of `level` up to the index `top`; of a finer level where there is none after `start`."""
    for finer in range(level, -1, -1):
        among = cuts.by_level[finer]
        index = int(among[max(0, int(np.searchsorted(among, top, side="right")) - 1)])
        if index > start:
            return index
    return top


def move_end(cuts: Cuts, window: Window, n_tokens: int) -> Window:
    """The window with its end moved by about `n_tokens` (negative: back); needles stay, those at the end go with it."""
    wanted = int(cuts.counts[window.end]) + n_tokens
    end = min(max(int(np.searchsorted(cuts.counts, wanted, side="right")) - 1, window.start + 1), cuts.counts.size - 1)
    needles = tuple(end if cut == window.end else min(cut, end) for cut in window.needles)
    return Window(start=window.start, end=end, needles=needles)
