"""Which slice of a corpus to take, and at which cuts the needles go: one joint, vectorised search.

Many windows are drawn at once; taken is the first whose end is as short of the wanted tokens as asked and which has a
cut near enough to the first needle's depth. Sentence ends first; words, then graphemes, only where those do not do.
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
LEVELS = ((SENTENCE, SENTENCE), (WORD, SENTENCE), (LINE, LINE), (WORD, LINE), (WORD, WORD), (GRAPHEME, GRAPHEME))
"""Levels of the window's end and of the needles' cuts, in order of preference."""
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
    starts = cuts.by_level[SENTENCE][:-1]
    last = cuts.n_tokens - n_tokens
    room = int(np.searchsorted(cuts.counts[starts], min(last, corpus.period - 1), side="right"))
    raw = np.frombuffer(rng.getrandbits(CANDIDATE_BITS * n).to_bytes(CANDIDATE_BITS // 8 * n, "little"), dtype="<u4")
    picked: Ints = starts[
        (raw.astype(np.uint64) * np.uint64(max(room, 1)) >> np.uint64(CANDIDATE_BITS)).astype(np.int64)
    ]
    return picked


def choose(
    corpus: Corpus, n_tokens: int, depths: Sequence[float], rng: random.Random, start: int | None = None
) -> Window | None:
    """A window of `n_tokens` (give or take SLACK) with a cut near each depth; None if the text allows none.

    Args:
        start: cut that the window has to start at (a second try); else it is drawn.
    """
    found: Window | None = None
    pools = (np.array([start]),) if start is not None else tuple(draw_starts(corpus, n_tokens, rng, n) for n in DRAWS)
    depth = depths[0] if depths else None
    for end_level, needle_level in LEVELS:
        for starts in pools:
            hit = _first_hit(corpus.cuts, starts, n_tokens, depth, end_level, needle_level)
            if hit is not None:
                found = hit
                break
        if found is not None:
            break
    if found is None:
        found = _nearest(corpus.cuts, pools[-1], n_tokens, depth)
    if found is None:
        return None
    level = found.needles[0] if found.needles else SENTENCE
    return Window(start=found.start, end=found.end, needles=_place(corpus.cuts, found.start, found.end, depths, level))


def _ends(cuts: Cuts, starts: Ints, n_tokens: int, level: int) -> tuple[Ints, Ints]:
    """Index of the last cut of `level` that keeps each window within n_tokens + SLACK, and the window's tokens."""
    among = cuts.by_level[level]
    ends = among[np.searchsorted(cuts.counts[among], cuts.counts[starts] + n_tokens + SLACK, side="right") - 1]
    return ends, cuts.counts[ends] - cuts.counts[starts]


def _depth_errors(cuts: Cuts, starts: Ints, ends: Ints, depth: float, level: int) -> NDArray[np.float64]:
    """Tokens between the wanted depth and the nearest cut of `level` inside each window."""
    if depth in (0.0, 1.0):
        return np.zeros(starts.size)
    among = cuts.counts[cuts.by_level[level]]
    low, high = cuts.counts[starts], cuts.counts[ends]
    wanted = low + depth * (high - low)
    after = np.searchsorted(among, wanted)
    right = np.minimum(among[np.minimum(after, among.size - 1)], high)
    left = np.maximum(among[np.maximum(after - 1, 0)], low)
    return np.minimum(np.abs(right - wanted), np.abs(wanted - left))


def _first_hit(
    cuts: Cuts, starts: Ints, n_tokens: int, depth: float | None, end_level: int, needle_level: int
) -> Window | None:
    ends, sizes = _ends(cuts, starts, n_tokens, end_level)
    good = np.abs(sizes - n_tokens) <= SLACK
    if depth is not None and good.any():
        # One token less than the tolerance: whoever counts the text before the needle alone may be one off.
        allowed = max(0.5, DEPTH_TOLERANCE * n_tokens - 1.0)
        good &= _depth_errors(cuts, starts, ends, depth, needle_level) <= allowed
    hits = np.flatnonzero(good)
    if not hits.size:
        return None
    return Window(start=int(starts[hits[0]]), end=int(ends[hits[0]]), needles=(needle_level,))


def _nearest(cuts: Cuts, starts: Ints, n_tokens: int, depth: float | None) -> Window | None:
    """Where nothing fits: the finest cuts, the size first, then the depth."""
    ends, sizes = _ends(cuts, starts, n_tokens, GRAPHEME)
    errors = np.abs(sizes - n_tokens).astype(np.float64)
    errors = np.maximum(errors, SLACK) * 1e6
    if depth is not None:
        errors += _depth_errors(cuts, starts, ends, depth, GRAPHEME)
    best = int(np.argmin(errors))
    if sizes[best] <= 0:
        return None
    return Window(start=int(starts[best]), end=int(ends[best]), needles=(GRAPHEME,))


def _place(cuts: Cuts, start: int, end: int, depths: Sequence[float], level: int) -> tuple[int, ...]:
    """Cuts for all needles, in order, each its own where there are enough."""
    if not depths:
        return ()
    low, high = int(cuts.counts[start]), int(cuts.counts[end])
    while True:
        among = cuts.by_level[level]
        first, last = (int(i) for i in np.searchsorted(among, (start, end)))
        inside = among[first : last + 1]
        if inside[-1:] != end:
            inside = np.append(inside[inside < end], end)
        if inside.size >= len(depths) or level == GRAPHEME:
            break
        level -= 1
    counts = cuts.counts[inside]
    chosen: list[int] = []
    for depth in depths:
        wanted = low + depth * (high - low)
        after = int(np.searchsorted(counts, wanted))
        at = min(after, inside.size - 1)
        if after > 0 and abs(counts[after - 1] - wanted) <= abs(counts[at] - wanted):
            at = after - 1
        if depth in (0.0, 1.0):
            at = 0 if depth == 0.0 else inside.size - 1
        chosen.append(max(at, chosen[-1] + 1) if chosen else at)
    top = inside.size - 1
    for i in range(len(chosen) - 1, -1, -1):
        chosen[i] = max(0, min(chosen[i], top))
        top = chosen[i] - 1
    return tuple(int(inside[i]) for i in chosen)
