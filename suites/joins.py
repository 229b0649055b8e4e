"""A window of a corpus with its needles written in: what stands around each needle, and what each join costs.

Counts of the corpus are attributed to its cuts; only where foreign text meets it (frame, needles) can the tokens
differ, so those places alone are counted, with CONTEXT characters on either side.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from longreach.harness.tokenizer import Tokenizer
from longreach.suites.corpus import Corpus
from longreach.suites.cuts import WORD
from longreach.suites.window import Window

CONTEXT = 48
"""Characters on each side of a join that are counted to see what the join costs."""
PAD = " -"
"""Added at the end of a haystack whose graphemes are coarser than the tolerance (emoji families), one for each token."""
_COUNTS_KEPT = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """What is hidden, byte for byte, and where it should start."""

    text: str
    depth: float
    """Fraction of the haystack's tokens (needles not counted) before it, 0.0 to 1.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The rendered prompt around the haystack."""

    prefix: str
    suffix: str
    n_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A haystack that has been written but not proven."""

    pieces: tuple[str, ...]
    """Haystack with its needles, to be joined: a copy of a long text takes as long as all the rest."""
    n_tokens: int
    """Predicted tokens of that, its joins with the frame included; without needles and joins, if those are not counted."""
    placed: tuple[float, ...]
    """Depth of each needle."""

    @property
    def n_characters(self) -> int:
        return sum(map(len, self.pieces))


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def edges(corpus: Corpus, window: Window) -> tuple[int, int]:
    """Characters where the window's text begins and ends: no white space at its start, nor after a whole element."""
    positions = corpus.cuts.positions
    end = int(positions[window.end])
    while corpus.layout and corpus.text[end - 1] == "\n":
        end -= 1
    return min(_skip_blanks(corpus.text, int(positions[window.start])), end), end


def write(
    corpus: Corpus,
    tokenizer: Tokenizer,
    window: Window,
    needles: Sequence[Needle],
    frame: Frame,
    padding: int = 0,
    counted: bool = True,
) -> Draft:
    """The haystack with its needles, and what it costs: attributed counts plus what each join really costs.

    Args:
        padding: times that PAD is added at the end.
        counted: needles and joins are; else a proof has to follow.
    """
    cuts, text = corpus.cuts, corpus.text
    low, high = edges(corpus, window)
    first, n_haystack = int(cuts.counts[window.start]), window.n_tokens(cuts)
    parts: list[str] = []
    n_tokens = n_haystack
    done = low
    opening = closing = ""
    for cut, group in groupby(zip(window.needles, needles, strict=True), key=lambda pair: pair[0]):
        texts = [needle.text for _, needle in group]
        at = max(low, int(cuts.positions[cut]))
        if cut == window.start:
            opening = _joined(corpus, texts, None, low)
            continue
        if cut == window.end:
            closing = _joined(corpus, texts, high, None)
            continue
        after = _skip_blanks(text, at)
        inserted, resume = _inserted(corpus, texts, at, after)
        if counted:
            left = text[_context_start(corpus, at, done) : at]
            right = text[at : _context_end(corpus, after, high)]
            n_tokens += count(tokenizer, left + inserted + right[resume - at :]) - count(tokenizer, left + right)
        parts += (text[done:at], inserted)
        done = resume
    parts.append(text[done:high])
    closing = PAD * padding + closing
    if counted:
        n_tokens += _cost_of_ends(corpus, tokenizer, window, frame, opening, closing)
    placed = tuple((int(cuts.counts[cut]) - first) / n_haystack for cut in window.needles)
    return Draft(pieces=(opening, *parts, closing), n_tokens=n_tokens, placed=placed)


def _cost_of_ends(
    corpus: Corpus, tokenizer: Tokenizer, window: Window, frame: Frame, opening: str, closing: str
) -> int:
    """What the window costs more between the frame, with what is written before and after it, than its cuts say."""
    cuts, text = corpus.cuts, corpus.text
    low, high = edges(corpus, window)
    begin, end = _context_end(corpus, low, high), _context_start(corpus, high, low)
    before, after = frame.prefix[-CONTEXT:], frame.suffix[:CONTEXT]
    attributed = int(cuts.counts[_cut_at(corpus, begin)]) - int(cuts.counts[window.start])
    attributed += count(tokenizer, text[end : int(cuts.positions[window.end])])
    alone = count(tokenizer, before) + count(tokenizer, after)
    first, last = before + opening + text[low:begin], text[end:high] + closing + after
    return count(tokenizer, first) + count(tokenizer, last) - alone - attributed


def _own_line(texts: Sequence[str]) -> bool:
    return any("\n" in text for text in texts)


def _is_spaceless(character: str) -> bool:
    """Scripts that set no blank between sentences: Han, kana, full-width forms."""
    return "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff" or "\uff00" <= character <= "\uffef"


def _inserted(corpus: Corpus, texts: Sequence[str], at: int, after: int) -> tuple[str, int]:
    """What is written at the character `at` (white space up to `after` follows), and where the text goes on."""
    if corpus.layout is not None:
        separator = corpus.layout.separator
        written = next(
            n for n in range(len(separator) + 1) if corpus.text[at - n - 1] != "\n"
        )  # newlines before the cut
        return separator[written:] + corpus.layout.together(texts) + separator[:written], at
    blank = corpus.text[at:after]
    before = corpus.text[at - 1 : at]
    if _own_line(texts) or (blank.startswith("\n") and not (blank.count("\n") > 1 and _ends_sentence(corpus.text, at))):
        joined = "\n" + "\n".join(texts)
        return (joined, at) if blank.startswith("\n") else (joined + "\n", after)
    if blank:
        return " " + " ".join(texts), at
    if _is_spaceless(before):
        return "".join(texts), at
    return " " + " ".join(texts) + " ", at


def _ends_sentence(text: str, at: int) -> bool:
    """True if running text, not a line of code or a heading, ends before the character `at`."""
    return any(character in ".!?…" for character in text[max(0, at - 3) : at])


def _joined(corpus: Corpus, texts: Sequence[str], at: int | None, next_at: int | None) -> str:
    """Needles at the window's end (after the character `at`) or start (before the character `next_at`)."""
    text = corpus.text
    if corpus.layout is not None:
        elements, separator, close = corpus.layout.together(texts), corpus.layout.separator, corpus.layout.close
        return elements + separator if at is None else close + separator + elements.removesuffix(close)
    if at is not None:
        own_line = _own_line(texts)
        if not own_line and _is_spaceless(text[at - 1]) and not text[at : at + 1].isspace():
            return "".join(texts)
        if own_line or not _ends_sentence(text, at):
            return "\n" + "\n".join(texts)
        return " " + " ".join(texts)
    assert next_at is not None
    end = next_at
    while end > 0 and text[end - 1].isspace():
        end -= 1
    if _own_line(texts) or ("\n" in text[end:next_at] and not _ends_sentence(text, end)):
        return "\n".join(texts) + "\n"
    return "".join(texts) if _is_spaceless(text[next_at]) else " ".join(texts) + " "


def _cut_at(corpus: Corpus, position: int) -> int:
    return int(corpus.cuts.positions.searchsorted(position))


def _context_start(corpus: Corpus, at: int, lowest: int) -> int:
    """A cut about CONTEXT characters before `at`, a word's if one is near, but not before `lowest`."""
    positions, words = corpus.cuts.positions, corpus.cuts.by_level[WORD]
    nearest = max(0, int(positions.searchsorted(at - CONTEXT, side="right")) - 1)
    word = int(words[words.searchsorted(nearest, side="right") - 1])  # the first cut is one
    return max(int(positions[word if nearest - word < CONTEXT else nearest]), lowest)


def _context_end(corpus: Corpus, at: int, highest: int) -> int:
    """A cut about CONTEXT characters after `at`, a word's if one is near, but not after `highest`."""
    positions, words = corpus.cuts.positions, corpus.cuts.by_level[WORD]
    nearest = min(positions.size - 1, int(positions.searchsorted(at + CONTEXT)))
    word = int(words[words.searchsorted(nearest)])  # the last cut is one
    return min(int(positions[word if word - nearest < CONTEXT else nearest]), highest)


_counts: OrderedDict[tuple[str, str], int] = OrderedDict()
_counts_lock = threading.Lock()


def count(tokenizer: Tokenizer, text: str) -> int:
    """`tokenizer.count`, remembered: the same joins and questions come again and again."""
    if not text:
        return 0
    key = (tokenizer.name, text)
    with _counts_lock:
        if key in _counts:
            return _counts[key]
    n_tokens = tokenizer.count(text)
    with _counts_lock:
        _counts[key] = n_tokens
        if len(_counts) > _COUNTS_KEPT:
            _counts.popitem(last=False)
    return n_tokens


def join_cost(tokenizer: Tokenizer, left: str, right: str, reach: int = CONTEXT) -> int:
    """Tokens by which two texts cost more together than apart; negative where they share one. Zero if one is empty.

    Args:
        reach: characters of `right` that `left` may change.
    """
    a, b = left[-CONTEXT:], right[:reach]
    return count(tokenizer, a + b) - count(tokenizer, a) - count(tokenizer, b) if a and b else 0
