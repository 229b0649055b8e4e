"""RULER's common words extraction: the ten words that stand in a numbered list more often than all others.

Source: Hsieh et al. 2024, "RULER", section 3, and data/synthetic/common_words_extraction.py of github NVIDIA/RULER at
c3f5e3b. The strings below are theirs, literally. Example: "1. otter 2. brave 3. otter ..." -> the ten words that come 30
times, while the others come 3 times. What differs is in DEPARTURES.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import clean, recall_precision, string_match_all, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.corpus import tier
from longreach.suites.cuts import Ints
from longreach.suites.joins import count
from longreach.suites.placing import wrong_lists
from longreach.suites.ruler.common import COMMON_DEPARTURES, SOURCE, check_common
from longreach.suites.ruler.vocabulary import vocabulary, word_list
from longreach.suites.tables import Strings, Table, distinct, draws, joined, measure, permutation, shuffled, written
from longreach.suites.units import Composed, Piece, fill, remembered, spliced, trimmed

OPENING = (
    "Below is a numbered list of words. In these words, some appear more often than others. Memorize the ones that "
    "appear most often.\n"
)
QUESTION = "Question: What are the 10 most common words in the above list?"
PREFIX = " Answer: The top 10 words that appear most often in the list are:"
RESERVE = 120  # RULER, data/synthetic/constants.py: common_words_extraction tokens_to_generate
N_COMMON = 10
LONG_FROM = 4096
"""Tokens from which RULER repeats words 30 and 3 times (6 and 1 below), and 10 and 3 times in the example (3 and 1)."""
FEWEST_OTHERS = 10
FIRST = " 1."
"""How a list begins before its blank is taken off."""
RESIZED = 32
"""Words of the list whose sizes may be chosen."""
N_SPARE = 40 * RESIZED
"""Unused words among which those are looked for."""

DEPARTURES = (
    *COMMON_DEPARTURES,
    (
        "The list is shuffled anew for each sample; RULER's generator, seeded anew, puts the common words at the same places "
        "in every sample of a size."
    ),
    "Words of the example never stand in the list.",
    "A few uncommon words are chosen by their size in tokens, so that the length is met.",
    (
        "Where the list needs more words than wonderwords has (8,166), all are adjective-noun pairs; RULER takes another "
        "word list there (head) or stops growing (2024)."
    ),
)

_ASKED = re.compile(re.escape("\n" + QUESTION) + rf"(?:{re.escape(PREFIX)})?\s*\Z")
_ENTRY = re.compile(r"\d+\. (.+?)(?= \d+\. |\n|\Z)")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonWords:
    """Ten common words among uncommon ones."""

    variant: str = "head"
    """head, or 2024: no blank before the answers of the example."""
    prefill: bool = False
    """True: the answer prefix starts the assistant's turn; False: it ends the user's message."""
    reserve: int = RESERVE
    """Tokens kept free for the answer."""

    def __post_init__(self) -> None:
        check_common(self.variant, self.prefill, self.reserve)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="ruler.cwe",
            version=1,
            capability="reasoning",
            family="aggregation",
            reserve=self.reserve,
            chance=0.0,
            has_depth=False,
            summary="RULER: the ten most common words of a list",
            source=SOURCE,
            data_revision="wonderwords 3.0.1",
            departures=DEPARTURES,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self), by_depth=False)

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        words = vocabulary()
        long = point.length >= LONG_FROM
        repeats = (30, 3) if long else (6, 1)
        rng = point.paired_rng()
        order = permutation(rng, len(words), N_COMMON + 40 + _most_others(tokenizer, point.length, repeats[1]))
        n_example = 40 if long else 20
        common, example, rest = order[:N_COMMON], order[N_COMMON : N_COMMON + 40][:n_example], order[N_COMMON + 40 :]
        asked = [words[index] for index in common]
        head, n_head = self._head(tokenizer, point.length, example, (10, 3) if long else (3, 1), rng)
        return fill(
            point,
            tokenizer,
            head=head,
            tail="\n" + QUESTION + ("" if self.prefill else PREFIX),
            reserve=self.reserve,
            compose=lambda n: _compose(n, tokenizer, point, common, rest, repeats),
            target=tuple(asked),
            choices=wrong_lists(asked, words[rest[0]]),
            answer_prefix=PREFIX if self.prefill else "",
            extra={"question": QUESTION},
            n_head=n_head,
        )

    def _head(
        self, tokenizer: Tokenizer, length: int, example: Ints, repeats: tuple[int, int], rng: random.Random
    ) -> tuple[str, int]:
        """The one-shot example, a short list with its answer, and the opening of the real one; and their tokens."""
        often = np.repeat(example, np.repeat(repeats, (N_COMMON, example.size - N_COMMON)))
        numbers, words, _ = _tables(tokenizer, length)
        listed = _listed(tokenizer, numbers, words, shuffled(rng, often))
        asked = f"\n{QUESTION}{PREFIX}" + ("" if str(self.variant) == "2024" else " ")
        return spliced(
            tokenizer,
            Piece(OPENING, count(tokenizer, OPENING)),
            listed,
            Piece(asked, count(tokenizer, asked)),
            _listed(tokenizer, numbers, words, example[:N_COMMON]),
            Piece("\n" + OPENING, count(tokenizer, "\n" + OPENING)),
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: the ten words and no other of the list. `published`: RULER's string_match_all."""
        prompt = sample.messages[-1].content
        named = named_in(response.text, {*_entries(prompt), *sample.target})
        recall, precision = recall_precision(named, [word.casefold() for word in sample.target])
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
        counts = Counter(_entries(content))
        return ", ".join(word for word, n in counts.most_common(N_COMMON) if n > 1)


def _listed(tokenizer: Tokenizer, numbers: Table, words: Table, places: Ints) -> Piece:
    """The words at `places`, numbered from 1 and parted by blanks."""
    data = written(numbers.entries[: places.size], words.entries.take(places))
    used = int(numbers.counts[: places.size].sum() + words.counts.take(places).sum())
    return _begun(tokenizer, data, used)


def _begun(tokenizer: Tokenizer, data: bytes, n_tokens: int) -> Piece:
    """A list as text, without the blank before it: only its first number, parted from the word, may cost something else."""
    text, used = trimmed(tokenizer, data.decode(), n_tokens, start=1, reach=len(FIRST))
    return Piece(text, used, reach=len(FIRST) - 1)


def _entries(content: str) -> list[str]:
    """Words of the list in a prompt, as often as they stand there; the example's are left out."""
    text = content.rpartition("\n" + QUESTION)[0].rpartition(OPENING)[2]
    return _ENTRY.findall(text.rpartition("\n")[2])


def named_in(answer: str, listed: set[str]) -> list[str]:
    """Words of `listed` that an answer names, each once and in small letters.

    An entry is what stands between numbers, commas or line ends; only where none of those is a listed word, words apart.
    """
    known = {word.casefold() for word in listed}
    text = clean(answer).casefold()
    entries = [part.strip(" .:;-'\"()") for part in re.split(r"[,;\n]|(?<!\w)\d+[.)]", text)]
    entries = [part.removeprefix("and ") for part in entries]
    found = [part for part in entries if part in known]
    if len(found) < 2:
        found = [word for part in text.split() if (word := part.strip(" .,:;-'\"()")) in known]
    return list(dict.fromkeys(found))


def _tables(tokenizer: Tokenizer, length: int) -> tuple[Table, Table, Ints]:
    """Numbers and words of entries, in that order, counted in a list of them; and the tokens of the first n + 1 numbers."""
    size = tier(length)

    def make() -> tuple[Table, Table, Ints]:
        numbers, words = measure(
            tokenizer, [f" {index}." for index in range(1, size // 3)], [f" {word}" for word in vocabulary()]
        )
        return numbers, words, np.cumsum(numbers.counts)

    return remembered(tokenizer, ("numbered words", size), make)


def _pairs(tokenizer: Tokenizer) -> tuple[Table, Table]:
    def make() -> tuple[Table, Table]:
        first, second, _ = measure(
            tokenizer,
            [f" {word}" for word in word_list("adjective")],
            [f"-{word}" for word in word_list("noun")],
            [" 17."],
        )
        return first, second

    return remembered(tokenizer, ("pairs",), make)


def _most_others(tokenizer: Tokenizer, length: int, few: int) -> int:
    """More uncommon words than a list of `length` tokens holds, and the spare ones."""
    numbers, words, _ = _tables(tokenizer, length)
    return max(0, length) // (few * (min(words.by_size) + min(numbers.by_size))) + FEWEST_OTHERS + N_SPARE


def _compose(
    n_tokens: int, tokenizer: Tokenizer, point: Point, common: Ints, rest: Ints, repeats: tuple[int, int]
) -> Composed:
    """A list of about `n_tokens`: the common words and as many others as fit."""
    rng = point.rng()
    numbers, words, numbering = _tables(tokenizer, point.length)
    many, few = repeats
    fixed = many * int(words.counts[common].sum())
    columns: tuple[Strings, ...] = (words.entries,)
    rows: tuple[Ints, ...] = (rest,)
    sizes = words.counts.take(rest)
    n = _most(n_tokens - fixed, sizes, numbering, many, few)
    notes: tuple[str, ...] = ()
    if n > rest.size - RESIZED:
        columns, rows, sizes = _drawn_pairs(tokenizer, n_tokens // (few * 4), rng)
        n = _most(n_tokens - fixed, sizes, numbering, many, few)
        notes = ("words are adjective-noun pairs: the list needs more than wonderwords has",)
    n = max(n, FEWEST_OTHERS)
    n_entries = N_COMMON * many + n * few
    chosen = np.arange(n)
    used = fixed + few * int(sizes[:n].sum()) + int(numbering[n_entries - 1])
    used += _swap(chosen, sizes, (n_tokens - used) // few, rng) * few
    others = joined(*(column.take(row[chosen]) for column, row in zip(columns, rows, strict=True)))
    entries: Strings = np.concatenate((words.entries[common], others))
    often = np.repeat(np.arange(N_COMMON + n), np.repeat((many, few), (N_COMMON, n)))
    data = written(numbers.entries[:n_entries], entries.take(shuffled(rng, often)))
    text, used, reach = _begun(tokenizer, data, used)
    return Composed(text=text, n_tokens=used, reach=reach, notes=notes)


def _most(n_tokens: int, counts: Ints, numbering: Ints, many: int, few: int) -> int:
    """How many uncommon words fit `n_tokens`, their numbers and those of the common words included."""
    first = N_COMMON * many
    n = min(counts.size, (numbering.size - first) // few)
    total = few * np.cumsum(counts[:n]) + numbering[first + few - 1 : first + few * n : few]
    return int(np.searchsorted(total, n_tokens, side="right"))


def _swap(chosen: Ints, counts: Ints, left: int, rng: random.Random) -> int:
    """Changes some of the `chosen` words for unused longer ones, `left` tokens in all; returns those gained."""
    gained = 0
    first = chosen.size
    spare = counts[first : first + N_SPARE].copy()
    for index in range(first - 1, max(0, first - RESIZED), -1):  # the first is one that an answer may name
        if gained >= left:
            break
        have = int(counts[chosen[index]])
        for more in range(min(left - gained, 3), 0, -1):
            options = np.flatnonzero(spare == have + more)
            if options.size:
                place = int(options[rng.randrange(options.size)])
                chosen[index] = first + place
                spare[place] = 0  # taken
                gained += more
                break
    return gained


def _drawn_pairs(
    tokenizer: Tokenizer, n: int, rng: random.Random
) -> tuple[tuple[Strings, ...], tuple[Ints, ...], Ints]:
    """Different adjective-noun pairs, about `n` and more than enough: two columns, a row of each for each pair, sizes."""
    first, second = _pairs(tokenizer)
    codes = distinct(draws(rng, n + n // 32 + 64, first.counts.size * second.counts.size))
    a, b = np.divmod(codes, second.counts.size)
    return (first.entries, second.entries), (a, b), first.counts[a] + second.counts[b]


TASKS = (CommonWords(),)
