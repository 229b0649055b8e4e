"""helmet.json_kv and litm.kv: the value of one key among pairs of uuids in a JSON object, by the pair's place.

Source: Liu et al. 2024, "Lost in the Middle" (arXiv 2307.03172), key-value retrieval, and HELMET (Yen et al. 2025, arXiv
2410.02694), json_kv, which asks the same after the object, with two solved keys. Their prompts are kept; the pairs are made
here. Example: {"9b1deb4d-...": "3f2504e0-..."} and the key -> its value. What differs is in DEPARTURES.
"""

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample, digest
from longreach.harness.scoring import clean, recall_precision, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.corpus import tier
from longreach.suites.cuts import Ints
from longreach.suites.helmet.answers import substring_em
from longreach.suites.joins import count
from longreach.suites.placing import depth_of
from longreach.suites.ruler.needle_lines import random_uuids
from longreach.suites.tables import Table, measure, permutation, written
from longreach.suites.units import Composed, cut_off, fill, remembered, trimmed

INSTRUCTION = "Extract the value corresponding to the specified key in the JSON object below."
RESERVE = 100  # Lost in the Middle and HELMET: new tokens
N_DEMOS = 2
END = '",\n'
"""What ends a value and its pair."""
FEWEST = 2
"""Pairs beside those that are asked for or shown."""
TOKENS_PER_PAIR = 24
"""Fewest tokens that a pair takes in any tokenizer."""
LITM = "Lost in the Middle (Liu et al. 2024, arXiv 2307.03172), nelson-liu/lost-in-the-middle"
HELMET = "HELMET (Yen et al. 2025, arXiv 2410.02694), princeton-nlp/HELMET 06526f1"
DEPARTURES = (
    "The number of pairs follows from the length, which is met within 8 tokens; the last pair's value may be longer for that.",
    "Keys and values beside the one that is asked for come from a fixed pool, so that they are counted once.",
    "The pair stands at the edge nearest to a depth in tokens, within a point from 4k tokens on (4 points at 1k), not at one of a few indices.",
    "The headline score is strict: the value and no other uuid. The published rule, a substring, is `score_published`.",
)
_UUID = re.compile(r"(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])")
_LONGEST_QUESTION = 800
"""Characters from the question to the end of the prompt, solved keys included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A key and its value."""

    key: str
    value: str

    @property
    def text(self) -> str:
        """As it stands in the object."""
        return f'"{self.key}": "{self.value}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs(ABC):
    """One pair among many."""

    name: ClassVar[str]
    source: ClassVar[str]
    summary: ClassVar[str]
    n_demos: ClassVar[int]
    """Keys that are shown with their values after the object."""
    asked: ClassVar[re.Pattern[str]]
    """The end of a prompt, with the key."""

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name=self.name,
            version=1,
            capability="retrieval",
            family="key-value",
            reserve=RESERVE,
            chance=0.0,
            summary=self.summary,
            source=self.source,
            departures=DEPARTURES,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    @abstractmethod
    def around(self, pair: Pair, demos: tuple[Pair, ...]) -> tuple[str, str, str]:
        """What stands before the object's pairs, behind them, and the question in that."""

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()
        texts = random_uuids(2 * (1 + self.n_demos) + 1, rng)
        asked, *demos = (Pair(key=texts[2 * i], value=texts[2 * i + 1]) for i in range(1 + self.n_demos))
        spots = [rng.random() for _ in demos]
        head, tail, question = self.around(asked, tuple(demos))
        return fill(
            point,
            tokenizer,
            head=head,
            tail=tail,
            reserve=RESERVE,
            compose=lambda n: compose_pairs(n, tokenizer, point, asked, list(zip(demos, spots, strict=True))),
            target=(asked.value,),
            choices=(*(demo.value for demo in demos), texts[-1]),
            extra={"question": question},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: the value and no other uuid. `published`: a substring, by the source's own rule."""
        named = list(dict.fromkeys(_UUID.findall(clean(response.text).lower())))
        recall, precision = recall_precision(named, sample.target)
        score = Score(
            value=float(recall == 1.0 and precision == 1.0),
            published=self.published(response.text, sample.target[0]),
            parts={"recall": recall, "precision": precision},
            extracted=", ".join(named) or None,
        )
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    @abstractmethod
    def published(self, output: str, value: str) -> float:
        """The source's rule."""

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        content = messages[-1].content if messages else ""
        asked = self.asked.search(content, max(0, len(content) - _LONGEST_QUESTION))
        if asked is None:
            return None
        found = re.search(rf'"{re.escape(asked[1])}": "([0-9a-f-]{{36}})"', content)
        return found[1] if found else ""


def compose_pairs(
    n_tokens: int, tokenizer: Tokenizer, point: Point, asked: Pair, others: list[tuple[Pair, float]]
) -> Composed:
    """About `n_tokens` of pairs, `asked` at the point's depth and `others` at theirs; no braces, no comma at the end."""
    rng = point.rng()
    keys, values = _pool(tokenizer, point.length)
    special = sorted(
        [(depth_of(point), 0, asked), *((spot, 1, pair) for pair, spot in others)], key=lambda item: item[:2]
    )
    room = n_tokens - sum(count(tokenizer, f" {pair.text},\n") for _, _, pair in special)
    n_most = max(0, room) // TOKENS_PER_PAIR + FEWEST + 1
    rows = [permutation(rng, table.counts.size, n_most) for table in (keys, values)]
    total = np.cumsum(keys.counts[rows[0]] + values.counts[rows[1]])
    n = max(FEWEST, int(np.searchsorted(total, room, side="right")))
    left = room - int(total[n - 1])
    longer, n_longer = cut_off(tokenizer, "".join(f"-{text}" for text in random_uuids(4, rng)), left)
    parts: list[str] = []
    done = 0
    slots = [_slot(total[:n], depth) for depth, _, _ in special]
    for slot, pair in (*zip(slots, (pair.text for _, _, pair in special), strict=True), (n, "")):
        if slot > done:
            filler = written(keys.entries[rows[0][done:slot]], values.entries[rows[1][done:slot]]).decode()
            parts.append(filler[: -len(END)] + longer + END if slot == n else filler)
        parts.append(f" {pair}{END[1:]}" if pair else "")
        done = slot
    text, used = trimmed(tokenizer, "".join(parts), n_tokens - left + n_longer, start=1, end=len(END) - 1)
    slot = next(slot for slot, (_, rank, _) in zip(slots, special, strict=True) if rank == 0)
    return Composed(
        text=text,
        n_tokens=used,
        needles=(asked.text,),
        placed=(float(total[slot - 1] / total[n - 1]) if slot else 0.0,),
        notes=("the last value of the pool is longer",) if longer else (),
    )


def _slot(total: Ints, depth: float) -> int:
    """How many pairs stand before a depth; `total`: tokens up to the end of each."""
    before = np.append(0, total)
    return int(np.argmin(np.abs(before - depth * total[-1])))


def _pool(tokenizer: Tokenizer, length: int) -> tuple[Table, Table]:
    """Keys and values for prompts of `length` tokens, counted."""
    size = tier(length)

    def make() -> tuple[Table, Table]:
        n = max(1024, size // TOKENS_PER_PAIR + 64)
        texts = random_uuids(2 * n, random.Random(int(digest(["json pairs", 1])[:32], 16)))
        keys, values = measure(
            tokenizer, [f' "{text}"' for text in texts[::2]], [f': "{text}{END}' for text in texts[1::2]]
        )
        return keys, values

    return remembered(tokenizer, ("json pairs", size), make)


class LitmKv(Pairs):
    name = "litm.kv"
    source = LITM
    summary = "Lost in the Middle: the value of one key among uuid pairs, by place"
    n_demos = 0
    asked = re.compile(r'\n\nKey: "([0-9a-f-]{36})"\nCorresponding value:\s*\Z')

    def around(self, pair: Pair, demos: tuple[Pair, ...]) -> tuple[str, str, str]:
        question = f'Key: "{pair.key}"'
        return f"{INSTRUCTION}\n\nJSON data:\n{{", f"}}\n\n{question}\nCorresponding value:", question

    def published(self, output: str, value: str) -> float:
        return float(value.lower() in output.lower())


class JsonKv(Pairs):
    name = "helmet.json_kv"
    source = HELMET
    summary = "HELMET: the value of one key among uuid pairs, two keys solved"
    n_demos = N_DEMOS
    asked = re.compile(r"\n\nKey: ([0-9a-f-]{36})\nCorresponding value:\s*\Z")

    def around(self, pair: Pair, demos: tuple[Pair, ...]) -> tuple[str, str, str]:
        solved = "".join(f"Key: {demo.key}\nCorresponding value: {demo.value}\n\n" for demo in demos)
        question = f"Key: {pair.key}"
        return "{", f"}}\n\n{INSTRUCTION}\n\n{solved}{question}\nCorresponding value:", question

    def published(self, output: str, value: str) -> float:
        return substring_em(output, (value,), "corresponding value:")


TASKS = (JsonKv(), LitmKv())
