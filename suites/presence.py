"""Does a stretch of a haystack hold a string that the task hides there? Asked for every prompt, so it has to be quick.

The words of a corpus are collected once; a string with a word that is not among them cannot stand in any window.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from longreach.suites.corpus import CACHED, Corpus

_WORD = re.compile(r"[^\W_]+")
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
    lowered: str
    """The whole text in small letters; empty where that has another number of characters."""


def _known_of(corpus: Corpus) -> _Known:
    with _lock:
        kept = _known.get(id(corpus))
        if kept is not None and kept.corpus is corpus:
            return kept
    lowered = corpus.text.lower()
    words: set[str] = set()
    for start in range(0, len(lowered), _CHUNK):
        words.update(_WORD.findall(lowered[start : start + _CHUNK + _LONGEST_WORD]))
    same_places = len(lowered) == len(corpus.text)
    made = _Known(corpus=corpus, words=frozenset(words), lowered=lowered if same_places else "")
    with _lock:
        _known[id(corpus)] = made
        while len(_known) > CACHED:
            _known.popitem(last=False)
    return made


def first_present(corpus: Corpus, low: int, high: int, unwanted: Sequence[str]) -> str:
    """The first of `unwanted` that stands as whole words, whatever the case, between two characters; "" if none does.

    A word that the edge of the window parts is not looked at.
    """
    known = _known_of(corpus)
    text, start, stop = (known.lowered, low, high) if known.lowered else (corpus.text[low:high].lower(), 0, high)
    stop = min(stop, len(text))
    for item in unwanted:
        sought = item.lower()
        if sought.isascii() and any(
            word not in known.words and len(word) <= _LONGEST_WORD for word in _WORD.findall(sought)
        ):
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
