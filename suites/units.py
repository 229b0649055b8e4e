"""Prompts made of counted units (lines, words, documents): sums of a table's counts instead of encodes, one proof.

A prompt's size is a sum of what `tables` counted; the joins with the question are counted in place, and the proving encode
of the rendered prompt has the last word.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from longreach.harness.errors import DataError, InfeasibleCell
from longreach.harness.sample import Message, Point, Sample
from longreach.harness.tokenizer import UNPROVEN, Tokenizer, innermost, proves
from longreach.suites.haystack import AIM, BUILDS, TOLERANCE, frame_of
from longreach.suites.joins import CONTEXT, count, join_cost

T = TypeVar("T")

_TABLES_KEPT = 48
_lock = threading.Lock()
_key_locks: dict[tuple[object, ...], threading.Lock] = {}
_tables: OrderedDict[tuple[object, ...], Any] = OrderedDict()


def remembered(tokenizer: Tokenizer, key: tuple[object, ...], make: Callable[[], T]) -> T:
    """`make()`, once per tokenizer and key; safe to call from threads."""
    tokenizer = innermost(tokenizer)
    whole = (type(tokenizer).__qualname__, tokenizer.name, *key)
    with _lock:
        key_lock = _key_locks.setdefault(whole, threading.Lock())
    with key_lock:
        with _lock:
            if whole in _tables:
                _tables.move_to_end(whole)
                kept: T = _tables[whole]
                return kept
        made = make()
        with _lock:
            _tables[whole] = made
            while len(_tables) > _TABLES_KEPT:
                _key_locks.pop(_tables.popitem(last=False)[0], None)
    return made


def trimmed(
    tokenizer: Tokenizer, text: str, n_tokens: int, *, start: int = 0, end: int = 0, reach: int = CONTEXT
) -> tuple[str, int]:
    """`text` of `n_tokens` without its first `start` and last `end` characters, and what is left of its tokens.

    Args:
        reach: characters at its start whose tokens the cut may change.
    """
    if start:
        edge = text[:reach]
        n_tokens += count(tokenizer, edge[start:]) - count(tokenizer, edge)
    if end:
        edge = text[-CONTEXT:]
        n_tokens += count(tokenizer, edge[:-end]) - count(tokenizer, edge)
    return text[start : len(text) - end], n_tokens


class Piece(NamedTuple):
    """A text of known tokens."""

    text: str
    n_tokens: int
    reach: int = CONTEXT
    """Characters at its start whose tokens may be others after another text."""


def spliced(tokenizer: Tokenizer, *pieces: Piece) -> tuple[str, int]:
    """Texts written one after the other, and what that costs: only where they meet is counted."""
    joins = sum(join_cost(tokenizer, left.text, right.text, right.reach) for left, right in pairwise(pieces))
    return "".join(piece.text for piece in pieces), sum(piece.n_tokens for piece in pieces) + joins


def cut_off(tokenizer: Tokenizer, text: str, n_tokens: int) -> tuple[str, int]:
    """The beginning of `text` that costs at most `n_tokens`, without white space at its end, and what it costs."""
    _, ends = tokenizer.spans(text)
    for n in range(min(n_tokens, len(ends)), 0, -1):
        start = text[: int(ends[n - 1])].rstrip()
        if (size := tokenizer.count(start)) <= n_tokens:
            return start, size
    return "", 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A context that has been written but not proven."""

    text: str
    n_tokens: int
    """Predicted tokens of it."""
    reach: int = CONTEXT
    """As of a Piece."""
    needles: tuple[str, ...] = ()
    """As they stand in it, in text order; none where the whole of it must be read."""
    placed: tuple[float, ...] = ()
    recycled: bool = False
    notes: tuple[str, ...] = ()


def fill(
    point: Point,
    tokenizer: Tokenizer,
    *,
    head: str,
    tail: str,
    reserve: int,
    compose: Callable[[int], Composed],
    target: tuple[str, ...],
    choices: tuple[str, ...] = (),
    answer_prefix: str = "",
    extra: Mapping[str, Any] | None = None,
    n_head: int | None = None,
) -> Sample:
    """One user message, `head` + context + `tail`, of `point.length` - `reserve` tokens less 0 to 8.

    Args:
        compose: the context of about so many tokens, a pure function; its smallest one if they are too few.
        n_head: tokens of `head`, where they are known; else it is counted.

    Raises:
        InfeasibleCell: the smallest context is too long; `minimum` says which length might do.
        DataError: the tokenizer's counts do not settle.
    """
    frame = frame_of(tokenizer, head, tail, answer_prefix, n_head)
    budget = point.length - reserve
    wanted = budget - frame.n_tokens - AIM
    proven = proves(tokenizer, point)
    error = missing = 0
    for tries in range(BUILDS):
        made = compose(wanted)
        predicted = frame.n_tokens + made.n_tokens
        # Where a proof follows anyway, the first prompt need not know what its joins cost: it aims at the middle.
        trusting = proven and tries == 0 and 0 <= budget - predicted <= TOLERANCE
        if not trusting:
            predicted += join_cost(tokenizer, frame.prefix, made.text, made.reach)
            predicted += join_cost(tokenizer, made.text, frame.suffix)
        n_tokens = predicted + error
        if made.n_tokens > wanted + AIM and n_tokens > budget:
            raise _infeasible(point, reserve, frame.n_tokens, made.n_tokens)
        if 0 <= budget - n_tokens <= TOLERANCE:
            messages = (Message(role="user", content=f"{head}{made.text}{tail}"),)
            if not proven:
                break
            n_tokens = tokenizer.count(tokenizer.render(messages, answer_prefix))
            if 0 <= budget - n_tokens <= TOLERANCE:
                break
            error = 0 if trusting else n_tokens - predicted
        missing = budget - AIM - n_tokens
        wanted = min(wanted + missing, budget - (n_tokens - made.n_tokens))  # what was asked for may all be given
    else:
        raise DataError(
            f"no prompt of {point.length:,} tokens could be made for task {point.task!r} with tokenizer "
            f"{tokenizer.name!r}: {BUILDS} tries ended {missing + AIM:,} tokens short; choose another length"
        )
    facts = {
        "needles": list(made.needles),
        "context": [len(head), len(head) + len(made.text)],
        "recycled": made.recycled,
        "notes": list(made.notes),
    }
    return Sample(
        point=point,
        messages=messages,
        target=target,
        choices=choices,
        answer_prefix=answer_prefix,
        placed=made.placed,
        n_tokens=n_tokens,
        tokenizer=tokenizer.name,
        extra=facts | dict(extra or {}) | ({} if proven else UNPROVEN),
    )


def _infeasible(point: Point, reserve: int, n_frame: int, n_context: int) -> InfeasibleCell:
    minimum = n_frame + n_context + reserve + AIM
    return InfeasibleCell(
        f"length {point.length:,} of task {point.task!r} cannot hold {n_frame:,} tokens of question, example and template, "
        f"{reserve:,} reserved for the answer and a context of {n_context:,}, the smallest that asks anything",
        minimum=minimum,
    )
