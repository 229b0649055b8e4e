"""Books on shelves: name the shelf of one title.

Source: invented for this example. "The book Ninth Tide stands on shelf 412." -> "412"
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from longreach import Grid, Message, Point, Response, Sample, Score, TaskInfo
from longreach.harness.scoring import contains
from longreach.harness.task import task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.haystack import Needle, build

QUESTION = "On which shelf does the book {title} stand? Answer with the shelf number only."


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    haystack: str = "mixed"

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="shelf",
            version=1,
            capability="retrieval",
            family="needle",
            reserve=16,
            chance=0.0,
            summary="name the shelf of one book",
            source="https://example.org/shelf",
            license="MIT",
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self))

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()  # one question at every length: curves compare like with like
        title = f"{rng.choice(('Ninth', 'Quiet', 'Amber'))} {rng.choice(('Tide', 'Orchard', 'Lantern'))}"
        shelf = str(rng.randrange(100, 1000))
        question = QUESTION.format(title=title)
        return build(
            point,
            tokenizer,
            haystack=self.haystack,
            needles=(Needle(text=f"The book {title} stands on shelf {shelf}.", depth=point.depth or 0.0),),
            head="Read the text and answer the question after it.\n\n",
            tail=f"\n\n{question}",
            reserve=self.info.reserve,
            rng=point.rng(),
            target=(shelf,),
            absent=(title, shelf),
            extra={"question": question},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        return Score(value=float(contains(response.text, sample.target)))

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        """Optional: a reference solver, so that `reader:` can do this task too."""
        text = messages[-1].content
        asked = re.search(r"On which shelf does the book (.+?) stand\? Answer with the shelf number only\.$", text)
        if asked is None:
            return None
        found = re.search(rf"The book {re.escape(asked[1])} stands on shelf (\d+)\.", text)
        return found[1] if found else ""


TASKS = (Shelf(),)
