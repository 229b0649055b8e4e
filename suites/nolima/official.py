"""NoLiMa itself, on its own needle sets and books: files that the user has, or the hub's. None of them is shipped.

Source: Modarressi et al. 2025, "NoLiMa: Long-Context Evaluation Beyond Literal Matching", arXiv 2502.05167. The length is
NoLiMa's: tokens of the haystack alone, so that prompts are longer by question and needle, and by what is kept for the answer.

    longreach run nolima-official --set nolima.official.data=needle_set.json --corpus rand_shuffle/ --model SPEC
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from longreach.harness.errors import DataError, InfeasibleCell
from longreach.harness.model import Response
from longreach.harness.sample import Grid, Point, Sample, digest
from longreach.harness.scoring import clean, grade_one, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.haystack import AIM, Needle, build, frame_of
from longreach.suites.joins import count
from longreach.suites.nolima.bank import bank
from longreach.suites.nolima.latent import away_from, last_line, needle_first, start_at
from longreach.suites.nolima.needle_sets import OfficialPair, read_books, read_set
from longreach.suites.placing import depth_of

RESERVE = 192  # NoLiMa, section 4: new tokens at most
SHORT = 500
"""Tokens of haystack below which a distractor has a place of its own by NoLiMa's table."""
DEPARTURES = (
    "The words around haystack and question are our own, unless the set brings its task_template.",
    (
        "The name is drawn by the sample's seed, and books are taken in the order of their names; NoLiMa's draw depends on "
        "the order in which a file system lists them."
    ),
    "The needle goes to the nearest end of a sentence or line within one hundredth of its depth; the window starts anywhere.",
    (
        "The headline score is strict: a right name and no other of the pool. NoLiMa's rule, which lets a list of all names "
        "pass, is `score_published`."
    ),
    "Base scores come from the lengths up to 1k that were run, such as NoLiMa's 250, 500 and 1,000.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Official:
    """One pair of a needle set at a depth of one of the books."""

    data: str = ""
    """JSON file of a needle set; "" = the main set on the hub."""
    haystack: str = ""
    """Folder of shuffled books (.txt), or one file; "" = the five on the hub."""
    kinds: tuple[str, ...] = ()
    """Kinds of questions, such as onehop; () = all of the set."""
    cot: bool = False
    """True for the set that asks for reasoning: the answer is the last line."""

    def __post_init__(self) -> None:
        if self.cot not in (True, False):
            raise ValueError(f"cot {self.cot!r} is neither true nor false")

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="nolima.official",
            version=1,
            capability="reasoning",
            family="latent",
            reserve=RESERVE,
            chance=0.0,
            summary="NoLiMa's own needle sets and books, from your files or the hub",
            source="NoLiMa (Modarressi et al. 2025, arXiv 2502.05167)",
            license="Adobe Research License (needle sets; non-commercial), the books' own; neither is shipped",
            data_revision="amodaresi/NoLiMa 378115b1",
            departures=DEPARTURES,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def pairs(self) -> tuple[OfficialPair, ...]:
        """The pairs that are asked.

        Raises:
            DataError: the set cannot be read, or has no question of these kinds.
        """
        found = tuple(pair for pair in read_set(self.data) if not self.kinds or pair.kind in self.kinds)
        if not found:
            known = sorted({pair.kind for pair in read_set(self.data)})
            raise DataError(
                f"the needle set has no questions of kind {', '.join(self.kinds)}; it has {', '.join(known)}"
            )
        return found

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        """The pairs in a seeded order, index by index, begun elsewhere at each depth; once through, the next book."""
        pairs, books = list(self.pairs()), read_books(self.haystack)
        random.Random(int(digest(["official", len(pairs), point.seed])[:32], 16)).shuffle(pairs)
        depth = depth_of(point)
        pair = pairs[(point.index + start_at(depth, len(pairs))) % len(pairs)]
        book = point.index // len(pairs) % len(books)
        rng = point.paired_rng()
        name, *others = rng.sample(pair.names, len(pair.names)) if pair.names else ("",)
        needle, question, distractor = (
            text.replace("{CHAR}", name) for text in (pair.needle, pair.question, pair.distractor)
        )
        needles = [Needle(text=needle, depth=depth)]
        if distractor:
            spot = _short_spot(depth) if point.length < SHORT else away_from(depth, rng)
            needles.append(Needle(text=distractor, depth=spot))
        needles.sort(key=lambda item: item.depth)
        anchor = next(at for at, item in enumerate(needles) if item.text == needle)
        head, tail = _around(pair, question, cot=self.cot)
        around = frame_of(tokenizer, head, tail, "").n_tokens
        around += sum(count(tokenizer, " " + item.text) for item in needles) + RESERVE + AIM
        target = pair.gold or (name,)
        sample = build(
            replace(point, length=point.length + around),
            tokenizer,
            haystack=books[book],
            needles=needles,
            head=head,
            tail=tail,
            reserve=RESERVE,
            rng=point.rng(),
            target=target,
            choices=tuple(others),
            absent=(name,) if name else (),
            anchor=anchor,
            extra={
                "question": question,
                "sought": [needle],
                "groups": {"pair": pair.id, "kind": pair.kind, "reasoning": pair.reasoning, "book": str(book + 1)},
            },
        )
        if sample.extra["recycled"]:
            raise InfeasibleCell(
                f"book {book + 1} of task {point.task!r} holds fewer than {point.length:,} tokens; give longer books with "
                f"--corpus (NoLiMa has rand_shuffle_long for 64k and more), or a shorter length"
            )
        notes = [*sample.extra["notes"], "the length is tokens of the haystack alone, as NoLiMa counts it"]
        return replace(needle_first(sample, anchor), point=point, extra={**sample.extra, "notes": notes})

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: a right answer and no other name. `published`: NoLiMa's `contains`, or `lastline_contains`."""
        answer, raw = response.text, response.text
        if self.cot:
            answer, raw = last_line(clean(answer)), last_line(raw)
        graded = grade_one(answer, sample.target, wrong=sample.choices)
        score = Score(
            value=graded.value,
            published=float(any(item in raw for item in sample.target)),
            parts={"found": graded.parts["found"]},
            extracted=graded.extracted,
        )
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)


def _around(pair: OfficialPair, question: str, *, cot: bool) -> tuple[str, str]:
    """What stands before and behind the haystack: the set's own words, or ours."""
    if pair.template:
        before, _, after = pair.template.partition("{haystack}")
        return before.replace("{question}", question), after.replace("{question}", question)
    words = bank()
    return words.head, words.tail.format(question=question, ask=words.asks["cot" if cot else "plain"])


def _short_spot(depth: float) -> float:
    """NoLiMa's table for a distractor in a short haystack."""
    return 0.7 if depth < 0.6 else 0.6 if depth > 0.75 else 0.5


TASKS = (Official(),)
