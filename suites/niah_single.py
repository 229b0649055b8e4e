"""One needle in a haystack: find a fact, a number, a code, a rule of conduct, or the user's own needle.

Source: own; after G. Kamradt's needle in a haystack (2023), with what that lacked: many templates, unguessable answers
absent from the filler, a question that shares only the entity with its needle, and a score that is computed.
Example: "The seed library of Brinmouth holds 41824 packets of beans." -> "41824"
"""

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass

from longreach.harness.errors import DataError
from longreach.harness.model import Response
from longreach.harness.needle_file import NeedleRow, read_needles
from longreach.harness.numbers import parse_number
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import RULES, grade_one, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.facts import Draw, asked, draw_bank, find, recognise
from longreach.suites.haystack import Needle
from longreach.suites.placing import check_setting, depth_of, hide

KINDS = ("fact", "number", "code", "instruction")
N_CHOICES = 3
RESERVE = 48  # small chat models repeat the question: up to 35 tokens where each digit is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """One needle at a depth."""

    kind: str = "number"
    """fact, number, code or instruction; of no account with `needles`."""
    needles: str = ""
    """Pinned file of the user's needles; empty for the built-in templates."""
    haystack: str = "mixed"
    language: str = "en"
    """Of filler, needles and question: en, pt, ru, zh, or mixed (filler in all of them, the question in one)."""
    structure: str = ""
    """Format of the haystack: json, xml, csv, yaml, log, code or chat; empty for running text."""
    shared: bool = False
    """Item i is the same at every depth too, not only at every length, and the filler of a shorter length is the beginning
    of that of a longer one (not so inside a structure): for effects of position against length."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r} is not one of {', '.join(KINDS)}")
        check_setting(self.haystack, self.language, self.structure)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="niah.single",
            version=1,
            capability="retrieval",
            family="needle",
            reserve=RESERVE,
            chance=0.0,
            summary="one needle in a haystack: a number, fact, code, instruction, or your own needles",
            source="own, after needle-in-a-haystack (Kamradt 2023)",
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        return self._own(point, tokenizer) if self.needles else self._made(point, tokenizer)

    def _made(self, point: Point, tokenizer: Tokenizer) -> Sample:
        return hide_one(
            point,
            tokenizer,
            group=self.kind,
            ask=self.kind,
            depth=depth_of(point),
            haystack=self.haystack,
            language=self.language,
            structure=self.structure,
            items=dataclasses.replace(point, depth=None).paired_rng() if self.shared else None,
            nested=self.shared and not self.structure,
        )

    def _own(self, point: Point, tokenizer: Tokenizer) -> Sample:
        row = self._row(point)
        return hide(
            point,
            tokenizer,
            haystack=self.haystack,
            language=self.language,
            structure=self.structure,
            sought=[Needle(text=row.needle, depth=depth_of(point))],
            bank=draw_bank(self.language, point.paired_rng()),
            ask="user",
            question=row.question,
            reserve=RESERVE,
            target=row.answer[:1],
            choices=row.distractors,
            absent=row.answer,
            nested=self.shared and not self.structure,
            extra={"rule": rule_of(row), "accepted": list(row.answer), "row": row.id, "row_notes": list(row.notes)},
        )

    def _row(self, point: Point) -> NeedleRow:
        """Row of the file for this index: a seeded order, the same at every length and depth."""
        rows = list(read_needles(self.needles))
        dataclasses.replace(point, depth=None, index=0).paired_rng().shuffle(rows)
        return rows[point.index % len(rows)]

    def score(self, sample: Sample, response: Response) -> Score:
        accepted = tuple(sample.extra.get("accepted", sample.target))
        wrong = sample.choices if "accepted" in sample.extra else ()
        score = grade_one(response.text, accepted, wrong=wrong, rule=RULES[sample.extra["rule"]])
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        return next((found for kind in KINDS if (found := find_one(messages, kind, kind)) is not None), None)


def hide_one(
    point: Point,
    tokenizer: Tokenizer,
    *,
    group: str,
    ask: str,
    depth: float,
    haystack: str,
    language: str,
    structure: str,
    items: random.Random | None = None,
    nested: bool = False,
) -> Sample:
    """A prompt with one needle of the built-in templates of `group` at `depth`; `items` draws it, else the point."""
    rng = items or point.paired_rng()
    wording = draw_bank(language, rng)
    draw = Draw(wording, rng)
    template = draw.template(group)
    place, value = draw.one("place"), draw.one(template.value)
    return hide(
        point,
        tokenizer,
        haystack=haystack,
        language=language,
        structure=structure,
        sought=[Needle(text=template.needles[0].format(place=place, value=value), depth=depth)],
        bank=wording,
        ask=ask,
        question=template.question.format(place=place),
        reserve=RESERVE,
        target=(value,),
        choices=tuple(draw.one(template.value) for _ in range(N_CHOICES)),
        absent=(place, value),
        nested=nested,
        extra={
            "rule": "number" if template.value == "number" else "contains",
            "template": f"{wording.language}/{group}/{wording.groups[group].index(template)}",
        },
    )


def find_one(messages: tuple[Message, ...], group: str, ask: str) -> str | None:
    """The value that a prompt of `hide_one` asks for, "" if its needle is missing; None for another question."""
    for wording, text, question in asked(messages, ask):
        known = recognise(wording.groups[group], question)
        if known:
            template, slots = known
            return next((hit["value"] for hit in find(template.needles[0], text, slots)), "")
    return None


def rule_of(row: NeedleRow) -> str:
    """Scoring rule for a row of a needle file: its kind, or number if every answer is a number.

    Raises:
        DataError: the kind is number and an answer is not.
    """
    numeric = [parse_number(item) is not None for item in (*row.answer, *row.distractors)]
    if row.kind == "number" and not all(numeric):
        raise DataError(
            f"needle {row.id!r} is of kind number and has an answer or distractor that is not one number; "
            f"change the kind to fact, or write it as digits"
        )
    if row.kind in ("exact", "fuzzy"):
        return row.kind
    return "number" if all(numeric) and row.kind in ("", "number") else "contains"


TASKS = (Single(),)
