"""helmet.multi_doc and litm.multi_doc: a question on one document of many, which stands at the depth.

Source: the RAG tasks of HELMET (Yen et al. 2025, arXiv 2410.02694) and the multi-document question answering of Lost in the
Middle (Liu et al. 2024, arXiv 2307.03172). Their prompts are kept; the documents are articles about invented firms, so that
nothing can be known without reading. What differs is in DEPARTURES.
Example: "Document (Title: Halaholm Rope Works): ... It is led by Frida Corelund. ..." and the question who leads it.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import grade_one, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.corpus import tier
from longreach.suites.cuts import Ints
from longreach.suites.helmet import articles
from longreach.suites.helmet.answers import best_subspan_em, substring_em
from longreach.suites.helmet.articles import QUESTIONS, SENTENCES, Article
from longreach.suites.helmet.pairs import HELMET, LITM
from longreach.suites.joins import count
from longreach.suites.placing import depth_of
from longreach.suites.tables import permutation, sizes
from longreach.suites.units import Composed, cut_off, fill, remembered

RESERVE_HELMET, RESERVE_LITM = 20, 100
"""HELMET, RAG: 20 new tokens; Lost in the Middle: 100."""
NEAR = 3
"""Documents whose titles begin as the gold one's does."""
TOKENS_PER_DOCUMENT = 40
"""Fewest tokens that a document takes in any tokenizer."""
TRIED = 24
"""Documents at the end that may be changed for one that fits better."""
SLACK = 3
CUT_FROM = 4
"""Tokens left over from which a cut document is added."""
DEPARTURES = (
    "The documents are generated articles about invented firms; no question can be answered without them.",
    "Distractors are articles of the same form, three of them under titles that begin with the same word.",
    "The number of documents follows from the length, which is met within 8 tokens; the last document may be cut for that.",
    "The gold document stands at the edge nearest to a depth in tokens, within a point from 4k on (4 points at 1k), not at an index.",
    "There are no demonstrations; HELMET shows two questions with three documents each.",
    (
        "The headline score is strict: the answer as whole words and none of the near documents'. The published substring rule "
        "is `score_published`."
    ),
)
_QUESTIONS = {
    name: re.compile(re.escape(text).replace(re.escape("{title}"), r"([^\n?]{1,80})"))
    for name, text in QUESTIONS.items()
}
_VALUES = {
    name: re.compile(re.escape(text).replace(re.escape("{value}"), r"([\w ]{1,40}?)"))
    for name, text in SENTENCES.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Articles as documents, counted."""

    documents: tuple[str, ...]
    """Without what stands between two."""
    counts: Ints
    """Tokens of each, with what parts it from the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiDoc(ABC):
    """One gold document among many."""

    name: ClassVar[str]
    source: ClassVar[str]
    summary: ClassVar[str]
    reserve: ClassVar[int]
    head: ClassVar[str]
    joint: ClassVar[str]
    """Between two documents."""
    form: ClassVar[str]
    """A document, with {number} where the documents are numbered."""

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name=self.name,
            version=1,
            capability="retrieval",
            family="documents look-up",
            reserve=self.reserve,
            chance=0.0,
            summary=self.summary,
            source=self.source,
            departures=DEPARTURES,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()
        gold, near = articles.asked(rng, NEAR)
        name = rng.choice(tuple(QUESTIONS))
        question = QUESTIONS[name].format(title=gold.title)
        return fill(
            point,
            tokenizer,
            head=self.head,
            tail=f"\n\nQuestion: {question}\nAnswer:",
            reserve=self.reserve,
            compose=lambda n: self._compose(n, tokenizer, point, gold, near),
            target=gold.answers[name][:1],
            choices=tuple(article.answers[name][0] for article in near),
            extra={"question": question, "aliases": list(gold.answers[name])},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: the answer as whole words, and none of the near documents'. `published`: the source's own rule."""
        aliases = tuple(sample.extra["aliases"])
        graded = grade_one(response.text, aliases, wrong=sample.choices)
        score = Score(
            value=graded.value,
            published=self.published(response.text, sample.target),
            parts=graded.parts,
            extracted=graded.extracted,
        )
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    @abstractmethod
    def published(self, output: str, references: tuple[str, ...]) -> float:
        """The source's rule."""

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        content = messages[-1].content if messages else ""
        text, mark, rest = content.rpartition("\n\nQuestion: ")
        question = rest.removesuffix("\nAnswer:")
        found = next(((name, m[1]) for name, form in _QUESTIONS.items() if (m := form.fullmatch(question))), None)
        opening = re.escape(self.form.partition("{title}")[0]).replace(re.escape("{number}"), r"\d+")
        if not mark or question == rest or found is None or not re.search(opening, text):
            return None
        name, title = found
        document = re.search(rf"{opening}{re.escape(title)}\)[^\n]*", text)
        value = _VALUES[name].search(document.group()) if document else None
        return value[1] if value else ""

    def _document(self, article: Article, number: int = 0) -> str:
        return self.form.format(number=number, title=article.title, text=article.text)

    def _pool(self, tokenizer: Tokenizer, length: int) -> Pool:
        size = tier(length)

        def make() -> Pool:
            documents = tuple(
                self._document(article, 17) for article in articles.pool(max(512, size // TOKENS_PER_DOCUMENT))
            )
            (counts,) = sizes(tokenizer, [text + self.joint for text in documents])
            return Pool(documents=documents, counts=counts)

        return remembered(tokenizer, (self.name, size), make)

    def _compose(
        self, n_tokens: int, tokenizer: Tokenizer, point: Point, gold: Article, near: tuple[Article, ...]
    ) -> Composed:
        """About `n_tokens` of documents, the gold one at the point's depth, the near ones anywhere."""
        rng = point.rng()
        pool = self._pool(tokenizer, point.length)
        own = [self._document(article, 17) for article in (gold, *near)]
        own_counts = [count(tokenizer, text + self.joint + "Document") - count(tokenizer, "Document") for text in own]
        order = permutation(rng, pool.counts.size)
        room = n_tokens - sum(own_counts)
        n = int(np.searchsorted(np.cumsum(pool.counts[order]), room, side="right"))
        chosen, rest = order[:n], order[n:]
        left = room - int(pool.counts[chosen].sum())
        left = _swap_for_size(pool.counts, chosen, rest, left)
        texts = [pool.documents[index] for index in chosen] + own[1:]
        counts = np.append(pool.counts[chosen], own_counts[1:]).astype(np.int64)
        shuffled = permutation(rng, len(texts))
        slot = _order_for_depth(counts, shuffled, depth_of(point))
        texts = [texts[index] for index in shuffled]
        total = np.cumsum(counts[shuffled])
        texts.insert(slot, own[0])
        if "{number}" in self.form:
            texts = [text.replace("[17]", f"[{number}]", 1) for number, text in enumerate(texts, 1)]
        numbers = self._numbers(tokenizer, len(texts))
        tail, n_tail = "", 0
        if left - numbers > CUT_FROM and rest.size:
            spare = pool.documents[int(rest[0])].replace("[17]", f"[{len(texts) + 1}]", 1)
            tail, n_tail = cut_off(tokenizer, self.joint + spare, left - numbers)
        text = self.joint.join(texts) + tail
        last = texts[-1][-40:]
        end = 0 if tail else count(tokenizer, last + self.joint) - count(tokenizer, last)
        return Composed(
            text=text,
            n_tokens=n_tokens - left + numbers + n_tail - end,
            needles=(texts[slot],),
            placed=(float(total[slot - 1] / total[-1]) if slot else 0.0,),
            notes=("the last document is cut",) if tail else (),
        )

    def _numbers(self, tokenizer: Tokenizer, n: int) -> int:
        """Tokens that the numbers of `n` documents cost more than as many seventeens do."""
        if "{number}" not in self.form:
            return 0

        most = max(17, (1 << n.bit_length()) - 1)

        def make() -> Ints:
            (found,) = sizes(tokenizer, [f"\nDocument [{number}](Title: So" for number in range(1, most + 1)])
            return np.cumsum(found - found[17 - 1])

        return int(remembered(tokenizer, ("document numbers", most), make)[n - 1])


def _swap_for_size(counts: Ints, chosen: Ints, rest: Ints, left: int) -> int:
    """Changes one of the last of `chosen` for one of `rest` that is longer by nearly `left`; what is left then."""
    for index in range(chosen.size - 1, max(-1, chosen.size - 1 - TRIED), -1):
        wanted = int(counts[chosen[index]]) + left
        fitting = np.flatnonzero((counts[rest] <= wanted) & (counts[rest] >= wanted - SLACK))
        if left > SLACK and fitting.size:
            left = wanted - int(counts[rest[fitting[0]]])
            chosen[index], rest[fitting[0]] = rest[fitting[0]], chosen[index]
    return left


def _order_for_depth(counts: Ints, order: Ints, depth: float) -> int:
    """How many of `order` stand before a depth; two of them change places if that brings the edge nearer to it."""
    before = np.append(0, np.cumsum(counts[order]))
    wanted = depth * int(before[-1])
    slot = int(np.argmin(np.abs(before - wanted)))
    missing = wanted - int(before[slot])
    if not 0 < slot < order.size or abs(missing) < 2:
        return slot
    first, second = order[:slot], order[slot:]
    gains = counts[second][None, :TRIED] - counts[first][-TRIED:, None]
    at = np.unravel_index(int(np.argmin(np.abs(gains - missing))), gains.shape)
    if abs(int(gains[at]) - missing) < abs(missing):
        i, j = slot - gains.shape[0] + int(at[0]), slot + int(at[1])
        order[i], order[j] = order[j], order[i]
    return slot


class HelmetMultiDoc(MultiDoc):
    name = "helmet.multi_doc"
    source = HELMET
    summary = "HELMET: a question on one of many documents"
    reserve = RESERVE_HELMET
    head = (
        "Use the given documents to write a concise and short answer to the question. Write your answer in the following "
        "format:\nAnswer: [answer]\n\n"
    )
    joint = "\n\n"
    form = "Document (Title: {title}): {text}"

    def published(self, output: str, references: tuple[str, ...]) -> float:
        return substring_em(output, references, "answer:")


class LitmMultiDoc(MultiDoc):
    name = "litm.multi_doc"
    source = LITM
    summary = "Lost in the Middle: a question on one of many documents, by its place"
    reserve = RESERVE_LITM
    head = (
        "Write a high-quality answer for the given question using only the provided search results (some of which might be "
        "irrelevant).\n\n"
    )
    joint = "\n"
    form = "Document [{number}](Title: {title}) {text}"

    def published(self, output: str, references: tuple[str, ...]) -> float:
        return best_subspan_em(output, references)


TASKS = (HelmetMultiDoc(), LitmMultiDoc())
