"""Tables of counted strings (words, numbers, lines), and random picks of them: whole arrays at a time, no string by string.

What may fill a place is counted once per tokenizer, in the layout that it will stand in: one text that holds every entry
is encoded, and each token belongs to the entry that it ends in. A prompt's size is then a sum. Entries are kept as bytes
of one width, so that numpy picks and joins tens of thousands of them in a millisecond.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from longreach.harness.table_cache import Arrays, cached
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.cuts import Ints

Strings = NDArray[np.bytes_]
"""UTF-8 strings of one width: NULs fill up what is shorter, and stand for nothing wherever they are."""

_AT_ONCE = 4096
MEASURED_AT_ONCE = 1 << 20
"""Characters that are encoded at once when entries are counted."""
BULK = 1 << 16
"""Random numbers from which lending Python's generator to numpy, a quarter of a millisecond, is worth it."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Strings that may fill one place of a unit; arrays of shape (n_entries,)."""

    entries: Strings
    counts: Ints
    """Tokens that each costs in its place."""

    @cached_property
    def by_size(self) -> dict[int, Ints]:
        """Indices of the entries of each number of tokens."""
        return {int(size): np.flatnonzero(self.counts == size) for size in np.unique(self.counts)}


def strings(texts: Sequence[str]) -> Strings:
    """Strings as an array, shape (n_texts,)."""
    return np.array([text.encode() for text in texts], dtype=np.bytes_)


def joined(*columns: Strings) -> Strings:
    """Units of one entry of each column."""
    if len(columns) == 1:
        return columns[0]
    grid = np.empty(columns[0].shape, dtype=[(f"f{i}", column.dtype) for i, column in enumerate(columns)])
    for index, column in enumerate(columns):
        grid[f"f{index}"] = column
    return grid.view((np.bytes_, grid.itemsize))


def written(*columns: Strings) -> bytes:
    """Units of one entry of each column, written one after the other, as UTF-8."""
    starts = range(0, columns[0].size, _AT_ONCE)  # some at a time stay in the processor's cache
    parts = [joined(*(column[at : at + _AT_ONCE] for column in columns)).tobytes() for at in starts]
    return b"".join([part.translate(None, b"\0") if b"\0" in part else part for part in parts])


def measure(tokenizer: Tokenizer, *columns: Sequence[str]) -> tuple[Table, ...]:
    """Tables for units that are one entry of each column, joined; unit follows unit in the text that is counted."""
    return tuple(
        Table(entries=strings(column), counts=counts)
        for column, counts in zip(columns, sizes(tokenizer, *columns), strict=True)
    )


def sizes(tokenizer: Tokenizer, *columns: Sequence[str]) -> tuple[Ints, ...]:
    """Tokens of the entries of `measure`, one array a column; kept on disk by the hash of what is counted."""

    def make() -> Arrays:
        counts = _count_all(tokenizer, columns)
        return {f"counts{i}": counts[: len(column), i].astype(np.uint32) for i, column in enumerate(columns)}

    def fits(found: Arrays) -> bool:
        wanted = {f"counts{i}": len(column) for i, column in enumerate(columns)}
        return {name: array.size for name, array in found.items()} == wanted and all(
            array.dtype == np.uint32 and array.ndim == 1 for array in found.values()
        )

    found = cached("units", tokenizer, _content(columns), make, fits)
    return tuple(found[f"counts{index}"].astype(np.int64) for index in range(len(columns)))


def _content(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """The columns in some pieces: as a whole, those of all documents would be another 40 MB."""
    for column in columns:
        yield str(len(column))
        yield from ("\0".join(column[at : at + _AT_ONCE]) for at in range(0, len(column), _AT_ONCE))


def _count_all(tokenizer: Tokenizer, columns: Sequence[Sequence[str]]) -> Ints:
    """Tokens of the entries of each unit, shape (n_units, n_columns); shorter columns begin anew."""
    n_rows = max(len(column) for column in columns)
    n_characters = sum(sum(map(len, column)) * -(-n_rows // len(column)) for column in columns)
    step = max(1, n_rows * MEASURED_AT_ONCE // max(1, n_characters))
    parts = [_count_some(tokenizer, columns, start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    return np.concatenate(parts)


def _count_some(tokenizer: Tokenizer, columns: Sequence[Sequence[str]], start: int, stop: int) -> Ints:
    """Tokens of the entries of some units, shape (stop - start, n_columns)."""
    rows = range(start - 1, stop)  # the unit before them is counted too, and left out
    pieces = [column[row % len(column)] for row in rows for column in columns]
    edges = np.cumsum(np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces)))
    _, ends = tokenizer.spans("".join(pieces))
    before = np.searchsorted(np.maximum.accumulate(ends), edges, side="right") if ends.size else np.zeros_like(edges)
    counts: Ints = np.diff(before, prepend=0).reshape(len(rows), len(columns))[1:]
    return counts


def _random_words(rng: random.Random, n: int) -> NDArray[np.uint64]:
    """`n` numbers of 32 random bits: those of `rng.randbytes(4 * n)`, which goes through one huge int, slow where `n` is large.

    Python's generator and numpy's MT19937 are one algorithm, so that the state can be lent and taken back.
    """
    if n < BULK:
        return np.frombuffer(rng.randbytes(4 * n), dtype="<u4").astype(np.uint64)
    version, state, gauss = rng.getstate()
    twister = np.random.MT19937(0)
    key = np.array(state[:-1], dtype=np.uint32)
    twister.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": state[-1]}}
    found: NDArray[np.uint64] = twister.random_raw(n)
    left = twister.state["state"]
    rng.setstate((version, (*left["key"].tolist(), int(left["pos"])), gauss))
    return found


def draws(rng: random.Random, n: int, below: int) -> Ints:
    """`n` random numbers from 0 to `below` - 1, with repeats; a smaller `n` gives the first of them."""
    words = _random_words(rng, n)
    words *= np.uint64(below)
    words >>= np.uint64(32)
    return words.view(np.int64)


def shuffled(rng: random.Random, numbers: Ints, most: int | None = None) -> Ints:
    """`numbers` (0 to 2^32 - 1) in random order: sorted by 32 random bits each, the same on every machine.

    Args:
        most: so many of them are wanted; the first ones are the same.
    """
    keys = _random_words(rng, numbers.size)
    keys <<= np.uint64(32)
    keys |= numbers.astype(np.uint64)
    if most is not None and most < keys.size:
        keys.partition(most)
        keys = keys[:most]
    keys.sort()
    keys &= np.uint64(0xFFFFFFFF)
    return keys.view(np.int64)


def permutation(rng: random.Random, n: int, most: int | None = None) -> Ints:
    """The numbers 0 to `n` - 1 in random order, or the first `most` of them."""
    return shuffled(rng, np.arange(n, dtype=np.int64), most)


def distinct(numbers: Ints) -> Ints:
    """`numbers` (0 to 2^32 - 1) without those that came before, in their order."""
    keys = numbers.astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(numbers.size, dtype=np.uint64)
    keys.sort()
    values = keys >> np.uint64(32)
    again = (keys[1:] & np.uint64(0xFFFFFFFF))[values[1:] == values[:-1]]
    return np.delete(numbers, again.astype(np.int64)) if again.size else numbers
