"""babi.qa1 to qa10: where people and things are, told in sentences that are scattered over a long text.

Source: the tasks of bAbI (Weston et al. 2015) in BABILong's form (Kuratov et al. 2024, arXiv 2406.10149), with a world,
sentences, instructions and filler of our own. The first supporting fact stands at the point's depth; the other facts keep
the story's order, those before it spread at random over the text before, those after it over the rest.
Example: "Marta took the lantern. ... Marta walked to the pantry." "Where is the lantern?" -> "pantry"
"""

import functools
import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, ClassVar

import yaml

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.babi.questions import LABELS, NUMBERS, answer
from longreach.suites.babi.scoring import official, strict
from longreach.suites.babi.stories import Story, tell
from longreach.suites.babi.world import ACTORS, OBJECTS, PLACES, read_facts
from longreach.suites.haystack import Needle, build
from longreach.suites.placing import depth_of

RESERVE = 20  # BABILong, max_new_tokens
BACKGROUNDS = ("all", "names", "none")
SOURCE = "own world and sentences, after BABILong (Kuratov et al. 2024, arXiv 2406.10149) and bAbI (Weston et al. 2015)"
DEPARTURES = (
    "World, sentences, instructions and filler are our own: scores cannot be compared with BABILong's one by one.",
    "The length counts the whole prompt and the reserve in the tested tokenizer; BABILong's counts GPT-2 tokens less 300.",
    "The first supporting fact has a depth that is asked for; in BABILong all facts fall anywhere.",
    "The filler holds none of the story's names and nouns, unless filter_background says so; BABILong's books do.",
    "The format of the answer is asked for after the question, not before the text, and there are two examples.",
    "Labels are equally frequent, and every supporting fact is needed for the answer.",
    "The headline score looks for whole words in all of the answer; BABILong's rule is `score_published`, faults included.",
)
SUMMARIES = {
    "qa1": "where somebody is: one supporting fact",
    "qa2": "where a thing is: two supporting facts",
    "qa3": "where a thing was before: three supporting facts",
    "qa4": "which room lies where: a relation of two places",
    "qa5": "who gave what to whom: a relation of three",
    "qa6": "whether somebody is in a place: yes or no",
    "qa7": "how many things somebody carries",
    "qa8": "which things somebody carries: a list",
    "qa9": "whether somebody is in a place, with negations",
    "qa10": "whether somebody is in a place: yes, no or maybe",
}


@functools.cache
def wording() -> Mapping[str, Any]:
    """Instructions, examples and questions' last lines by task, read once."""
    text = resources.files("longreach.suites").joinpath("data", "babi.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


@functools.lru_cache(maxsize=4096)
def _story(task: str, seed: int) -> Story:
    """The story of a sample, the same at every length."""
    return tell(task, random.Random(seed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Babi:
    """One of the ten."""

    task: ClassVar[str]

    haystack: str = "mixed"
    filter_background: str = "all"
    """What the filler must not hold: all names and nouns of the world, the names, or none of them."""
    examples: bool = True
    """Whether two solved examples precede the text."""

    def __post_init__(self) -> None:
        if self.filter_background not in BACKGROUNDS:
            raise ValueError(f"filter_background {self.filter_background!r} is not one of {', '.join(BACKGROUNDS)}")
        if self.examples not in (True, False):
            raise ValueError(f"examples {self.examples!r} is neither true nor false")

    @property
    def info(self) -> TaskInfo:
        """`chance` is what the best guess without the text earns: each label is as frequent as any other."""
        return TaskInfo(
            name=f"babi.{self.task}",
            version=1,
            capability="reasoning",
            family="story",
            reserve=RESERVE,
            chance=1 / (len(NUMBERS) if self.task == "qa8" else len(LABELS[self.task])),
            summary=SUMMARIES[self.task],
            source=SOURCE,
            departures=DEPARTURES,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()
        story = _story(self.task, rng.getrandbits(64))
        depth, first = depth_of(point), story.support[0]
        n = len(story.facts)
        before = sorted(rng.random() * depth for _ in range(first))
        after = sorted(depth + rng.random() * (1.0 - depth) for _ in range(n - first - 1))
        head, tail = self._around(story.question)
        sample = build(
            point,
            tokenizer,
            haystack=self.haystack,
            needles=[
                Needle(text=fact.text, depth=spot)
                for fact, spot in zip(story.facts, (*before, depth, *after), strict=True)
            ],
            head=head,
            tail=tail,
            reserve=RESERVE,
            rng=point.rng(),
            target=story.answer,
            choices=_wrong(self.task, story.answer),
            absent={"all": (*ACTORS, *PLACES, *OBJECTS), "names": ACTORS, "none": ()}[self.filter_background],
            anchor=first,
            extra={
                "question": story.question,
                "sought": [story.facts[index].text for index in story.support],
                "verdict": not set(story.answer) <= {*ACTORS, *PLACES, *OBJECTS},
            },
        )
        spots = [sample.placed[index] for index in story.support]
        others = [spot for index, spot in enumerate(sample.placed) if index not in story.support]
        support = {
            "first": spots[0],
            "last": spots[-1],
            "mean": sum(spots) / len(spots),
            "span": spots[-1] - spots[0],
            "facts": n,
        }
        return replace(sample, placed=(*spots, *others), extra={**sample.extra, "support": support})

    def _around(self, question: str) -> tuple[str, str]:
        """What stands before the haystack and behind it."""
        words, own = wording(), wording()["tasks"][self.task]
        examples = "".join(words["example"].format(**example) for example in own["examples"]) if self.examples else ""
        return (
            words["head"].format(instruction=own["instruction"], examples=examples),
            words["tail"].format(question=question, ask=own["ask"]),
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: the labels of the target as whole words and no others. `published`: BABILong's rule."""
        question, labels = sample.extra["question"], LABELS[self.task]
        graded = strict(response.text, question, sample.target, labels)
        score = replace(graded, published=float(official(response.text, question, ",".join(sample.target), labels)))
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        """What follows from the sentences that stand in the prompt; "" where they leave it open."""
        content = messages[-1].content if messages else ""
        before, _, after = self._around("\0")[1].partition("\0")
        text, mark, rest = content.rpartition(before)
        if not mark or not rest.endswith(after):
            return None
        return ", ".join(answer(self.task, read_facts(text), rest.removesuffix(after)) or ("",))


def _wrong(task: str, right: tuple[str, ...]) -> tuple[str, ...]:
    """Plausible wrong answers: other labels of the same kind, other lists."""
    if task != "qa8":
        kind = next(names for names in (ACTORS, OBJECTS, PLACES, LABELS[task]) if right[0] in names)
        return tuple(label for label in kind if label != right[0])
    if len(right) == 1:
        return tuple(label for label in LABELS[task] if label != right[0])
    pairs = (pair for pair in itertools.combinations(OBJECTS, 2) if pair != right)
    return (*(", ".join(pair) for pair in pairs), "nothing")


class Qa1(Babi):
    task = "qa1"


class Qa2(Babi):
    task = "qa2"


class Qa3(Babi):
    task = "qa3"


class Qa4(Babi):
    task = "qa4"


class Qa5(Babi):
    task = "qa5"


class Qa6(Babi):
    task = "qa6"


class Qa7(Babi):
    task = "qa7"


class Qa8(Babi):
    task = "qa8"


class Qa9(Babi):
    task = "qa9"


class Qa10(Babi):
    task = "qa10"


TASKS = (Qa1(), Qa2(), Qa3(), Qa4(), Qa5(), Qa6(), Qa7(), Qa8(), Qa9(), Qa10())
