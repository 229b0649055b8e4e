"""Five needles in one context and one question about each: multi-key retrieval that a prefix cache makes cheap.

Source: own; the multi-key form of RULER's niah_multikey_1 with as many keys at every length. One needle stands in each
fifth of the haystack. The point's depth says which of them is asked for; all else is the same for the five questions,
byte by byte, and the question stands last, so that a server reads the context once and its cache serves the others.
Scores that share a context are not independent: whoever counts them must count contexts, or temper the evidence.
Example: "The ferry of Brinmouth carries 41824 crates." and four more towns -> "41824"
"""

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import grade_one, number, without_credit_for_copies
from longreach.harness.task import QUERIES, Score, TaskInfo, place_in_context, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.facts import Bank, Draw, Template, draw_bank
from longreach.suites.haystack import Needle
from longreach.suites.joins import count
from longreach.suites.niah_single import RESERVE, find_one
from longreach.suites.placing import check_setting, depth_of, hide

GROUP = "number"
"""Templates of the bank that are used."""
ASK = "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """One of five needles that share their context."""

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
            name="niah.shared",
            version=1,
            capability="retrieval",
            family="needle",
            reserve=RESERVE,
            chance=0.0,
            queries=QUERIES,
            summary="multi-key retrieval: five needles and five questions on one context, for prefix caches",
            source="own, after RULER niah_multikey_1 (2024)",
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        place, offset = place_in_context(depth_of(point))
        context = dataclasses.replace(point, depth=offset)  # draws everything that the five questions share
        rng = context.paired_rng()
        bank = draw_bank(self.language, rng)
        draw = Draw(bank, rng)
        template = draw.template(GROUP)
        keys = _keys_of_one_size(draw, bank, template, tokenizer, rng)
        values = [draw.one(template.value) for _ in keys]
        sample = hide(
            context,
            tokenizer,
            haystack=self.haystack,
            language=self.language,
            structure=self.structure,
            sought=[
                Needle(text=template.needles[0].format(place=key, value=value), depth=(rank + offset) / QUERIES)
                for rank, (key, value) in enumerate(zip(keys, values, strict=True))
            ],
            bank=bank,
            ask=ASK,
            question=template.question.format(place=keys[place]),
            reserve=RESERVE,
            target=(values[place],),
            choices=tuple(value for value in values if value != values[place]),
            absent=(*keys, *values),
            every_depth=True,
        )
        others = (spot for rank, spot in enumerate(sample.placed) if rank != place)
        extra = {**sample.extra, "sought": [sample.extra["sought"][place]]}
        return dataclasses.replace(sample, point=point, placed=(sample.placed[place], *others), extra=extra)

    def score(self, sample: Sample, response: Response) -> Score:
        """1 for the number of the town that was asked for; naming others as well earns nothing."""
        score = grade_one(response.text, sample.target, wrong=sample.choices, rule=number)
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        return find_one(messages, GROUP, ASK)


def _keys_of_one_size(
    draw: Draw, bank: Bank, template: Template, tokenizer: Tokenizer, rng: random.Random
) -> list[str]:
    """Keys whose questions take equally many tokens, so that one context gives all five prompts the same length."""
    by_size: dict[int, list[str]] = {}
    while True:
        key = draw.one("place")
        size = count(tokenizer, bank.closing(ASK, template.question.format(place=key)))
        alike = by_size.setdefault(size, [])
        alike.append(key)
        if len(alike) == QUERIES:
            rng.shuffle(alike)  # a key that took many draws is not always the last
            return alike


TASKS = (Shared(),)
