"""Two or three facts that only together give the answer, among decoy chains of the same form.

Source: own; after the multi-needle reasoning of NeedleBench (OpenCompass 2024), without its ambiguous kinship words. The
first fact of the chain in the text stands at the depth, the others evenly from there to the end, in random order.
Example: "The choir of Brinmouth is led by Hedda Lundmark." "Hedda Lundmark parks in bay 41824." -> "41824"
"""

from collections.abc import Iterator
from dataclasses import dataclass

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import grade_one, number, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.facts import Draw, Template, asked, draw_bank, find, recognise
from longreach.suites.haystack import Needle
from longreach.suites.placing import around, check_setting, depth_of, hide, to_the_end

HOPS = (2, 3)
RESERVE = 48
MOST_DECOYS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Multihop:
    """A chain of `hops` facts and `decoys` other chains of the same form."""

    hops: int = 2
    """Facts to be joined, 2 or 3."""
    decoys: int = 2
    """Chains about other places, 1 to 8: without one the last fact alone would give the answer."""
    haystack: str = "mixed"
    language: str = "en"
    """Of filler, needles and question: en, pt, ru, zh, or mixed (filler in all of them, the question in one)."""
    structure: str = ""
    """Format of the haystack: json, xml, csv, yaml, log, code or chat; empty for running text."""

    def __post_init__(self) -> None:
        if self.hops not in HOPS:
            raise ValueError(f"hops {self.hops!r} is not 2 or 3")
        if not isinstance(self.decoys, int) or not 1 <= self.decoys <= MOST_DECOYS:
            raise ValueError(f"decoys {self.decoys!r} is not a whole number from 1 to {MOST_DECOYS}")
        check_setting(self.haystack, self.language, self.structure)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="niah.multihop",
            version=1,
            capability="reasoning",
            family="needle",
            reserve=RESERVE,
            chance=1 / (self.decoys + 1),
            summary="2 or 3 scattered facts to be joined, among decoy chains",
            source="own, after NeedleBench multi-needle reasoning (OpenCompass 2024)",
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()
        wording = draw_bank(self.language, rng)
        draw = Draw(wording, rng)
        template = draw.template(f"multihop{self.hops}")
        chains = [
            {
                name: draw.one(template.value if name == "value" else name)
                for name in ("place", "person", "vessel", "value")
            }
            for _ in range(self.decoys + 1)
        ]
        links = [link.format(**chains[0]) for link in template.needles]
        rng.shuffle(links)
        false = [link.format(**chain) for chain in chains[1:] for link in template.needles]
        rng.shuffle(false)
        depth = depth_of(point)
        spots = to_the_end(depth, self.hops)
        return hide(
            point,
            tokenizer,
            haystack=self.haystack,
            language=self.language,
            structure=self.structure,
            sought=[Needle(text=text, depth=spot) for text, spot in zip(links, spots, strict=True)],
            others=[
                Needle(text=text, depth=spot) for text, spot in zip(false, around(depth, len(false), rng), strict=True)
            ],
            bank=wording,
            ask="multihop",
            question=template.question.format(place=chains[0]["place"]),
            reserve=RESERVE,
            target=(chains[0]["value"],),
            choices=tuple(chain["value"] for chain in chains[1:]),
            absent=tuple(
                chain[name]
                for chain in chains
                for name in chain
                if any(f"{{{name}}}" in link for link in template.needles)
            ),
        )

    def score(self, sample: Sample, response: Response) -> Score:
        score = grade_one(response.text, sample.target, wrong=sample.choices, rule=number)
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        for wording, text, question in asked(messages, "multihop"):
            for hops in HOPS:
                known = recognise(wording.groups[f"multihop{hops}"], question)
                if known:
                    return _follow(known[0], known[1], text)
        return None


def _follow(template: Template, slots: dict[str, str], text: str) -> str:
    """The value at the end of the chain, "" if a link is missing."""
    known = dict(slots)
    for link in template.needles:
        hits = find(link, text, {name: known[name] for name in known if f"{{{name}}}" in link})
        if not hits:
            return ""
        known |= hits[0]
    return known["value"]


TASKS = (Multihop(),)
