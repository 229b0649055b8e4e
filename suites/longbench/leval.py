"""L-Eval: 20 sets of questions and summaries on long documents, several to a document; loaded, never shipped (GPL-3.0).

Source: An et al. 2023, "L-Eval" (arXiv 2307.11088); github OpenLMLab/LEval at cd34b05, folders LEval-data/*/<set>.jsonl. A
row is a document with its `instructions` and `outputs`; each pair is one sample, number row x MOST + question. The score
is ours and strict. `score_published` is there where the benchmark's rule is known to us in full: the first capital of A to
D anywhere, A if there is none (quality, tpo), the number after "The answer is" (gsm100), F1, and the geometric mean of
ROUGE-1, 2 and L. Checked against the schema as it is documented, not against the real files.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from longreach.harness.errors import DataError
from longreach.harness.model import Response
from longreach.harness.rows import Check, Row, Types
from longreach.harness.sample import Message, Sample
from longreach.harness.scoring import exact, fuzzy
from longreach.harness.task import Score, TaskInfo
from longreach.suites.loaded import Asked, LoadedTask
from longreach.suites.longbench import text_metrics as metrics

MOST = 1000
"""Most questions of one document."""
CUT_AT = 15_500  # L-Eval: models with 16k
ROUGE = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """How the answers of one set are asked for and scored."""

    metric: str
    """letter, letters, number, match, pair, f1, rouge."""
    reserve: int
    ask: str
    """What is said after the question."""
    group: str


_LETTER = "Answer with the letter of the right choice alone."
_SHORT = "Answer as briefly as you can."
_CLOSED, _QA, _SUMMARY = "closed", "open question", "open summary"
SETS: Mapping[str, Exam] = {
    "coursera": Exam(
        metric="letters",
        reserve=64,
        group=_CLOSED,
        ask="Several choices can be right. Answer with all right letters and nothing else, such as AC.",
    ),
    "gsm100": Exam(metric="number", reserve=512, group=_CLOSED, ask='End with "The answer is" and the number.'),
    "quality": Exam(metric="letter", reserve=64, group=_CLOSED, ask=_LETTER),
    "topic_retrieval_longchat": Exam(metric="match", reserve=64, group=_CLOSED, ask="Answer with the topic alone."),
    "tpo": Exam(metric="letter", reserve=64, group=_CLOSED, ask=_LETTER),
    "codeU": Exam(metric="match", reserve=128, group=_CLOSED, ask="Answer with the output alone."),
    "sci_fi": Exam(
        metric="pair",
        reserve=64,
        group=_CLOSED,
        ask='Answer by the text, True or False, then by real-world facts in brackets, such as "True [fact: False]".',
    ),
    **{
        name: Exam(metric="f1", reserve=128, group=_QA, ask=_SHORT)
        for name in (
            *("financial_qa", "legal_contract_qa", "multidoc_qa", "narrative_qa", "natural_question", "scientific_qa"),
        )
    },
    **{
        name: Exam(metric="rouge", reserve=512, group=_SUMMARY, ask="")
        for name in (
            *("gov_report_summ", "meeting_summ", "news_summ", "paper_assistant", "patent_summ", "review_summ"),
            "tv_show_summ",
        )
    },
}
DEPARTURES = (
    "The wording of the prompts is ours.",
    "Judged subsets (win rates) are not run: they need a judge and a baseline's answers.",
    "The strict score never reads a letter into an answer that names none; the published rule reads A.",
    "Strings that a tokenizer would take for control tokens are spaced apart.",
)


def _problem(row: Mapping[str, Any]) -> str | None:
    asked, answers = row["instructions"], row["outputs"]
    if not asked or len(asked) != len(answers) or not all(isinstance(text, str) for text in (*asked, *answers)):
        return f"has {len(asked)} instructions and {len(answers)} outputs; both are lists of as many texts"
    if not all(answer.strip() for answer in answers):
        return "has an empty output"
    return f"has more than {MOST} instructions" if len(asked) > MOST else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LEval(LoadedTask):
    """One set."""

    columns: ClassVar[Types] = {"instructions": list, "outputs": list, "input": str}
    optional: ClassVar[Types] = {"source": str, "evaluation": str}
    policies: ClassVar[tuple[str, ...]] = ("refuse", "skip", "middle")
    check: ClassVar[Check | None] = staticmethod(_problem)
    per_row: ClassVar[int] = MOST
    name: ClassVar[str]

    max_tokens: int = CUT_AT
    """Tokens above which over_length=middle cuts the middle out of the prompt."""
    tell_length: bool = False
    """Tell the words of the reference to open tasks, as L-Eval's length-instruction-enhanced evaluation does."""

    def __post_init__(self) -> None:
        LoadedTask.__post_init__(self)
        if self.max_tokens < 2:
            raise ValueError(f"max_tokens {self.max_tokens!r} is not a number of tokens")

    @property
    def exam(self) -> Exam:
        return SETS[self.name]

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name=f"leval.{self.name}",
            version=1,
            capability="documents",
            family="documents",
            reserve=self.exam.reserve,
            chance=0.25 if self.exam.metric == "letter" else 0.0,
            has_depth=False,
            summary=f"L-Eval: {self.name}, {self.exam.group} (data is loaded, not shipped)",
            source="L-Eval (An et al. 2023, arXiv 2307.11088), OpenLMLab/LEval cd34b05",
            license="GPL-3.0 (the data, which is not shipped)",
            data_revision=self.data or self.hub,
            departures=DEPARTURES,
        )

    @property
    def cut_above(self) -> int | None:
        return self.max_tokens if self.over_length == "middle" else None

    @property
    def file(self) -> str | None:
        return self.name

    def require(self) -> None:
        if self.exam.metric == "rouge":
            metrics.require("rouge_score")

    def n_parts(self, row: Row) -> int:
        return len(row.data["instructions"])

    def ask(self, row: Row, part: int) -> Asked:
        question, answer = row.data["instructions"][part].strip(), row.data["outputs"][part].strip()
        more = self.exam.ask
        if self.tell_length and self.exam.group != _CLOSED:
            more = f"{more} Write about {len(answer.split())} words.".strip()
        head, document = "Read the document and do what is asked after it.\n\n", row.data["input"].strip()
        text = f"{head}{document}\n\n{question}" + (f"\n{more}" if more else "")
        return Asked(
            messages=(Message(role="user", content=text),),
            target=(_reference(self.exam.metric, answer, row.where),),
            context=(len(head), len(head) + len(document)),
            groups={"kind": self.exam.group, "source": row.data.get("source") or "not stated"},
            extra={"question": question},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """Ours; `published` where the benchmark's rule is known in full."""
        (wanted,) = sample.target
        answer = metrics.cleaned(response.text)
        metric = self.exam.metric
        if metric == "letter":
            first = re.search(r"[A-D]", response.text)
            return _exam(letters(answer) == wanted, (first[0] if first else "A") == wanted)
        if metric == "letters":
            return _exam(letters(answer) == wanted)
        if metric == "number":
            return _exam(metrics.settled_number(answer, wanted) == 1.0, published_gsm(response.text) == wanted)
        if metric == "match":
            return _exam(exact(answer, (wanted,)) or fuzzy(answer, (wanted,)))
        if metric == "pair":
            found = truths(answer)
            right = [given == true for given, true in zip(found, truths(wanted), strict=True)]
            return Score(
                value=float(all(right)),
                parts={"loyalty": float(right[0]), "fact": float(right[1])},
                extracted=str(found),
            )
        if metric == "f1":
            return Score(value=metrics.f1(answer, (wanted,)), published=metrics.f1(response.text, (wanted,)))
        found_rouge = metrics.rouge(answer, (wanted,), ROUGE)
        product = found_rouge["rouge1"] * found_rouge["rouge2"] * found_rouge["rougeL"]
        return Score(value=found_rouge["rougeL"], published=product ** (1 / 3), parts=found_rouge)


def _exam(is_right: bool, is_published: bool | None = None) -> Score:
    return Score(value=float(is_right), published=None if is_published is None else float(is_published))


def _reference(metric: str, answer: str, where: str) -> str:
    """The reference in the form that is compared.

    Raises:
        DataError: it cannot be read.
    """
    if metric in ("letter", "letters"):
        found = letters(answer)
    elif metric == "number":
        found = published_gsm(answer)
    else:
        found = answer
    if not found or (metric == "pair" and None in truths(answer)):
        raise DataError(f"{where} has the output {answer[:40]!r}, in which no {metric} can be read; exclude the row")
    return found


def letters(answer: str) -> str:
    """The letters that an answer consists of, sorted ("AC"), each as a word of its own or a run of capitals on the first
    line; empty if it says anything that is no letter, but for "The answer is" and a choice's text after its bracket."""
    line = next((line.strip() for line in answer.splitlines() if line.strip()), "")
    line = re.sub(r"^(?:the\s+)?(?:correct\s+|right\s+)?answers?\s*(?:is|are|:)\s*:?\s*", "", line, flags=re.IGNORECASE)
    one = re.fullmatch(r"[(\[]?([A-D])[)\].:]\s+\S.*", line)
    if one is not None:
        return one[1]
    plain = re.sub(r"\band\b|[\s,;.()\[\]&/'\"]", "", line)
    return "".join(sorted(set(plain))) if re.fullmatch(r"[A-D]+", plain) else ""


def published_gsm(answer: str) -> str:
    """The digits after "The answer is", else of the last word with a digit in the first paragraph."""
    stated = re.search(r"The answer is\s*(\S+)", answer)
    if stated is None or not re.search(r"\d", stated[1]):
        words = [word for word in answer.strip().split("\n\n")[0].split() if re.search(r"\d", word)]
        return re.sub(r"\D", "", words[-1]) if words else ""
    return re.sub(r"\D", "", stated[1])


def truths(answer: str) -> tuple[bool | None, bool | None]:
    """What is said by the text, and by real-world facts in the brackets after it; None where nothing is."""
    head, mark, tail = answer.partition("[")
    found = [re.search(r"\b(true|false)\b", part, re.IGNORECASE) for part in (head, tail if mark else "")]
    first, second = (match[1].lower() == "true" if match else None for match in found)
    return first, second


def _tasks() -> tuple[LEval, ...]:
    """A task for each set; they differ in a class variable only."""
    kinds = (type(f"LEval_{name}", (LEval,), {"__slots__": (), "name": name}) for name in SETS)
    return tuple(kind() for kind in kinds)


TASKS = _tasks()
