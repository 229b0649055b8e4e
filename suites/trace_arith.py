"""Variables that are computed from one another, their statements scattered over the text.

Source: own; arithmetic form of RULER's variable tracking. One chain, its statements in random order: the first in the text
stands at the depth, the others evenly from there to the end. No computed value ever stands in the text.
Example: "X1 = 42." "X2 = X1 + 10." "X3 = X2 * 2." -> "104"
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import final_number, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.facts import asked, draw_bank, find, pattern
from longreach.suites.haystack import Needle
from longreach.suites.placing import check_setting, depth_of, hide, to_the_end

RESERVE = 48
MOST_HOPS = 16
LIMIT = 10_000
"""Every value is positive and below this."""

Step = tuple[str, int]
"""Operator and second operand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arith:
    """X1 is given, X2 to X(hops + 1) are computed, the last is asked for."""

    hops: int = 3
    """Operations, 1 to 16."""
    haystack: str = "mixed"
    language: str = "en"
    """Of filler, needles and question: en, pt, ru, zh, or mixed (filler in all of them, the question in one)."""
    structure: str = ""
    """Format of the haystack: json, xml, csv, yaml, log, code or chat; empty for running text."""

    def __post_init__(self) -> None:
        if not isinstance(self.hops, int) or not 1 <= self.hops <= MOST_HOPS:
            raise ValueError(f"hops {self.hops!r} is not a whole number from 1 to {MOST_HOPS}")
        check_setting(self.haystack, self.language, self.structure)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="trace.arith",
            version=1,
            capability="reasoning",
            family="tracing",
            reserve=RESERVE,
            chance=0.0,
            summary="follow X2 = X1 + 10, X3 = X2 * 2, ... scattered over the text",
            source="own, after RULER variable tracking (Hsieh et al. 2024)",
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()
        wording = draw_bank(self.language, rng)
        given, steps = draw_chain(self.hops, rng)
        values = run_chain(given, steps)
        statements = [wording.arith["given"].format(index=1, number=given)]
        statements += [
            wording.arith["derived"].format(index=index + 1, before=index, operator=operator, number=operand)
            for index, (operator, operand) in enumerate(steps, 1)
        ]
        rng.shuffle(statements)
        wrong = slips(given, steps)
        return hide(
            point,
            tokenizer,
            haystack=self.haystack,
            language=self.language,
            structure=self.structure,
            sought=[
                Needle(text=text, depth=spot)
                for text, spot in zip(statements, to_the_end(depth_of(point), len(statements)), strict=True)
            ],
            bank=wording,
            ask="arith",
            question=wording.arith["question"].format(last=self.hops + 1),
            reserve=RESERVE,
            target=(str(values[-1]),),
            choices=tuple(map(str, wrong)),
            absent=tuple(dict.fromkeys(str(value) for value in (*values[1:], *wrong) if value >= 100)),
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """1 if the number that the answer settles on is the value; `distractor` = 1 if it is that of a slipped hop."""
        settled = final_number(response.text)
        value = format(settled.value.normalize(), "f") if settled else None
        right = settled is not None and settled.reads_as(Decimal(sample.target[0]))
        score = Score(
            value=float(right),
            parts={"found": float(right), "distractor": float(value in sample.choices)},
            extracted=sample.target[0] if right else value,
        )
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        for wording, text, question in asked(messages, "arith"):
            match = pattern(wording.arith["question"], {}).fullmatch(question)
            if match:
                return _evaluate(int(match["last"]), wording.arith, text)
        return None


def draw_chain(hops: int, rng: random.Random) -> tuple[int, list[Step]]:
    """A given number and operations; computed values are distinct, below LIMIT, and none is a number of the text.

    The last value has three digits or more, four from 3 hops on: prose is full of smaller numbers.
    """
    least = 1000 if hops >= 3 else 100
    while True:
        given = rng.randrange(12, 100)
        steps = _draw_steps(given, hops, rng)
        values = run_chain(given, steps)
        distinct = len(steps) == hops and len(set(values)) == len(values)
        if distinct and values[-1] >= least and not _written(given, steps) & set(values[1:]) and slips(given, steps):
            return given, steps


def _draw_steps(given: int, hops: int, rng: random.Random) -> list[Step]:
    """Up to `hops` operations; fewer where none of a few draws keeps the value in range."""
    steps: list[Step] = []
    value = given
    for _ in range(8 * hops):
        operator = rng.choice("+-*")
        step = (operator, rng.randrange(2, 10) if operator == "*" else rng.randrange(2, 50))
        if len(steps) < hops and 0 < apply(value, step) < LIMIT:
            value = apply(value, step)
            steps.append(step)
    return steps


def _written(given: int, steps: Sequence[Step]) -> set[int]:
    return {given, *(operand for _, operand in steps)}


def apply(value: int, step: Step) -> int:
    """The value after one operation."""
    operator, operand = step
    if operator == "*":
        return value * operand
    return value + operand if operator == "+" else value - operand


def run_chain(given: int, steps: Sequence[Step]) -> list[int]:
    """All values in order, the given one first."""
    values = [given]
    for step in steps:
        values.append(apply(values[-1], step))
    return values


def slips(given: int, steps: Sequence[Step]) -> list[int]:
    """What comes out if one operation is left out (or is another one, where there is only one), each once.

    Never the right value, a number of the statements, or below 1.
    """
    right = run_chain(given, steps)[-1]
    if len(steps) == 1:
        found = [apply(given, (operator, steps[0][1])) for operator in "+-*"]
    else:
        found = [run_chain(given, [*steps[:index], *steps[index + 1 :]])[-1] for index in reversed(range(len(steps)))]
    unwanted = {right, *_written(given, steps)}
    return [value for value in dict.fromkeys(found) if value > 0 and value not in unwanted]


def _evaluate(last: int, forms: Mapping[str, str], text: str) -> str:
    """The value of X(last) by the statements found in `text`, "" if one of them is missing."""
    given = {hit["index"]: hit["number"] for hit in find(forms["given"], text, {}) if hit["number"].isdigit()}
    derived = {hit["index"]: hit for hit in find(forms["derived"], text, {}) if hit["number"].isdigit()}
    steps: list[Step] = []
    index = str(last)
    while index in derived and len(steps) < last:
        hit = derived[index]
        steps.insert(0, (hit["operator"], int(hit["number"])))
        index = hit["before"]
    return str(run_chain(int(given[index]), steps)[-1]) if index in given else ""


TASKS = (Arith(),)
