"""Where a text may be cut: token ends that are clean and whole graphemes, graded from grapheme to sentence.

A cut stands between the last token of one piece and the first of the next, before the white space. Token counts are
attributed: the whole text is encoded once, and a slice between two cuts costs the difference of their counts.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longreach.harness.tokenizer import Tokenizer

Ints = NDArray[np.int64]

GRAPHEME, WORD, LINE, SENTENCE, UNIT = 0, 1, 2, 3, 4
"""Levels of cuts. UNIT: between two elements of a text made of such (lines of noise, records of a document)."""

_ABBREVIATIONS = ("Mr", "Mrs", "Ms", "Dr", "St", "Prof", "vs", "No", "Fig", "Jr", "Sr", "e.g", "i.e", "cf", "al")
_CLOSING = r"[\"'”’»)\]*_`]*"
# Each pattern begins with a set of characters, which `re` finds ten times as fast as a look-behind.
_SENTENCE_ENDS = (
    re.compile(
        r"[.!?…]+(?<!\b[A-Z]\.)"
        + "".join(rf"(?<!\b{re.escape(word)}\.)" for word in _ABBREVIATIONS)
        + rf"{_CLOSING}(?=\s+[^\sa-z]|\s*\Z|\s*\n)"  # no small letter after it
    ),
    re.compile(r"[。！？｡．]+[」』”’）》〉】]*"),
    re.compile(rf"[؟۔।॥።։។៕]+{_CLOSING}"),
    re.compile(r"[:;{}>](?=\n)"),  # the end of a line of code or of a heading
)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_JOINERS = frozenset({0x200D, 0xFE0E, 0xFE0F, 0x0E33, 0x0EB3, *range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """All cuts of one text, ascending; arrays of shape (n_cuts,). The first cut is 0, the last the text's end."""

    positions: Ints
    """Characters before the cut."""
    counts: Ints
    """Tokens before the cut."""
    levels: NDArray[np.int8]
    """GRAPHEME, WORD, LINE, SENTENCE or UNIT."""
    by_level: tuple[Ints, ...]
    """by_level[k]: indices of the cuts of level k or higher."""
    counts_by_level: tuple[Ints, ...]
    """counts_by_level[k]: tokens before each of those."""
    end_levels: NDArray[np.int8]
    """Levels as ends of a window; -1 where none may end."""
    ends_by_level: tuple[Ints, ...]
    """The same for the cuts where a window may end."""
    end_counts_by_level: tuple[Ints, ...]

    @property
    def n_tokens(self) -> int:
        return int(self.counts[-1])


def make_cuts(positions: Ints, counts: Ints, levels: NDArray[np.int8], ends: NDArray[np.int8] | None = None) -> Cuts:
    """Cuts with their indices by level; `ends` are the levels as ends of a window where those differ."""
    by_level, counts_by_level = _by_level(counts, levels)
    ends_by_level, end_counts = (by_level, counts_by_level) if ends is None else _by_level(counts, ends)
    return Cuts(
        positions=positions,
        counts=counts,
        levels=levels,
        by_level=by_level,
        counts_by_level=counts_by_level,
        end_levels=levels if ends is None else ends,
        ends_by_level=ends_by_level,
        end_counts_by_level=end_counts,
    )


def _by_level(counts: Ints, levels: NDArray[np.int8]) -> tuple[tuple[Ints, ...], tuple[Ints, ...]]:
    indices = tuple(np.flatnonzero(levels >= level) for level in (GRAPHEME, WORD, LINE, SENTENCE, UNIT))
    return indices, tuple(counts[of_level] for of_level in indices)


def find_cuts(text: str, tokenizer: Tokenizer) -> Cuts:
    """The cuts of `text` under `tokenizer`: one encode of the whole text.

    A token boundary is a cut where no token reaches over it and no grapheme is split. Offsets may leave white space
    out (normalising tokenizers); a cut then stands at the token's end.
    """
    starts, ends = tokenizer.spans(text)
    ends = np.maximum.accumulate(ends) if ends.size else ends
    clean = np.flatnonzero(ends[:-1] <= starts[1:]) if ends.size else np.zeros(0, dtype=np.int64)
    positions, counts = ends[clean], clean + 1
    fresh = np.diff(positions, append=len(text)) > 0  # of several tokens that end at one place, the last
    positions, counts = positions[fresh], counts[fresh]
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), dtype="<u4")
    whole = _whole_graphemes(codes, positions)
    positions = np.concatenate(([0], positions[whole], [len(text)])).astype(np.int64)
    counts = np.concatenate(([0], counts[whole], [ends.size])).astype(np.int64)
    return make_cuts(positions, counts, _levels(text, codes, positions))


def _levels(text: str, codes: NDArray[np.uint32], positions: Ints) -> NDArray[np.int8]:
    levels = np.zeros(positions.size, dtype=np.int8)
    inner = positions[1:-1]
    before, after = codes[inner - 1], codes[inner]
    word = _is_space(after) & ~_is_space(before)
    levels[1:-1][word] = WORD
    levels[1:-1][word & (after == 10)] = LINE
    for pattern in _SENTENCE_ENDS:
        _raise(levels, positions, (match.end() for match in pattern.finditer(text)))
    _raise(levels, positions, (match.start() for match in _BLANK_LINE.finditer(text)))
    levels[[0, -1]] = SENTENCE
    return levels


def _raise(levels: NDArray[np.int8], positions: Ints, ends: Iterator[int]) -> None:
    """Make sentence ends of the cuts that stand at `ends` (ascending)."""
    stops = np.fromiter(ends, dtype=np.int64)
    at = np.searchsorted(positions, stops)
    levels[at[positions[at] == stops]] = SENTENCE


def _is_space(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    space: NDArray[np.bool_] = (
        (codes == 32) | ((codes >= 9) & (codes <= 13)) | (codes == 0xA0) | (codes == 0x3000) | (codes == 0x2028)
    )
    return space


def _whole_graphemes(codes: NDArray[np.uint32], positions: Ints) -> NDArray[np.bool_]:
    """True where a cut splits no combining sequence, joiner sequence, flag or Hangul syllable."""
    if not positions.size:
        return np.zeros(0, dtype=np.bool_)
    before, after = codes[positions - 1], codes[positions]
    good: NDArray[np.bool_]
    bad = (before == 13) & (after == 10)
    if int(codes.max()) < 0x300:
        good = ~bad
        return good
    known = np.unique(after[after >= 0x300])
    extending = known[[_extends(int(code)) for code in known]] if known.size else known
    bad |= np.isin(after, extending) | (before == 0x200D)
    flags = (codes >= 0x1F1E6) & (codes <= 0x1F1FF)
    if flags.any():  # flags are pairs: a cut may stand after an even number of them
        indices = np.arange(codes.size)
        last_other = np.maximum.accumulate(np.where(flags, -1, indices))
        bad |= flags[positions] & ((positions - 1 - last_other[positions - 1]) % 2 == 1)
    jamo = (after >= 0x1160) & (after <= 0x11FF)
    good = ~(bad | jamo)
    return good


def _extends(code: int) -> bool:
    return code in _JOINERS or unicodedata.category(chr(code)) in ("Mn", "Me", "Mc")
