"""Prompts of an exact length with needles at exact depths: the craft that every task shares.

The method: token counts attributed to clean cuts of the corpus, a joint choice of window and depth, the joins with
foreign text counted in place, and one proving encode of the rendered prompt. If the proof disagrees, the target is
shifted by the difference and the prompt built once more from the same start.
"""

import random
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from longreach.harness.errors import ConfigError, DataError, InfeasibleCell
from longreach.harness.sample import Message, Point, Sample
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.corpus import Corpus, get_corpus
from longreach.suites.cuts import WORD
from longreach.suites.window import Window, choose

TOLERANCE = 8
"""Tokens by which a prompt may fall short of its length."""
AIM = 4
"""Tokens short that are aimed at: joins nobody foresaw cost or save one or two."""
SMALLEST_HAYSTACK = 32
"""Tokens of haystack below which a prompt is no haystack."""
CONTEXT = 48
"""Characters on each side of a join that are counted to see what the join costs."""
BUILDS = 10
"""Prompts built for one point before giving up."""
WINDOWS = 64
"""Windows tried for one that holds none of the `absent` strings."""
_MARK = "\u2060haystack\u2060"
_COUNTS_KEPT = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """What is hidden, byte for byte, and where it should start."""

    text: str
    depth: float
    """Fraction of the haystack's tokens (needles not counted) before it, 0.0 to 1.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """The rendered prompt around the haystack."""

    prefix: str
    suffix: str
    n_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    content: str
    """Haystack with its needles."""
    n_tokens: int
    """Predicted tokens of the haystack with its needles, its joins with the frame included."""
    placed: tuple[float, ...]
    n_haystack: int


def build(
    point: Point,
    tokenizer: Tokenizer,
    *,
    haystack: str,
    needles: Sequence[Needle],
    head: str,
    tail: str,
    reserve: int,
    rng: random.Random,
    target: tuple[str, ...],
    choices: tuple[str, ...] = (),
    answer_prefix: str = "",
    absent: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
) -> Sample:
    """One user message, `head` + haystack with needles + `tail`, of `point.length` - `reserve` tokens less 0 to 8.

    Args:
        haystack: mixed, repeat, noise, stdlib, bible, essays, or a pinned `file:PATH#DIGEST`.
        needles: in text order; the order is kept, each goes to a cut of its own where there are enough.
        absent: strings that must not stand in the drawn window (as whole words, whatever the case).

    Raises:
        InfeasibleCell: the length cannot hold all that; `minimum` says which might.
        DataError: the text is unusable, or each window of it holds an `absent` string.
    """
    frame = _frame(tokenizer, head, tail, answer_prefix)
    n_needles = sum(_count(tokenizer, " " + needle.text) for needle in needles)
    wanted = point.length - reserve - frame.n_tokens - n_needles - AIM
    if wanted < SMALLEST_HAYSTACK:
        raise _infeasible(point, reserve, frame.n_tokens, n_needles, wanted)
    corpus = get_corpus(haystack, point.length, point.seed, tokenizer)
    budget = point.length - reserve
    start: int | None = None
    for _ in range(BUILDS):
        window, draft = _absent_draft(corpus, tokenizer, wanted, needles, frame, rng, start, absent)
        predicted = frame.n_tokens + draft.n_tokens
        n_tokens = predicted
        if 0 <= budget - predicted <= TOLERANCE:
            content = head + draft.content + tail
            messages = (Message(role="user", content=content),)
            n_tokens = tokenizer.count(tokenizer.render(messages, answer_prefix))
            if 0 <= budget - n_tokens <= TOLERANCE:
                break
        wanted += budget - AIM - n_tokens
        if wanted < SMALLEST_HAYSTACK:
            raise _infeasible(point, reserve, frame.n_tokens, n_needles, wanted)
        start = window.start
    else:
        raise DataError(
            f"no prompt of {point.length:,} tokens could be made from haystack {haystack!r} with tokenizer "
            f"{tokenizer.name!r}: {BUILDS} tries ended {budget - n_tokens:,} tokens short; choose another text or length"
        )
    facts = {
        "needles": [needle.text for needle in needles],
        "context": [len(head), len(head) + len(draft.content)],
        "recycled": draft.n_haystack > corpus.period,
        "predicted": predicted,
        "notes": list(corpus.notes),
    }
    return Sample(
        point=point,
        messages=messages,
        target=target,
        choices=choices,
        answer_prefix=answer_prefix,
        placed=draft.placed,
        n_tokens=n_tokens,
        tokenizer=tokenizer.name,
        extra=facts | dict(extra or {}),
    )


def _infeasible(point: Point, reserve: int, n_frame: int, n_needles: int, wanted: int) -> InfeasibleCell:
    minimum = point.length - wanted + SMALLEST_HAYSTACK
    return InfeasibleCell(
        f"length {point.length:,} of task {point.task!r} cannot hold {n_frame:,} tokens of question and template, "
        f"{n_needles:,} of needles, {reserve:,} reserved for the answer and {SMALLEST_HAYSTACK} of haystack; "
        f"the shortest length that can is about {minimum:,}",
        minimum=minimum,
    )


def _frame(tokenizer: Tokenizer, head: str, tail: str, answer_prefix: str) -> _Frame:
    """What stands around the haystack once the chat template is applied."""
    rendered = tokenizer.render((Message(role="user", content=head + _MARK + tail),), answer_prefix)
    prefix, mark, suffix = rendered.partition(_MARK)
    if not mark or _MARK in suffix:
        raise ConfigError(
            f"the chat template of {tokenizer.name!r} does not write the user's message exactly once; "
            f"name another tokenizer with --tokenizer"
        )
    return _Frame(prefix=prefix, suffix=suffix, n_tokens=_count(tokenizer, prefix) + _count(tokenizer, suffix))


def _absent_draft(
    corpus: Corpus,
    tokenizer: Tokenizer,
    wanted: int,
    needles: Sequence[Needle],
    frame: _Frame,
    rng: random.Random,
    start: int | None,
    absent: Sequence[str],
) -> tuple[Window, _Draft]:
    """A draft whose window holds none of `absent` and none of the needles."""
    depths = [needle.depth for needle in needles]
    unwanted = [text for text in (*absent, *(needle.text for needle in needles)) if text]
    found = ""
    for _ in range(WINDOWS):
        window = choose(corpus, wanted, depths, rng, start)
        if window is None:
            raise DataError(f"haystack {corpus.spec!r} cannot be cut into {wanted:,} tokens; choose another text")
        low, high = _edges(corpus, window)
        found = _first_present(corpus.text[low:high], unwanted)
        if not found:
            return window, _draft(corpus, tokenizer, window, needles, frame)
        start = None
    raise DataError(
        f"each of {WINDOWS} windows of {wanted:,} tokens from haystack {corpus.spec!r} holds {found!r}, which the task "
        f"must hide there; choose another text with --corpus, or another --seed"
    )


def _first_present(text: str, unwanted: Sequence[str]) -> str:
    lowered = text.lower()
    for item in unwanted:
        needle = item.lower()
        at = lowered.find(needle)
        while at >= 0:
            end = at + len(needle)
            inside_left = at > 0 and lowered[at - 1].isalnum() and needle[0].isalnum() and needle[0].isascii()
            inside_right = (
                end < len(lowered) and lowered[end].isalnum() and needle[-1].isalnum() and needle[-1].isascii()
            )
            if not (inside_left or inside_right):
                return item
            at = lowered.find(needle, at + 1)
    return ""


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _edges(corpus: Corpus, window: Window) -> tuple[int, int]:
    """Characters where the window's text begins and ends: no white space at its start."""
    positions = corpus.cuts.positions
    end = int(positions[window.end])
    return min(_skip_blanks(corpus.text, int(positions[window.start])), end), end


def _draft(corpus: Corpus, tokenizer: Tokenizer, window: Window, needles: Sequence[Needle], frame: _Frame) -> _Draft:
    """The haystack with its needles, and what it costs: attributed counts plus what each join really costs."""
    cuts, text = corpus.cuts, corpus.text
    low, high = _edges(corpus, window)
    first, last = int(cuts.counts[window.start]), int(cuts.counts[window.end])
    parts: list[str] = []
    n_tokens = last - first
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
        left = text[_context_start(corpus, at, done) : at]
        right = text[at : _context_end(corpus, after, high)]
        n_tokens += _count(tokenizer, left + inserted + right[resume - at :]) - _count(tokenizer, left + right)
        parts += (text[done:at], inserted)
        done = resume
    parts.append(text[done:high])
    begin, end = _context_end(corpus, low, high), _context_start(corpus, high, low)
    edge = frame.prefix[-CONTEXT:]
    attributed = int(cuts.counts[_cut_at(corpus, begin)]) - first
    n_tokens += _count(tokenizer, edge + opening + text[low:begin]) - _count(tokenizer, edge) - attributed
    edge = frame.suffix[:CONTEXT]
    kept = text[end:high]
    n_tokens += _count(tokenizer, kept + closing + edge) - _count(tokenizer, kept) - _count(tokenizer, edge)
    placed = tuple((int(cuts.counts[cut]) - first) / (last - first) for cut in window.needles)
    return _Draft(content=opening + "".join(parts) + closing, n_tokens=n_tokens, placed=placed, n_haystack=last - first)


def _own_line(corpus: Corpus, texts: Sequence[str]) -> bool:
    return corpus.spec == "noise" or any("\n" in text for text in texts)


def _is_spaceless(character: str) -> bool:
    """Scripts that set no blank between sentences: Han, kana, full-width forms."""
    return "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff" or "\uff00" <= character <= "\uffef"


def _inserted(corpus: Corpus, texts: Sequence[str], at: int, after: int) -> tuple[str, int]:
    """What is written at the character `at` (white space up to `after` follows), and where the text goes on."""
    blank = corpus.text[at:after]
    before = corpus.text[at - 1 : at]
    if _own_line(corpus, texts) or (blank.startswith("\n") and not _ends_paragraph(corpus, at, blank)):
        joined = "\n" + "\n".join(texts)
        return (joined, at) if blank.startswith("\n") else (joined + "\n", after)
    if blank:
        return " " + " ".join(texts), at
    if _is_spaceless(before):
        return "".join(texts), at
    return " " + " ".join(texts) + " ", at


def _ends_paragraph(corpus: Corpus, at: int, blank: str) -> bool:
    """True where a blank line follows running text, so that the needle ends the paragraph."""
    return blank.count("\n") > 1 and corpus.text[at - 1] not in ":;{}>"


def _joined(corpus: Corpus, texts: Sequence[str], at: int | None, next_at: int | None) -> str:
    """Needles at the window's end (after the character `at`) or start (before the character `next_at`)."""
    text = corpus.text
    if at is not None:
        if _own_line(corpus, texts):
            return "\n" + "\n".join(texts)
        spaceless = _is_spaceless(text[at - 1]) and not text[at : at + 1].isspace()
        return "".join(texts) if spaceless else " " + " ".join(texts)
    assert next_at is not None
    line = text[next_at - 1 : next_at] == "\n" and text[next_at - 2 : next_at] != "\n\n"
    if line or _own_line(corpus, texts):
        return "\n".join(texts) + "\n"
    return "".join(texts) if _is_spaceless(text[next_at]) else " ".join(texts) + " "


def _cut_at(corpus: Corpus, position: int) -> int:
    return int(corpus.cuts.positions.searchsorted(position))


def _context_start(corpus: Corpus, at: int, lowest: int) -> int:
    """A cut about CONTEXT characters before `at`, a word's if one is near, but not before `lowest`."""
    positions = corpus.cuts.positions
    words = corpus.cuts.by_level[WORD]
    index = int(positions[words].searchsorted(at - CONTEXT, side="right")) - 1
    near = int(positions[words[index]]) if index >= 0 else 0
    if near < at - 4 * CONTEXT:
        near = int(positions[max(0, int(positions.searchsorted(at - CONTEXT, side="right")) - 1)])
    return max(near, lowest)


def _context_end(corpus: Corpus, at: int, highest: int) -> int:
    """A cut about CONTEXT characters after `at`, a word's if one is near, but not after `highest`."""
    positions = corpus.cuts.positions
    words = corpus.cuts.by_level[WORD]
    index = int(positions[words].searchsorted(at + CONTEXT))
    near = int(positions[words[index]]) if index < words.size else highest
    if near > at + 4 * CONTEXT:
        near = int(positions[int(positions.searchsorted(at + CONTEXT))])
    return min(near, highest)


_counts: OrderedDict[tuple[str, str], int] = OrderedDict()
_counts_lock = threading.Lock()


def _count(tokenizer: Tokenizer, text: str) -> int:
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
