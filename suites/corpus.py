"""A haystack's text with its cuts, ready to be sliced: generated or read, tiled when it is too short, cached.

The size of a generated text depends on the asked length only (powers of two), never on what else is in the run, so
that the same point gives the same bytes everywhere.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from longreach.harness.data import read_corpus
from longreach.harness.errors import DataError
from longreach.harness.table_cache import Arrays, cached
from longreach.harness.tokenizer import Tokenizer, innermost
from longreach.suites.cuts import SENTENCE, UNIT, Cuts, find_cuts, make_cuts
from longreach.suites.generated import characters_per_token, generate, is_generated
from longreach.suites.layouts import LINES, Layout, unit_cuts

SMALLEST_TIER = 4096
"""Tokens; shorter prompts share this text."""
SMALLEST_HAYSTACK = 32
"""Tokens of running text below which a prompt is no haystack."""
SEAM = "\n\n"
"""Between two copies of a text that is used again."""
SEAM_CONTEXT = 200
"""Characters on each side that are counted to see what a seam costs."""
CACHED = 10
"""Corpora kept in memory; the largest, for 1M tokens, takes about 80 MB."""


_U32, _I8 = np.dtype(np.uint32), np.dtype(np.int8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A text with its cuts under one tokenizer."""

    spec: str
    text: str
    cuts: Cuts
    period: int
    """Tokens after which the text repeats itself; all of them if it does not."""
    notes: tuple[str, ...]
    copy: int
    """Tokens of one copy of it."""
    layout: Layout | None = None
    """How its elements are put together, where it is made of such."""

    @property
    def smallest(self) -> int:
        """Tokens of haystack below which a prompt is no haystack: two records of a document, where it is one."""
        if self.layout is None or self.layout is LINES:
            return SMALLEST_HAYSTACK
        return max(SMALLEST_HAYSTACK, 2 * self.cuts.n_tokens // max(1, self.cuts.by_level[UNIT].size - 1))

    @property
    def is_tiled(self) -> bool:
        return self.period < self.cuts.n_tokens


def tier(length: int) -> int:
    """The power of two that a prompt of `length` tokens draws its text from."""
    return max(SMALLEST_TIER, 1 << (length - 1).bit_length())


_lock = threading.Lock()
_key_locks: dict[tuple[object, ...], threading.Lock] = {}
_cache: OrderedDict[tuple[object, ...], Corpus] = OrderedDict()


def get_corpus(spec: str, length: int, seed: int, tokenizer: Tokenizer) -> Corpus:
    """The corpus that a prompt of `length` tokens draws its window from; cached and safe to call from threads.

    Raises:
        DataError: the text cannot be read, or is blank.
    """
    size = tier(length)
    tokenizer = innermost(tokenizer)
    generated = is_generated(spec)
    key = (spec, size, seed if generated else None, type(tokenizer).__qualname__, tokenizer.name)
    with _lock:
        key_lock = _key_locks.setdefault(key, threading.Lock())
    with key_lock:
        with _lock:
            if key in _cache:
                _cache.move_to_end(key)
                return _cache[key]
        corpus = _generated(spec, size, seed, tokenizer) if generated else _read(spec, size, tokenizer)
        with _lock:
            _cache[key] = corpus
            while len(_cache) > CACHED:
                _key_locks.pop(_cache.popitem(last=False)[0], None)
    return corpus


def _generated(spec: str, size: int, seed: int, tokenizer: Tokenizer) -> Corpus:
    made = generate(spec, size * characters_per_token(spec), seed)
    cuts = _cuts_of(made.text, tokenizer)
    if made.layout is not None:
        cuts = unit_cuts(cuts, made)
    return _tiled(spec, made.text, cuts, size, (), tokenizer, made.layout)


def _read(spec: str, size: int, tokenizer: Tokenizer) -> Corpus:
    source = read_corpus(spec)
    text = source.text.strip()
    if not text:
        raise DataError(f"the text of {spec} is blank; give a file with some words in it")
    whole_key = (spec, "whole", type(tokenizer).__qualname__, tokenizer.name)
    with _lock:
        whole = _cache.get(whole_key)
    if whole is None:
        cuts = _cuts_of(text, tokenizer)
        whole = Corpus(spec=spec, text=text, cuts=cuts, period=cuts.n_tokens, notes=source.notes, copy=cuts.n_tokens)
        with _lock:
            _cache[whole_key] = whole
    return _tiled(spec, text, whole.cuts, size, source.notes, tokenizer)


def _cuts_of(text: str, tokenizer: Tokenizer) -> Cuts:
    """`find_cuts`, kept on disk by the hash of the text and what tells the tokenizer."""

    def make() -> Arrays:
        cuts = find_cuts(text, tokenizer)
        return {
            "positions": cuts.positions.astype(np.uint32),
            "counts": cuts.counts.astype(np.uint32),
            "levels": cuts.levels,
        }

    def fits(found: Arrays) -> bool:
        types = {name: (array.dtype, array.shape) for name, array in found.items()}
        shape = found["positions"].shape if "positions" in found else ()
        if types != {"positions": (_U32, shape), "counts": (_U32, shape), "levels": (_I8, shape)} or len(shape) != 1:
            return False
        positions, counts = found["positions"], found["counts"]
        ascending = bool((positions[1:] > positions[:-1]).all() and (counts[1:] >= counts[:-1]).all())
        if not ascending or shape[0] < 2 or found["levels"][[0, -1]].min() < SENTENCE:
            return False
        return bool(positions[0] == 0 and positions[-1] == len(text))

    found = cached("cuts", tokenizer, (text,), make, fits)
    return make_cuts(found["positions"].astype(np.int64), found["counts"].astype(np.int64), found["levels"])


def _tiled(
    spec: str,
    text: str,
    cuts: Cuts,
    size: int,
    notes: tuple[str, ...],
    tokenizer: Tokenizer,
    layout: Layout | None = None,
) -> Corpus:
    """The text itself where it holds a window of `size` tokens, else copies of it, so that a window may start anywhere."""
    n_tokens = cuts.n_tokens
    if n_tokens == 0:
        raise DataError(f"the text of {spec} has no tokens; give a file with some words in it")
    if n_tokens >= size:
        return Corpus(spec=spec, text=text, cuts=cuts, period=n_tokens, notes=notes, copy=n_tokens, layout=layout)
    between = layout.separator if layout else SEAM
    end, start = text[-SEAM_CONTEXT:], text[:SEAM_CONTEXT]
    seam = tokenizer.count(end + between + start) - tokenizer.count(end) - tokenizer.count(start)
    copies = -(-size // n_tokens) + 1
    shift_characters, shift_tokens = len(text) + len(between), max(1, n_tokens + seam)
    steps = np.arange(copies, dtype=np.int64)[:, None]
    positions = (cuts.positions[None, 1:] + steps * shift_characters).ravel()
    counts = (cuts.counts[None, 1:] + steps * shift_tokens).ravel()
    levels, ends = (np.append(of[:1], np.tile(of[1:], copies)) for of in (cuts.levels, cuts.end_levels))
    tiled = make_cuts(np.append(0, positions), np.append(0, np.maximum.accumulate(counts)), levels, ends)
    return Corpus(
        spec=spec,
        text=between.join([text] * copies),
        cuts=tiled,
        period=shift_tokens,
        notes=notes,
        copy=n_tokens,
        layout=layout,
    )
