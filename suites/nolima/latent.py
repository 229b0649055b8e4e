"""Needles that share no word with their questions: what links the two is knowledge of the world, or common sense.

Source: own needles, names and filler; after NoLiMa (Modarressi et al. 2025, arXiv 2502.05167), which showed that models
lose their reach once a question cannot be matched by its words. `nolima.onehop` asks one association away from the needle,
`nolima.twohop` two, `nolima.direct` in the needle's own words (the control that says what literal matching is worth).
Example: "In the hallway Greta has hung a full-size copy of Guernica." "Which person owns a reproduction of something that
Picasso painted?" -> "Greta"
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample, digest
from longreach.harness.scoring import clean, grade_one, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.haystack import Needle, build
from longreach.suites.nolima.bank import ORDERS, Pair, bank
from longreach.suites.placing import depth_of
from longreach.suites.snippets import snippets_of

VARIANTS = ("plain", "multiple_choice", "cot", "distractor")
N_CHOICES = 3
"""Wrong names that go with the right one: four choices, as NoLiMa's multiple choice offers."""
RESERVE = 32
RESERVE_REASONING = 192  # NoLiMa, section 4: new tokens at most
BAND = (0.2, 0.8)
"""Depths between which a distractor sentence stands."""
APART = 0.2
"""Fraction of the haystack that lies between it and the needle at least."""
_GOLDEN = 0.6180339887498949
SOURCE = "own needles, after NoLiMa (Modarressi et al. 2025, arXiv 2502.05167)"
DEPARTURES = (
    "Needles, questions, names and filler are our own, so that scores cannot be compared with NoLiMa's table one by one.",
    "The length counts the whole prompt and the reserve, in powers of two; NoLiMa counts the haystack alone, in decimal.",
    (
        "The headline score is strict: the right name and no other of the pool; NoLiMa's rule, which lets a list of all "
        "names pass, is `score_published`."
    ),
    "Each sample draws its pair, in turn through all of them; NoLiMa asks each pair in five haystacks at each depth.",
    "Base scores come from the lengths up to 1k that were run, of the whole prompt; NoLiMa's are 250, 500 and 1,000.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """One needle at a depth, and a question in other words."""

    hops: ClassVar[str] = "onehop"
    variant: str = "plain"
    """plain; multiple_choice: four names to choose from; cot: reasoning before the name; distractor: another sentence
    holds the question's words."""
    order: str = "both"
    """default: the name before what is said of the person; inverted: after it; both in turn."""
    haystack: str = "mixed"
    """mixed: paragraphs on many topics in random order; a text from outside is cut into snippets and shuffled."""
    shuffled: bool = True
    """Whether a text from outside is shuffled snippet by snippet, so that no story leads through it."""
    language: str = "en"
    """English only."""

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS or (self.variant == "distractor" and self.hops == "direct"):
            known = VARIANTS[:3] if self.hops == "direct" else VARIANTS
            raise ValueError(f"variant {self.variant!r} is not one of {', '.join(known)}")
        if self.order not in ("both", *ORDERS):
            raise ValueError(f"order {self.order!r} is not one of both, {', '.join(ORDERS)}")
        if self.language != "en":
            raise ValueError(f"there are no needles in language {self.language!r}, only in en; drop the language")
        if self.shuffled not in (True, False):
            raise ValueError(f"shuffled {self.shuffled!r} is neither true nor false")

    @property
    def info(self) -> TaskInfo:
        words = {"direct": "in the needle's words", "onehop": "one association away", "twohop": "two associations away"}
        return TaskInfo(
            name=f"nolima.{self.hops}",
            version=1,
            capability="reasoning",
            family="latent",
            reserve=RESERVE_REASONING if self.variant == "cot" else RESERVE,
            chance=1 / (N_CHOICES + 1) if self.variant == "multiple_choice" else 0.0,
            summary=f"whose needle it is, asked {words[self.hops]}",
            source=SOURCE,
            departures=DEPARTURES,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def pairs(self) -> tuple[Pair, ...]:
        """The question-needle pairs that samples draw from."""
        return bank().pairs(self.hops, ORDERS if self.order == "both" else (self.order,))

    def pair_of(self, point: Point) -> Pair:
        """The pair of a sample: index by index through a seeded order of all, begun elsewhere at each depth."""
        pairs = list(self.pairs())
        random.Random(int(digest(["pairs", self.hops, self.order, point.seed])[:32], 16)).shuffle(pairs)
        return pairs[(point.index + start_at(depth_of(point), len(pairs))) % len(pairs)]

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()
        words, pair, depth = bank(), self.pair_of(point), depth_of(point)
        name, *others = rng.sample(words.names, N_CHOICES + 1)
        needle = pair.sentence.format(name=name)
        needles = [Needle(text=needle, depth=depth)]
        if self.variant == "distractor":
            needles.append(Needle(text=pair.distractor, depth=away_from(depth, rng)))
        offered, options = "", []
        if self.variant == "multiple_choice":
            options = rng.sample((name, *others), N_CHOICES + 1)
            offered = words.choices.format(names=", ".join(options))
        needles.sort(key=lambda item: item.depth)
        anchor = next(at for at, item in enumerate(needles) if item.text == needle)
        sample = build(
            point,
            tokenizer,
            haystack=snippets_of(self.haystack) if self.shuffled else self.haystack,
            needles=needles,
            head=words.head,
            tail=words.tail.format(question=pair.question + offered, ask=words.asks[self.variant]),
            reserve=self.info.reserve,
            rng=point.rng(),
            target=(name,),
            choices=tuple(others),
            absent=(name, *others, *pair.fact.conflicts),
            anchor=anchor,
            extra={
                "question": pair.question,
                "sought": [needle],
                "offered": offered,
                "options": options,
                "groups": {"pair": pair.id, "order": pair.order, "reasoning": pair.group.reasoning},
            },
        )
        return needle_first(sample, anchor)

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: the right name and no other of the pool. `published`: NoLiMa's `contains`, for cot on the last line."""
        answer, raw = response.text, response.text
        if self.variant == "cot":
            answer, raw = last_line(clean(answer)), last_line(raw)
        wrong = tuple(name for name in bank().names if name not in sample.target)
        graded = grade_one(answer, sample.target, wrong=wrong)
        score = Score(
            value=graded.value,
            published=float(any(name in raw for name in sample.target)),
            parts={"found": graded.parts["found"], "other_name": graded.parts["distractor"]},
            extracted=graded.extracted,
        )
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        content = messages[-1].content if messages else ""
        words = bank()
        before, _, after = words.tail.partition("{question}")
        text, mark, rest = content.rpartition(before)
        ask = next((ask for ask in words.asks.values() if rest.endswith(after.format(ask=ask))), None)
        if not mark or ask is None:
            return None
        question = rest.removesuffix(after.format(ask=ask)).partition(words.choices.partition("{")[0])[0]
        known = [pair for pair in words.pairs(self.hops) if pair.question == question]
        return _named(text, known) if known else None


def _named(text: str, pairs: list[Pair]) -> str:
    """The name in the first needle of one of `pairs` that stands in the text; "" if none does."""
    name = "|".join(bank().names)
    for pair in pairs:
        pattern = re.escape(pair.sentence).replace(re.escape("{name}"), rf"(?P<name>{name})")
        if found := re.search(pattern, text):
            return found["name"]
    return ""


def start_at(depth: float, n_pairs: int) -> int:
    """Where the round through the pairs begins at a depth.

    Spread by the golden ratio over the published 26 depths, so that few samples at many depths ask each pair about as often.
    """
    return int(25 * depth * _GOLDEN % 1.0 * n_pairs)


def last_line(text: str) -> str:
    """The last line of an answer, which is graded where reasoning comes before it."""
    return (text.strip().splitlines() or [""])[-1]


def away_from(depth: float, rng: random.Random) -> float:
    """A depth inside BAND, at least APART from the needle's: there is always room on one side."""
    low, high = BAND
    below, above = max(0.0, depth - APART - low), max(0.0, high - max(low, depth + APART))
    below = min(below, high - low)
    spot = rng.random() * (below + above)
    return low + spot if spot < below else max(low, depth + APART) + spot - below


def needle_first(sample: Sample, anchor: int) -> Sample:
    """The sample with the depth of the needle that is sought first in `placed`."""
    if anchor == 0:
        return sample
    placed = sample.placed
    return replace(sample, placed=(placed[anchor], *placed[:anchor], *placed[anchor + 1 :]))


class Direct(Latent):
    hops = "direct"


class OneHop(Latent):
    hops = "onehop"


class TwoHop(Latent):
    hops = "twohop"


TASKS = (Direct(), OneHop(), TwoHop())
