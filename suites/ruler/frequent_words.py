"""RULER's frequent words extraction: the three coded words that come most often in a Zipf-distributed text.

Source: Hsieh et al. 2024, "RULER", section 3, and data/synthetic/freq_words_extraction.py of github NVIDIA/RULER at
c3f5e3b. The strings below are theirs, literally. Example: "... qpzlmw ... tfhgxa qpzlmw ..." -> the words of rank 2, 3 and
4, while rank 1 is written "..." and to be ignored. What differs is in DEPARTURES.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import isqrt, pi
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample, digest
from longreach.harness.scoring import clean, recall_precision, string_match_all, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.cuts import Ints
from longreach.suites.placing import wrong_lists
from longreach.suites.ruler.common import COMMON_DEPARTURES, SOURCE, check_common
from longreach.suites.tables import Table, distinct, draws, measure, shuffled, written
from longreach.suites.units import Composed, fill, remembered, trimmed

OPENING = (
    "Read the following coded text and track the frequency of each coded word. Find the three most frequently appeared "
    "coded words. "
)
QUESTION = (
    "Question: Do not provide any explanation. Please ignore the dots '....'. What are the three most frequently appeared "
    "words in the above coded text?"
)
PREFIX = " Answer: According to the coded text above, the three most frequently appeared words are:"
RESERVE = 50  # RULER, data/synthetic/constants.py: freq_words_extraction tokens_to_generate
ZETA = pi * pi / 6
"""zeta(alpha) for RULER's alpha = 2."""
WORD_LENGTH = 6
N_ASKED = 3
TOKENS_PER_WORD = 50
"""RULER: one word of the vocabulary for so many tokens of the budget."""
MOST_DOTS = 400
N_WORDS = 65_536
"""Coded words that are counted once; each sample draws its own among them."""
N_SPARE = 256
"""More words drawn than that: of 309 million, about seven come twice."""

DEPARTURES = (
    *COMMON_DEPARTURES,
    (
        "The text is shuffled anew for each sample; RULER's generator, seeded anew, puts each rank at the same places in every "
        "sample of a size."
    ),
    "The fourth word asked for is always rarer than the third: a length too short for that is refused.",
    f"Coded words are drawn from {N_WORDS:,} random ones.",
    "A few dots more than Zipf's share may be added, so that the length is met.",
)

_ASKED = re.compile(re.escape("\n" + QUESTION) + rf"(?:{re.escape(PREFIX)})?\s*\Z")
_CODED = re.compile(rf"(?<![A-Za-z0-9]){'[a-z]'}{{{WORD_LENGTH}}}(?![A-Za-z0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequentWords:
    """Three frequent words among rarer ones and dots."""

    variant: str = "head"
    """head or 2024: the text is the same; 2024's generator left the answer out of the length, which ours never does."""
    prefill: bool = False
    """True: the answer prefix starts the assistant's turn; False: it ends the user's message."""
    reserve: int = RESERVE
    """Tokens kept free for the answer."""

    def __post_init__(self) -> None:
        check_common(self.variant, self.prefill, self.reserve)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="ruler.fwe",
            version=1,
            capability="reasoning",
            family="aggregation",
            reserve=self.reserve,
            chance=0.0,
            has_depth=False,
            summary="RULER: the three most frequent coded words",
            source=SOURCE,
            departures=DEPARTURES,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self), by_depth=False)

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        budget = point.length - self.reserve
        # Ranks that would come less than once are absent; there are about sqrt(tokens / zeta) others.
        n_ranks = max(6, min(budget // TOKENS_PER_WORD, isqrt(max(budget, 0)) + 2))
        pool = _pool(tokenizer)
        ranks = np.append(0, draw_words(n_ranks - 1, point.paired_rng()))
        entries = pool.entries[ranks]
        first = [entry.decode().strip() for entry in entries[1 : N_ASKED + 2].tolist()]
        asked = first[:N_ASKED]
        return fill(
            point,
            tokenizer,
            head=OPENING,
            tail="\n" + QUESTION + ("" if self.prefill else PREFIX),
            reserve=self.reserve,
            compose=lambda n: _compose(n, tokenizer, point, Table(entries=entries, counts=pool.counts[ranks])),
            target=tuple(asked),
            choices=wrong_lists(asked, first[N_ASKED]),
            answer_prefix=PREFIX if self.prefill else "",
            extra={"question": QUESTION},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: the three words and no other of the text. `published`: RULER's string_match_all."""
        prompt = sample.messages[-1].content
        listed = {*_coded(prompt), *sample.target}
        named = list(dict.fromkeys(word for word in _CODED.findall(clean(response.text).lower()) if word in listed))
        recall, precision = recall_precision(named, sample.target)
        score = Score(
            value=float(recall == 1.0 and precision == 1.0),
            published=string_match_all(response.text, sample.target),
            parts={"recall": recall, "precision": precision},
            extracted=", ".join(named) or None,
        )
        return without_credit_for_copies(score, response.text, prompt)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        content = messages[-1].content if messages else ""
        if _ASKED.search(content) is None:
            return None
        return ", ".join(word for word, _ in Counter(_coded(content)).most_common(N_ASKED))


@cache
def coded_words() -> tuple[str, ...]:
    """N_WORDS different words of six small letters, uniform."""
    letters = np.frombuffer(ascii_lowercase.encode(), dtype=np.uint8)
    rng = random.Random(int(digest(["coded words", 1])[:32], 16))
    data = letters[draws(rng, (N_WORDS + N_SPARE) * WORD_LENGTH, len(letters))].tobytes().decode()
    words = dict.fromkeys(data[at : at + WORD_LENGTH] for at in range(0, len(data), WORD_LENGTH))
    return tuple(words)[:N_WORDS]


def _pool(tokenizer: Tokenizer) -> Table:
    """The dots, then the coded words, counted once."""

    def make() -> Table:
        (table,) = measure(tokenizer, [" ...", *(f" {word}" for word in coded_words())])
        return table

    return remembered(tokenizer, ("coded words",), make)


def draw_words(n: int, rng: random.Random) -> Ints:
    """Places in the pool of `n` different words; a smaller `n` gives the first of them."""
    places = np.zeros(0, dtype=np.int64)
    while places.size < n:
        places = distinct(np.concatenate((places, 1 + draws(rng, n, N_WORDS))))
    return places[:n]


def _coded(content: str) -> list[str]:
    text = content.rpartition("\n" + QUESTION)[0].rpartition(OPENING.rstrip())[2]
    return [word for word in text.split() if len(word) == WORD_LENGTH and word.isalpha()]


@cache
def _powers(n_ranks: int) -> NDArray[np.float64]:
    powers: NDArray[np.float64] = np.arange(1, n_ranks + 1, dtype=np.float64) ** -2.0
    return powers


def zipf_counts(n_words: int, n_ranks: int) -> Ints:
    """How often each rank, from 1, comes in a text of `n_words`: RULER's int(n x rank^-2 / zeta(2))."""
    counts: Ints = (n_words * _powers(n_ranks) / ZETA).astype(np.int64)
    return counts


def _compose(n_tokens: int, tokenizer: Tokenizer, point: Point, ranks: Table) -> Composed:
    """A text of about `n_tokens`; the first of `ranks` is the dots."""
    counts = ranks.counts
    # Rounding down takes less than each rank's tokens once, so that the number of words is known within a few hundred.
    share = float(_powers(counts.size) @ counts) / ZETA
    low, high = max(1, int(n_tokens / share) - 1), max(2, int((n_tokens + int(counts.sum())) / share) + 2)
    while high - low > 1:
        middle = (low + high) // 2
        fits = int(zipf_counts(middle, counts.size) @ counts) <= n_tokens
        low, high = (middle, high) if fits else (low, middle)
    often = zipf_counts(low, counts.size)
    while often[N_ASKED] <= often[N_ASKED + 1] or often[N_ASKED] < 2:
        low += 1  # too short to ask anything: the smallest text that does
        often = zipf_counts(low, counts.size)
    left = (n_tokens - int(often @ counts)) // int(counts[0])
    often[0] += min(max(left, 0), MOST_DOTS)
    order = shuffled(point.rng(), np.repeat(np.arange(counts.size), often))
    text, used = trimmed(tokenizer, written(ranks.entries.take(order)).decode(), int(often @ counts), start=1)
    return Composed(text=text, n_tokens=used)


TASKS = (FrequentWords(),)
