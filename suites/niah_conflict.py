"""An outdated and a current value of one thing: the current one is asked for.

Source: own. Which of the two is current is said by years or by wording ("before the refit"), never by their order in the
text, which is random but for depths 0 and 1. Example: "In 1954 the organ of Brinmouth was entered as item 27391." "In 1987
the organ of Brinmouth was entered anew as item 41824." -> "41824"
"""

from collections.abc import Iterator
from dataclasses import dataclass

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import grade_one, number, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.facts import Draw, asked, draw_bank, find, recognise
from longreach.suites.haystack import Needle
from longreach.suites.placing import around, check_setting, depth_of, hide

RESERVE = 48  # room for an answer that repeats the question


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """The current value at a depth, the outdated one somewhere else."""

    haystack: str = "mixed"
    language: str = "en"
    """Of filler, needles and question: en, pt, ru, zh, or mixed (filler in all of them, the question in one)."""
    structure: str = ""
    """Format of the haystack: json, xml, csv, yaml, log, code or chat; empty for running text."""

    def __post_init__(self) -> None:
        check_setting(self.haystack, self.language, self.structure)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="niah.conflict",
            version=1,
            capability="retrieval",
            family="needle",
            reserve=RESERVE,
            chance=0.5,
            summary="an outdated and a current value; the current one is asked for",
            source="own",
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()
        wording = draw_bank(self.language, rng)
        draw = Draw(wording, rng)
        template = draw.template("conflict")
        year, year2 = sorted((draw.one("year"), draw.one("year")))
        slots = {"place": draw.one("place"), "year": year, "year2": year2}
        slots |= {"value": draw.one(template.value), "value2": draw.one(template.value)}
        outdated, current = (needle.format(**slots) for needle in template.needles)
        depth = depth_of(point)
        return hide(
            point,
            tokenizer,
            haystack=self.haystack,
            language=self.language,
            structure=self.structure,
            sought=[Needle(text=current, depth=depth)],
            others=[Needle(text=outdated, depth=around(depth, 1, rng)[0])],
            bank=wording,
            ask="conflict",
            question=template.question.format(place=slots["place"]),
            reserve=RESERVE,
            target=(slots["value2"],),
            choices=(slots["value"],),
            absent=(slots["place"], slots["value"], slots["value2"]),
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """parts: `distractor` = 1 if only the outdated value is named, `both` if both are (no credit)."""
        score = grade_one(response.text, sample.target, wrong=sample.choices, rule=number)
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        for wording, text, question in asked(messages, "conflict"):
            known = recognise(wording.groups["conflict"], question)
            if known:
                template, slots = known
                hits = find(template.needles[1], text, slots)
                latest = max(hits, key=lambda hit: hit.get("year2", ""), default=None)
                return latest["value2"] if latest else ""
        return None


TASKS = (Conflict(),)
