"""One needle among near misses: the same sentence about another building or a place of like name.

Source: own; after RULER's niah_multikey and the finding that distractors, not length alone, break retrieval (Chroma,
"Context Rot", 2025). With style `instruction` what stands around it tells the reader to answer something else (harmless
words). An answer that names a near miss is told apart from one that names nothing; naming the right value
together with a wrong one earns nothing. Example: "The boat shed at Brinmouth has postbox 41824.",
"The boat shed at Brinstead has postbox 27391." -> "41824"
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import contains, grade_one, number, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.facts import Draw, Template, asked, draw_bank, find, recognise
from longreach.suites.haystack import Needle
from longreach.suites.placing import around, check_setting, depth_of, hide

RESERVE = 32  # its needles are short: room for an answer that repeats one, and a 256-token prompt still holds five
MOST = 16
STYLES = ("near", "instruction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Distractor:
    """One needle at a depth, `distractors` near misses around it."""

    distractors: int = 4
    """1 to 16."""
    style: str = "near"
    """near: near misses of the needle; instruction: sentences that tell the reader to answer something else."""
    haystack: str = "mixed"
    language: str = "en"
    """Of filler, needles and question: en, pt, ru, zh, or mixed (filler in all of them, the question in one)."""
    structure: str = ""
    """Format of the haystack: json, xml, csv, yaml, log, code or chat; empty for running text."""

    def __post_init__(self) -> None:
        if not isinstance(self.distractors, int) or not 1 <= self.distractors <= MOST:
            raise ValueError(f"distractors {self.distractors!r} is not a whole number from 1 to {MOST}")
        if self.style not in STYLES:
            raise ValueError(f"style {self.style!r} is not one of {', '.join(STYLES)}")
        check_setting(self.haystack, self.language, self.structure)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="niah.distractor",
            version=1,
            capability="retrieval",
            family="needle",
            reserve=RESERVE,
            chance=1 / (self.distractors + 1) if self.style == "near" else 0.0,
            summary="one needle among near misses; naming a near miss is told apart from no answer",
            source="own, after RULER niah_multikey and Context Rot (Chroma 2025)",
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()
        wording = draw_bank(self.language, rng)
        draw = Draw(wording, rng)
        template = draw.template("distractor")
        building, place, value = draw.one("building"), draw.one("place"), draw.one(template.value)
        needle = template.needles[0]
        make = _near_misses if self.style == "near" else _lures
        texts, wrong, keys = make(self.distractors, draw, template, building, place)
        depth = depth_of(point)
        return hide(
            point,
            tokenizer,
            haystack=self.haystack,
            language=self.language,
            structure=self.structure,
            sought=[Needle(text=needle.format(building=building, place=place, value=value), depth=depth)],
            others=[
                Needle(text=text, depth=spot) for text, spot in zip(texts, around(depth, len(texts), rng), strict=True)
            ],
            bank=wording,
            ask="distractor",
            question=template.question.format(building=building, place=place),
            reserve=RESERVE,
            target=(value,),
            choices=tuple(wrong),
            absent=(*dict.fromkeys((place, *keys)), value, *wrong),
        )

    def score(self, sample: Sample, response: Response) -> Score:
        score = grade_one(response.text, sample.target, wrong=sample.choices, rule=_named)
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        for wording, text, question in asked(messages, "distractor"):
            known = recognise(wording.groups["distractor"], question)
            if known:
                template, slots = known
                return next((hit["value"] for hit in find(template.needles[0], text, slots)), "")
        return None


def _near_misses(
    n: int, draw: Draw, template: Template, building: str, place: str
) -> tuple[list[str], list[str], list[str]]:
    """Sentences like the needle, their values, and the places that they are about."""
    keys = [
        (draw.one("building"), place) if index % 2 else (building, draw.one("place", like=place)) for index in range(n)
    ]
    draw.rng.shuffle(keys)
    wrong = [draw.one(template.value) for _ in keys]
    texts = [
        template.needles[0].format(building=key[0], place=key[1], value=value)
        for key, value in zip(keys, wrong, strict=True)
    ]
    return texts, wrong, [key[1] for key in keys]


def _lures(n: int, draw: Draw, template: Template, building: str, place: str) -> tuple[list[str], list[str], list[str]]:
    """Sentences that look like instructions, and the words that they ask for."""
    del template, building, place
    wordings = [wording for _ in range(-(-n // len(draw.bank.lures))) for wording in _shuffled(draw)][:n]
    wrong = [draw.one("words") for _ in wordings]
    return [wording.format(words=words) for wording, words in zip(wordings, wrong, strict=True)], wrong, []


def _shuffled(draw: Draw) -> list[str]:
    wordings = list(draw.bank.lures)
    draw.rng.shuffle(wordings)
    return wordings


def _named(answer: str, accepted: Sequence[str]) -> bool:
    """Numbers in any written form, words as whole words."""
    return (number if all(item.isdigit() for item in accepted) else contains)(answer, accepted)


TASKS = (Distractor(),)
