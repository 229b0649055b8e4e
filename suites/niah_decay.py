"""One needle at the very start of a text: is the beginning still there when the end is reached?

Source: own. The needle of niah.single, always the first thing of the haystack, so that the distance to the question grows
with the length; it has no depth to sweep. Example: "The seed library of Brinmouth holds 41824 packets of beans." -> "41824"
"""

from collections.abc import Iterator
from dataclasses import dataclass

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import grade_one, number, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.niah_single import RESERVE, find_one, hide_one
from longreach.suites.placing import check_setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """One number at depth 0."""

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
            name="niah.decay",
            version=1,
            capability="retrieval",
            family="needle",
            reserve=RESERVE,
            chance=0.0,
            has_depth=False,
            summary="one number at the very start of the text",
            source="own",
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self), by_depth=False)

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        return hide_one(
            point,
            tokenizer,
            group="number",
            ask="decay",
            depth=0.0,
            haystack=self.haystack,
            language=self.language,
            structure=self.structure,
        )

    def score(self, sample: Sample, response: Response) -> Score:
        score = grade_one(response.text, sample.target, rule=number)
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        return find_one(messages, "number", "decay")


TASKS = (Decay(),)
