"""Prompts made of counted units (lines, words, documents): sums of a table's counts instead of encodes, one proof.

What may fill a place is counted once per tokenizer, in the layout that it will stand in: one text that holds every
entry is encoded, and each token belongs to the entry that it ends in. A prompt's size is then a sum; the joins with the
question are counted in place, and the proving encode of the rendered prompt has the last word.
"""

import random
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from longreach.harness.errors import DataError, InfeasibleCell
from longreach.harness.sample import Message, Point, Sample
from longreach.harness.tokenizer import Tokenizer, proves
from longreach.suites.cuts import Ints
from longreach.suites.haystack import AIM, BUILDS, TOLERANCE, frame_of
from longreach.suites.joins import CONTEXT, count

Texts = NDArray[np.object_]
T = TypeVar("T")

_TABLES_KEPT = 48
MEASURED_AT_ONCE = 1 << 20
"""Characters that are encoded at once when entries are counted."""
_lock = threading.Lock()
_key_locks: dict[tuple[object, ...], threading.Lock] = {}
_tables: OrderedDict[tuple[object, ...], Any] = OrderedDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Strings that may fill one place of a unit; arrays of shape (n_entries,)."""

    texts: Texts
    counts: Ints
    """Tokens that each costs in its place."""

    def take(self, indices: Ints) -> Texts:
        """The strings at `indices`."""
        found: Texts = self.texts[indices]
        return found


def remembered(tokenizer: Tokenizer, key: tuple[object, ...], make: Callable[[], T]) -> T:
    """`make()`, once per tokenizer and key; safe to call from threads."""
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


def measure(tokenizer: Tokenizer, *columns: Sequence[str]) -> tuple[Table, ...]:
    """Tables for units that are one entry of each column, joined; unit follows unit in the text that is counted."""
    n_rows = max(len(column) for column in columns)
    n_characters = sum(sum(map(len, column)) * -(-n_rows // len(column)) for column in columns)
    step = max(1, n_rows * MEASURED_AT_ONCE // max(1, n_characters))
    parts = [_measured(tokenizer, columns, start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    counts = np.concatenate(parts)
    return tuple(
        Table(texts=np.array(column, dtype=np.object_), counts=counts[: len(column), index].astype(np.int64))
        for index, column in enumerate(columns)
    )


def _measured(tokenizer: Tokenizer, columns: Sequence[Sequence[str]], start: int, stop: int) -> Ints:
    """Tokens of the entries of some units, shape (stop - start, n_columns)."""
    rows = range(start - 1, stop)  # the unit before them is counted too, and left out
    pieces = [column[row % len(column)] for row in rows for column in columns]
    edges = np.cumsum(np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces)))
    _, ends = tokenizer.spans("".join(pieces))
    before = np.searchsorted(np.maximum.accumulate(ends), edges, side="right") if ends.size else np.zeros_like(edges)
    counts: Ints = np.diff(before, prepend=0).reshape(len(rows), len(columns))[1:]
    return counts


def permutation(rng: random.Random, n: int) -> Ints:
    """The numbers 0 to `n` - 1 in random order: two stable sorts by 16 bits, the same on every machine."""
    keys = np.frombuffer(rng.getrandbits(32 * n).to_bytes(4 * n, "little") if n else b"", dtype="<u4")
    order = np.argsort((keys & 0xFFFF).astype(np.uint16), kind="stable")
    found: Ints = order[np.argsort((keys >> 16).astype(np.uint16)[order], kind="stable")].astype(np.int64)
    return found


def draws(rng: random.Random, n: int, below: int) -> Ints:
    """`n` random numbers from 0 to `below` - 1, with repeats."""
    raw = np.frombuffer(rng.getrandbits(32 * n).to_bytes(4 * n, "little"), dtype="<u4") if n else np.zeros(0, "<u4")
    found: Ints = (raw.astype(np.uint64) * np.uint64(below) >> np.uint64(32)).astype(np.int64)
    return found


def joined(*columns: Texts) -> str:
    """Units of one entry of each column, written one after the other."""
    grid = np.empty((len(columns[0]), len(columns)), dtype=np.object_)
    for index, column in enumerate(columns):
        grid[:, index] = column
    return "".join(grid.ravel().tolist())


def trimmed(tokenizer: Tokenizer, text: str, n_tokens: int, *, start: int = 0, end: int = 0) -> tuple[str, int]:
    """`text` of `n_tokens` without its first `start` and last `end` characters, and what is left of its tokens."""
    if start:
        edge = text[:CONTEXT]
        n_tokens += count(tokenizer, edge[start:]) - count(tokenizer, edge)
    if end:
        edge = text[-CONTEXT:]
        n_tokens += count(tokenizer, edge[:-end]) - count(tokenizer, edge)
    return text[start : len(text) - end], n_tokens


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
) -> Sample:
    """One user message, `head` + context + `tail`, of `point.length` - `reserve` tokens less 0 to 8.

    Args:
        compose: the context of about so many tokens, a pure function; its smallest one if they are too few.

    Raises:
        InfeasibleCell: the smallest context is too long; `minimum` says which length might do.
        DataError: the tokenizer's counts do not settle.
    """
    frame = frame_of(tokenizer, head, tail, answer_prefix)
    budget = point.length - reserve
    wanted = budget - frame.n_tokens - AIM
    left, right = frame.prefix[-CONTEXT:], frame.suffix[:CONTEXT]
    error = missing = 0
    for _ in range(BUILDS):
        made = compose(wanted)
        first, last = made.text[:CONTEXT], made.text[-CONTEXT:]
        joins = sum(
            count(tokenizer, a + b) - count(tokenizer, a) - count(tokenizer, b)
            for a, b in ((left, first), (last, right))
        )
        predicted = frame.n_tokens + made.n_tokens + joins
        n_tokens = predicted + error
        if made.n_tokens > wanted + AIM and n_tokens > budget:
            raise _infeasible(point, reserve, frame.n_tokens, made.n_tokens)
        if 0 <= budget - n_tokens <= TOLERANCE:
            messages = (Message(role="user", content=head + made.text + tail),)
            if not proves(tokenizer, point.key):
                break
            n_tokens = tokenizer.count(tokenizer.render(messages, answer_prefix))
            if 0 <= budget - n_tokens <= TOLERANCE:
                break
            error = n_tokens - predicted
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
        "predicted": predicted,
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
        extra=facts | dict(extra or {}),
    )


def _infeasible(point: Point, reserve: int, n_frame: int, n_context: int) -> InfeasibleCell:
    minimum = n_frame + n_context + reserve + AIM
    return InfeasibleCell(
        f"length {point.length:,} of task {point.task!r} cannot hold {n_frame:,} tokens of question, example and template, "
        f"{reserve:,} reserved for the answer and a context of {n_context:,}, the smallest that asks anything; "
        f"the shortest length that can is about {minimum:,}",
        minimum=minimum,
    )
