"""The question of one item of mrcr.synth: its key, its N replies, which of them is asked for, and what guessing is worth.

All of it is the same at every length. Gates: replies distinct, no two of them alike by more than MOST_ALIKE, on average
not by more than MEAN_ALIKE; else the replies are drawn again.
"""

import dataclasses
import random
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from longreach.harness.errors import DataError
from longreach.harness.sample import Point
from longreach.harness.scoring import sequence_ratio
from longreach.suites.mrcr.grading import floor_of
from longreach.suites.mrcr.texts import Bank, Key, bank

MEAN_ALIKE = 0.30
MOST_ALIKE = 0.60
"""Ratios of `SequenceMatcher` between two needles, mean and largest."""
PAIRS_MEASURED = 120
"""Pairs that the mean is taken over, evenly chosen where there are more: 16 needles have 120."""
REDRAWS = 20
STRATA = 5
"""Equal parts of the conversation that the needle asked for is spread over."""
MARKER_LENGTH = 10  # OpenAI MRCR
_LETTERS = string.ascii_letters


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What is asked, whatever the length."""

    key: Key
    needles: tuple[str, ...]
    """Replies in the order of the conversation."""
    asked: int
    """Number of the reply that is wanted, from 1."""
    stratum: int
    """Part of the conversation that it should stand in, from 0; the nearest one that its number allows."""
    marker: str
    floor: float
    """What guessing among the replies is worth, see `grading.floor_of`."""

    @property
    def gold(self) -> str:
        return self.needles[self.asked - 1]

    @property
    def others(self) -> tuple[str, ...]:
        return self.needles[: self.asked - 1] + self.needles[self.asked :]


def item_of(point: Point, n: int) -> Item:
    """The item of a point with `n` needles.

    Raises:
        DataError: no draw passes the gates.
    """
    return _item(dataclasses.replace(point, length=0), n)


@lru_cache(maxsize=64)
def _item(point: Point, n: int) -> Item:
    words, rng = bank(), point.paired_rng()
    asked, stratum = place_of(point, n)
    for _ in range(REDRAWS):
        key = Key(rng.choice(words.forms["target"]), rng.choice(words.topics["target"]))
        needles = draw_needles(words, key, n, rng)
        if needles is not None:
            return Item(
                key=key,
                needles=needles,
                asked=asked,
                stratum=stratum,
                marker=_marker(rng),
                floor=floor_of(needles[asked - 1], needles[: asked - 1] + needles[asked:]),
            )
    raise DataError(f"{REDRAWS} draws of {n} needles for task {point.task!r} were too much alike; choose another seed")


def draw_needles(words: Bank, key: Key, n: int, rng: random.Random) -> tuple[str, ...] | None:
    """`n` replies to one request, or None if they do not pass the gates."""
    texts = tuple(words.reply(key, rng) for _ in range(n))
    return texts if are_distinct(texts) else None


def are_distinct(texts: Sequence[str]) -> bool:
    """True if no two texts are alike by more than MOST_ALIKE, and not by more than MEAN_ALIKE on average.

    The longest common subsequence bounds the ratio from above and is quick, so that few pairs need the ratio itself.
    """
    from rapidfuzz.distance import LCSseq
    from rapidfuzz.process import cdist

    if len(set(texts)) < len(texts):
        return False
    sizes = np.array([len(text) for text in texts])
    common = cdist(texts, texts, scorer=LCSseq.similarity, dtype=np.int32)
    near = np.argwhere(np.triu(2 * common > MOST_ALIKE * (sizes[:, None] + sizes), 1))
    if any(sequence_ratio(texts[b], texts[a]) > MOST_ALIKE for a, b in near.tolist()):
        return False
    pairs = list(combinations(texts, 2))
    measured = pairs[:: -(-len(pairs) // PAIRS_MEASURED)]
    return sum(sequence_ratio(b, a) for a, b in measured) <= MEAN_ALIKE * len(measured)


def place_of(point: Point, n: int) -> tuple[int, int]:
    """Number asked for (from 1) and stratum (from 0): `n` items in a row ask for each number once, and each number comes
    into each stratum once in STRATA x `n` items."""
    rng = dataclasses.replace(point, length=0, index=0).paired_rng()
    numbers, strata = rng.sample(range(1, n + 1), n), rng.sample(range(STRATA), STRATA)
    lap = point.index // n
    return numbers[point.index % n], strata[(point.index + lap * (n % STRATA == 0)) % STRATA]


def _marker(rng: random.Random) -> str:
    """Letters and at least two digits: no word of the conversation is like it."""
    drawn = [rng.choice(_LETTERS) for _ in range(MARKER_LENGTH - 2)] + [rng.choice(string.digits) for _ in range(2)]
    rng.shuffle(drawn)
    return "".join(drawn)


def slots(item: Item, n_turns: int, rng: random.Random) -> list[int]:
    """Ascending places of the needles among `n_turns` turns: the one asked for within its stratum, the others uniformly
    before and behind it."""
    before, behind = item.asked - 1, len(item.needles) - item.asked
    low, high = before, n_turns - 1 - behind
    first, last = item.stratum * n_turns // STRATA, (item.stratum + 1) * n_turns // STRATA - 1
    at = min(max(rng.randint(first, max(first, last)), low), high)
    return [*sorted(rng.sample(range(at), before)), at, *sorted(rng.sample(range(at + 1, n_turns), behind))]


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, ... 11th, 12th, 13th, ... 21st, 22nd, ... 101st.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 100, 101, 111)][:6]
    ['1st', '2nd', '3rd', '4th', '11th', '12th']
    """
    tail = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{tail}"
