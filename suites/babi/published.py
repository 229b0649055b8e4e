"""babilong.qa1 to qa10: BABILong's own rows, loaded, never shipped.

Source: Kuratov et al. 2024, "BABILong" (arXiv 2406.10149); data `RMT-team/babilong`, whose configurations are lengths (0k
to 10M) and whose splits are tasks: hf:RMT-team/babilong@REVISION/16k:qa2. A row has `input`, `question` and `target`. Checked
against the schema as it is documented, not against the real files. What differs is in DEPARTURES.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from longreach.harness.model import Response
from longreach.harness.rows import Check, Row, Types
from longreach.harness.sample import Message, Sample
from longreach.harness.scoring import without_credit_for_copies
from longreach.harness.task import Score, TaskInfo
from longreach.suites.babi.scoring import COUNTS, official, strict
from longreach.suites.babi.tasks import RESERVE, SUMMARIES, wording
from longreach.suites.loaded import Asked, LoadedTask

_ROOMS = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
LABELS: dict[str, tuple[str, ...]] = {
    **{f"qa{number}": _ROOMS for number in (1, 2, 3, 4)},
    "qa5": ("Bill", "Fred", "Jeff", "Mary", "apple", "football", "milk"),
    "qa6": ("no", "yes"),
    "qa7": COUNTS,
    "qa8": ("apple", "football", "milk", "nothing"),
    "qa9": ("no", "yes"),
    "qa10": ("maybe", "no", "yes"),
}
"""BABILong's labels by task."""
DEPARTURES = (
    "Instructions, examples and the request for a format are ours, in the published order; published results use others.",
    (
        "Each row is asked at the smallest length that holds its prompt in the tested tokenizer; its published length, counted "
        "in GPT-2 tokens, is that of its configuration."
    ),
    "The headline score looks for whole words in all of the answer; BABILong's rule is `score_published`, faults included.",
    "Strings that a tokenizer would take for control tokens are spaced apart.",
)


def _problem(row: Mapping[str, Any]) -> str | None:
    empty = next((name for name in ("input", "question", "target") if not row[name].strip()), None)
    return f"has an empty {empty!r}" if empty else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BabiLong(LoadedTask):
    """BABILong's rows of one task."""

    task: ClassVar[str]
    columns: ClassVar[Types] = {"input": str, "question": str, "target": str}
    check: ClassVar[Check | None] = staticmethod(_problem)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name=f"babilong.{self.task}",
            version=1,
            capability="reasoning",
            family="story",
            reserve=RESERVE,
            chance=1 / len(LABELS[self.task]),
            has_depth=False,
            summary=f"BABILong {self.task}: {SUMMARIES[self.task]} (data is loaded, not shipped)",
            source="BABILong (Kuratov et al. 2024, arXiv 2406.10149), booydar/babilong",
            license="Apache-2.0 (BABILong, PG-19), BSD (bAbI); the data is not shipped",
            data_revision=self.data or self.hub,
            departures=DEPARTURES,
        )

    def ask(self, row: Row, part: int) -> Asked:
        words, own = wording(), wording()["tasks"][self.task]
        examples = "".join(words["example"].format(**example) for example in own["examples"])
        head = f"{own['instruction']}\n\n{examples}{own['ask']}\n\n<context>\n"
        context, question = row.data["input"].strip(), row.data["question"].strip()
        target = tuple(part.strip() for part in row.data["target"].split(","))
        content = f"{head}{context}\n</context>\n\nQuestion: {question}"
        return Asked(
            messages=(Message(role="user", content=content),),
            target=target,
            choices=tuple(label for label in LABELS[self.task] if label not in target),
            context=(len(head), len(head) + len(context)),
            groups={"target": ", ".join(target)},
            extra={"question": question},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: the labels of the target as whole words and no others. `published`: BABILong's rule."""
        question, labels = sample.extra["question"], LABELS[self.task]
        graded = strict(response.text, question, sample.target, labels)
        score = replace(graded, published=float(official(response.text, question, ",".join(sample.target), labels)))
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)


class Qa1(BabiLong):
    task = "qa1"
    hub = "hf:RMT-team/babilong/4k:qa1"


class Qa2(BabiLong):
    task = "qa2"
    hub = "hf:RMT-team/babilong/4k:qa2"


class Qa3(BabiLong):
    task = "qa3"
    hub = "hf:RMT-team/babilong/4k:qa3"


class Qa4(BabiLong):
    task = "qa4"
    hub = "hf:RMT-team/babilong/4k:qa4"


class Qa5(BabiLong):
    task = "qa5"
    hub = "hf:RMT-team/babilong/4k:qa5"


class Qa6(BabiLong):
    task = "qa6"
    hub = "hf:RMT-team/babilong/4k:qa6"


class Qa7(BabiLong):
    task = "qa7"
    hub = "hf:RMT-team/babilong/4k:qa7"


class Qa8(BabiLong):
    task = "qa8"
    hub = "hf:RMT-team/babilong/4k:qa8"


class Qa9(BabiLong):
    task = "qa9"
    hub = "hf:RMT-team/babilong/4k:qa9"


class Qa10(BabiLong):
    task = "qa10"
    hub = "hf:RMT-team/babilong/4k:qa10"


TASKS = (Qa1(), Qa2(), Qa3(), Qa4(), Qa5(), Qa6(), Qa7(), Qa8(), Qa9(), Qa10())
