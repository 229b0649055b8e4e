"""Several needles about one thing: all of them must be found.

Source: own; after the multi-needle form of needle-in-a-haystack (L. Martin 2024) and RULER's niah_multivalue. The first
needle stands at the depth, the others evenly from there to the end. Example: four sentences "The sailing club of
Brinmouth rents locker 41824." -> "41824, 27391, 63107, 85520"
"""

from collections.abc import Iterator
from dataclasses import dataclass

from longreach.harness.model import Response
from longreach.harness.numbers import find_numbers
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import clean, number, recall_precision, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.facts import Draw, asked, draw_bank, find, recognise
from longreach.suites.haystack import Needle
from longreach.suites.placing import check_setting, depth_of, hide, to_the_end, wrong_lists

COUNTS = (2, 3, 4, 8, 16)
RESERVE = 24
RESERVE_PER_NEEDLE = 8  # five digits, a comma and a blank are 7 tokens where each digit is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Multi:
    """`needles` values of one entity."""

    needles: int = 4
    """2, 3, 4, 8 or 16."""
    haystack: str = "mixed"
    language: str = "en"
    """Of filler, needles and question: en, pt, ru, zh, or mixed (filler in all of them, the question in one)."""
    structure: str = ""
    """Format of the haystack: json, xml, csv, yaml, log, code or chat; empty for running text."""

    def __post_init__(self) -> None:
        if self.needles not in COUNTS:
            raise ValueError(f"needles {self.needles!r} is not one of {', '.join(map(str, COUNTS))}")
        check_setting(self.haystack, self.language, self.structure)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="niah.multi",
            version=1,
            capability="retrieval",
            family="needle",
            reserve=RESERVE + RESERVE_PER_NEEDLE * self.needles,
            chance=0.0,
            summary="2 to 16 values of one entity, all to be listed",
            source="own, after multi-needle NIAH (2024) and RULER niah_multivalue",
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()
        wording = draw_bank(self.language, rng)
        draw = Draw(wording, rng)
        template = draw.template("multi")
        place = draw.one("place")
        values = [draw.one(template.value) for _ in range(self.needles)]
        stranger = draw.one(template.value)
        depths = to_the_end(depth_of(point), self.needles)
        variants = [template.needles[index % len(template.needles)] for index in range(self.needles)]
        return hide(
            point,
            tokenizer,
            haystack=self.haystack,
            language=self.language,
            structure=self.structure,
            sought=[
                Needle(text=variant.format(place=place, value=value), depth=depth)
                for variant, value, depth in zip(variants, values, depths, strict=True)
            ],
            bank=wording,
            ask="multi",
            question=template.question.format(place=place),
            reserve=self.info.reserve,
            target=tuple(values),
            choices=wrong_lists(values, stranger),
            absent=(place, *values),
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """1 if all are named and the wrong ones do not outnumber them; `published` is the share found."""
        found = [number(response.text, (value,)) for value in sample.target]
        n_digits = len(sample.target[0])
        named = {
            str(int(item.value)) for item in find_numbers(clean(response.text)) if _has_digits(item.value, n_digits)
        }
        named |= {value for value, hit in zip(sample.target, found, strict=True) if hit}
        recall, precision = recall_precision(named, sample.target)
        parts = {f"needle_{index}": float(hit) for index, hit in enumerate(found, 1)}
        score = Score(
            value=float(all(found) and precision >= 0.5),
            published=recall,
            parts={**parts, "recall": recall, "precision": precision},
            extracted=", ".join(value for value, hit in zip(sample.target, found, strict=True) if hit) or None,
        )
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        for wording, text, question in asked(messages, "multi"):
            known = recognise(wording.groups["multi"], question)
            if known:
                template, slots = known
                hits = [hit["value"] for variant in template.needles for hit in find(variant, text, slots)]
                return ", ".join(dict.fromkeys(hits))
        return None


def _has_digits(value: object, n_digits: int) -> bool:
    """True for a whole number of as many digits as the values have: an ordinal or a count is no candidate."""
    text = str(value)
    return text.isdigit() and len(text) == n_digits


TASKS = (Multi(),)
