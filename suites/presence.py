"""Does a stretch of a haystack hold a string that the task hides there? Asked for every prompt, so it has to be quick.

The words of a corpus are collected once; a string with a word that is not among them cannot stand in any window.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longreach.harness.table_cache import Arrays, cached
from longreach.suites.corpus import CACHED, Corpus

_WORD = re.compile(r"[^\W_]+")
_LAST = re.compile(r"[^\W_]+\Z")
_PAIR = re.compile(r"(?<![^\W_])(?=([^\W_]+-[^\W_]+))")
_CHUNK = 1 << 18
_LONGEST_WORD = 64
"""Characters; longer words are searched for, not looked up."""
_lock = threading.Lock()
_known: OrderedDict[int, "_Known"] = OrderedDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    corpus: Corpus
    words: frozenset[str]
    """Runs of letters and digits in small letters, and some parts of such."""
    pairs: frozenset[str]
    """Two such runs that a hyphen joins, as they stand there."""
    lowered: str
    """The whole text in small letters; empty where that has another number of characters."""


def _known_of(corpus: Corpus) -> _Known:
    with _lock:
        kept = _known.get(id(corpus))
        if kept is not None and kept.corpus is corpus:
            return kept
    lowered = corpus.text.lower()
    found = cached("words", None, (lowered,), lambda: _collect(lowered), _fits)
    words, pairs = (
        frozenset(found[name].tobytes().decode("utf-8", "replace").split("\n")) for name in ("words", "pairs")
    )
    same_places = len(lowered) == len(corpus.text)
    made = _Known(corpus=corpus, words=words, pairs=pairs, lowered=lowered if same_places else "")
    with _lock:
        _known[id(corpus)] = made
        while len(_known) > CACHED:
            _known.popitem(last=False)
    return made


def _collect(lowered: str) -> Arrays:
    """Words and pairs of a text in small letters, a line each, as bytes."""
    words: set[str] = set()
    for start in range(0, len(lowered), _CHUNK):
        words.update(_WORD.findall(lowered[start : start + _CHUNK + _LONGEST_WORD]))
    parts = lowered.split("-")
    ends = zip(map(_LAST.search, (part[-_LONGEST_WORD:] for part in parts)), map(_WORD.match, parts[1:]), strict=False)
    pairs = {f"{left.group()}-{right.group()}" for left, right in ends if left and right}
    return {
        name: np.frombuffer("\n".join(sorted(found)).encode(), dtype=np.uint8)
        for name, found in (("words", words), ("pairs", pairs))
    }


def _fits(found: Arrays) -> bool:
    return set(found) == {"words", "pairs"} and all(
        array.dtype == np.uint8 and array.ndim == 1 for array in found.values()
    )


def first_present(corpus: Corpus, low: int, high: int, unwanted: Sequence[str]) -> str:
    """The first of `unwanted` that stands as whole words, whatever the case, between two characters; "" if none does.

    A word that the edge of the window parts is not looked at.
    """
    known = _known_of(corpus)
    text, start, stop = (known.lowered, low, high) if known.lowered else (corpus.text[low:high].lower(), 0, high)
    stop = min(stop, len(text))
    for item in unwanted:
        sought = item.lower()
        if sought.isascii() and _has_strange_word(sought, known):
            continue
        at = text.find(sought, start, stop)
        while at >= 0:
            end = at + len(sought)
            inside_left = at > start and text[at - 1].isalnum() and sought[0].isalnum() and sought[0].isascii()
            inside_right = end < stop and text[end].isalnum() and sought[-1].isalnum() and sought[-1].isascii()
            if not (inside_left or inside_right):
                return item
            at = text.find(sought, at + 1, stop)
    return ""


def _has_strange_word(sought: str, known: _Known) -> bool:
    """True if some word of `sought`, or two that a hyphen joins, stand nowhere in the corpus."""
    words = _WORD.findall(sought)
    if any(len(word) > _LONGEST_WORD for word in words):
        return False
    return any(word not in known.words for word in words) or any(
        pair not in known.pairs for pair in _PAIR.findall(sought)
    )
