"""A haystack of needles: lines of RULER's needle sentence with other keys and values, one of them the needle.

Keys and values come from pools that are counted once per tokenizer; no pair of one prompt comes twice.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from longreach.harness.errors import DataError
from longreach.harness.sample import Point, digest
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.corpus import tier
from longreach.suites.cuts import Ints
from longreach.suites.joins import count
from longreach.suites.ruler.vocabulary import word_list
from longreach.suites.tables import Strings, Table, distinct, draws, joined, measure, permutation, strings, written
from longreach.suites.units import Composed, cut_off, remembered, trimmed

FEWEST_LINES = 2
SLACK = 0
"""Tokens that may be left over; more are given to the last lines."""
CUT_FROM = 4
"""Tokens left over from which a cut line is added, where all lines are of one size."""
RESIZED = 24
"""Lines at the end whose sizes may be chosen."""
TRIES = 64
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Tables whose entries, one of each, make a line."""

    tables: tuple[Table, ...]
    distinct: tuple[bool, ...]
    """True for a table no entry of which may come twice."""
    elastic: int
    """Index of the table whose entries differ in size."""
    values: tuple[Strings, ...]
    """Numbers or uuids of the tables, sorted."""

    def may_hold(self, texts: Sequence[str]) -> bool:
        """True if one of `texts` is a number or uuid of the tables."""
        sought = strings(texts)
        return any(bool((known[np.searchsorted(known[:-1], sought)] == sought).any()) for known in self.values)


def lines_of(tokenizer: Tokenizer, length: int, key: str, value: str) -> Lines:
    """The tables for prompts of `length` tokens: `word` or `uuid` keys, `number` or `uuid` values."""
    size = tier(length)
    return remembered(tokenizer, ("needle lines", size, key, value), lambda: _lines(tokenizer, size, key, value))


def _lines(tokenizer: Tokenizer, size: int, key: str, value: str) -> Lines:
    n = max(4096, size // 8)  # lines of 14 tokens and more; of uuids 27 and more
    if key == "word":
        numbers = random.Random(int(digest(["numbers", 1])[:32], 16)).sample(range(1_000_000, 10_000_000), n)
        columns: tuple[list[str], ...] = (
            [f"One of the special magic numbers for {word}" for word in word_list("adjective")],
            [f"-{word} is:" for word in word_list("noun")],
            [f" {number}.\n" for number in numbers],
        )
        return Lines(
            tables=measure(tokenizer, *columns),
            distinct=(False, False, True),
            elastic=1,
            values=(np.sort(strings([str(number) for number in numbers])),),
        )
    rng = random.Random(int(digest(["uuids", 1])[:32], 16))
    keys, values = (random_uuids(n // 2, rng) for _ in range(2))
    columns = ([f"One of the special magic uuids for {text}" for text in keys], [f" is: {text}.\n" for text in values])
    return Lines(
        tables=measure(tokenizer, *columns),
        distinct=(True, True),
        elastic=1,
        values=(np.sort(strings(keys)), np.sort(strings(values))),
    )


def random_uuids(n: int, rng: random.Random) -> list[str]:
    """`n` uuids of version 4."""
    digits = rng.randbytes(16 * n).hex()
    variants = rng.choices("89ab", k=n)
    return [
        f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-4{digits[at + 13 : at + 16]}-"
        f"{variant}{digits[at + 17 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at, variant in zip(range(0, 32 * n, 32), variants, strict=True)
    ]


def compose_lines(
    n_tokens: int,
    tokenizer: Tokenizer,
    point: Point,
    *,
    needle: str,
    depth: float,
    key: str,
    value: str,
    absent: Sequence[str],
) -> Composed:
    """About `n_tokens` of lines, the needle at `depth` of them (0.0 first, 1.0 last).

    Raises:
        DataError: every draw holds one of `absent` (in practice never).
    """
    rng = point.rng()
    lines = lines_of(tokenizer, point.length, key, value)
    room = n_tokens - count(tokenizer, needle + "\n")
    for _ in range(TRIES):
        rows = _draw(lines, room, rng)
        total = np.cumsum(sum(table.counts.take(row) for table, row in zip(lines.tables, rows, strict=True)))
        n = max(FEWEST_LINES, int(np.searchsorted(total, room, side="right")))
        left = _resize(lines, rows, n, room - int(total[n - 1]), rng)
        codes = _codes(rows, n, lines)
        if not _all_differ(codes) or any((codes == code).any() for text in absent for code in _pairs_of(text)):
            continue
        drawn = joined(*(table.entries.take(row[: n + 1]) for table, row in zip(lines.tables, rows, strict=True)))
        rest, n_rest = "", 0
        if left > CUT_FROM:
            rest, n_rest = cut_off(tokenizer, written(drawn[n:]).decode(), left)
        slot = int(depth * (n + 1))
        before, after = written(drawn[:slot]), written(drawn[slot:n])
        if lines.may_hold(absent) and any(text.encode() in part for text in absent for part in (before, after)):
            continue
        text = b"".join((before, needle.encode(), b"\n", after, rest.encode())).decode()
        text, used = trimmed(tokenizer, text, n_tokens - left + n_rest, end=0 if rest else 1)
        return Composed(
            text=text,
            n_tokens=used,
            needles=(needle,),
            placed=(float(total[slot - 1] / total[n - 1]) if slot else 0.0,),
            notes=("the last line is cut",) if rest else (),
        )
    raise DataError(f"{TRIES} draws of needle lines for {point.task!r} all held {absent[0]!r}; choose another --seed")


def _draw(lines: Lines, room: int, rng: random.Random) -> list[Ints]:
    """Rows for more lines than fit: an index into each table; no two keys are the same."""
    smallest = sum(min(table.by_size) for table in lines.tables)
    n = max(room, 0) // max(smallest, 1) + FEWEST_LINES + 1
    spare = n + 64 + n // 64  # of six million pairs, a few come twice
    rows = [
        permutation(rng, table.counts.size, spare) if distinct else draws(rng, spare, table.counts.size)
        for table, distinct in zip(lines.tables, lines.distinct, strict=True)
    ]
    if lines.distinct[0]:
        return [row[:n] for row in rows]
    n_second = lines.tables[1].counts.size
    codes = distinct(rows[0] * n_second + rows[1])[:n]
    return [*np.divmod(codes, n_second), rows[2][: codes.size]]


def _resize(lines: Lines, rows: list[Ints], n: int, left: int, rng: random.Random) -> int:
    """Changes entries of the last of `n` lines for longer ones until at most SLACK of `left` tokens are left over."""
    table, row = lines.tables[lines.elastic], rows[lines.elastic]
    once = lines.distinct[lines.elastic]
    free = np.ones(table.counts.size if once else 0, dtype=np.bool_)
    if once:
        free[row] = False
    largest = max(table.by_size)
    first = max(0, n - RESIZED)
    for index in range(n - 1, first - 1, -1):
        if left <= SLACK:
            break
        have = int(table.counts[row[index]])
        share = -(-left // (index - first + 1))
        for more in range(min(share, largest - have, left), 0, -1):
            options = table.by_size.get(have + more, _NONE)
            if once:
                options = options[free[options]]
            if options.size:
                row[index] = options[rng.randrange(options.size)]
                if once:
                    free[row[index]] = False
                left -= more
                break
    return left


def _codes(rows: Sequence[Ints], n: int, lines: Lines) -> Ints:
    """What no two of `n` lines may share: the pair of words in a key, or the value."""
    return rows[0][:n] * lines.tables[1].counts.size + rows[1][:n] if not lines.distinct[0] else rows[1][:n]


def _all_differ(codes: Ints) -> bool:
    ordered = np.sort(codes)
    return not bool((ordered[1:] == ordered[:-1]).any())


def _pairs_of(key: str) -> list[int]:
    """Codes of the adjective and noun that a key may be read as."""
    adjectives, nouns = _numbers("adjective"), _numbers("noun")
    parts = key.split("-")
    halves = (("-".join(parts[:at]), "-".join(parts[at:])) for at in range(1, len(parts)))
    return [adjectives[a] * len(nouns) + nouns[b] for a, b in halves if a in adjectives and b in nouns]


@cache
def _numbers(kind: str) -> dict[str, int]:
    return {word: number for number, word in enumerate(word_list(kind))}
