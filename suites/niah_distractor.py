"""One needle among near misses: the same sentence about another building or a place of like name.

Source: own; after RULER's niah_multikey and the finding that distractors, not length alone, break retrieval (Chroma,
"Context Rot", 2025). An answer that names a near miss is told apart from one that names nothing; naming the right value
together with a wrong one earns nothing. Example: "The boat shed at Brinmouth has postbox 41824.",
"The boat shed at Brinstead has postbox 27391." -> "41824"
"""

from collections.abc import Iterator
from dataclasses import dataclass

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import grade_one, number, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.facts import Draw, asked, bank, check_language, find, recognise
from longreach.suites.haystack import Needle
from longreach.suites.placing import around, depth_of, hide

RESERVE = 32  # its needles are short: room for an answer that repeats one, and a 256-token prompt still holds five
MOST = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Distractor:
    """One needle at a depth, `distractors` near misses around it."""

    distractors: int = 4
    """1 to 16."""
    haystack: str = "mixed"
    language: str = "en"

    def __post_init__(self) -> None:
        if not isinstance(self.distractors, int) or not 1 <= self.distractors <= MOST:
            raise ValueError(f"distractors {self.distractors!r} is not a whole number from 1 to {MOST}")
        check_language(self.language)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="niah.distractor",
            version=1,
            capability="retrieval",
            family="needle",
            reserve=RESERVE,
            chance=1 / (self.distractors + 1),
            summary="one needle among near misses; naming a near miss is told apart from no answer",
            source="own, after RULER niah_multikey and Context Rot (Chroma 2025)",
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        wording = bank(self.language)
        rng = point.paired_rng()
        draw = Draw(wording, rng)
        template = draw.template("distractor")
        building, place, value = draw.one("building"), draw.one("place"), draw.one(template.value)
        keys = [
            (draw.one("building"), place) if index % 2 else (building, draw.one("place", like=place))
            for index in range(self.distractors)
        ]
        rng.shuffle(keys)
        wrong = [draw.one(template.value) for _ in keys]
        depth = depth_of(point)
        needle = template.needles[0]
        return hide(
            point,
            tokenizer,
            haystack=self.haystack,
            sought=[Needle(text=needle.format(building=building, place=place, value=value), depth=depth)],
            others=[
                Needle(text=needle.format(building=key[0], place=key[1], value=other), depth=spot)
                for key, other, spot in zip(keys, wrong, around(depth, len(keys), rng), strict=True)
            ],
            bank=wording,
            ask="distractor",
            question=template.question.format(building=building, place=place),
            reserve=RESERVE,
            target=(value,),
            choices=tuple(wrong),
            absent=(*dict.fromkeys(item for _, item in ((building, place), *keys)), value, *wrong),
        )

    def score(self, sample: Sample, response: Response) -> Score:
        score = grade_one(response.text, sample.target, wrong=sample.choices, rule=number)
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        for wording, text, question in asked(messages, "distractor"):
            known = recognise(wording.groups["distractor"], question)
            if known:
                template, slots = known
                return next((hit["value"] for hit in find(template.needles[0], text, slots)), "")
        return None


TASKS = (Distractor(),)
