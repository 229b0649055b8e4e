"""litm.kv_rows, litm.multi_doc_rows, helmet.json_kv_rows, helmet.rag_rows: rows of the published sets, loaded, never shipped.

Source: the files of Lost in the Middle (Liu et al. 2024; nelson-liu/lost-in-the-middle, unpacked: `*.jsonl`) and of HELMET
(Yen et al. 2025; the archive of princeton-nlp/HELMET, `data/json_kv`, `data/kilt`), given by `data=FILE`. The pair that is
asked for, and the gold document, stand where the file has them, or at `gold_index` where the source moves them itself.
Checked against the code that reads the files there, not against the files. What differs is in DEPARTURES.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from longreach.harness.model import Response
from longreach.harness.rows import Check, Row, Types
from longreach.harness.sample import Message, Sample
from longreach.harness.scoring import grade_one, without_credit_for_copies
from longreach.harness.task import Capability, Score, TaskInfo
from longreach.suites.helmet.answers import best_subspan_em, substring_em
from longreach.suites.helmet.multi_doc import HelmetMultiDoc, LitmMultiDoc
from longreach.suites.helmet.pairs import HELMET, LITM, RESERVE, JsonKv, LitmKv, Pair
from longreach.suites.loaded import Asked, LoadedTask

DEPARTURES = (
    "Each row is asked at the smallest length that holds it; HELMET cuts what is too long for a nominal length.",
    "There are no demonstrations from other files; those that a row holds itself are shown.",
    "The headline score is strict: an answer as whole words; the published substring rule is `score_published`.",
    "Strings that a tokenizer would take for control tokens are spaced apart.",
)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) and item.strip() for item in value)


def _pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(item, str) and item for item in pair)
        for pair in value
    )


def _kv_problem(row: Mapping[str, Any]) -> str | None:
    if not row["ordered_kv_records"] or not _pairs(row["ordered_kv_records"]):
        return "has ordered_kv_records that are not pairs of texts"
    found = [value for key, value in row["ordered_kv_records"] if key == row["key"]]
    return None if found == [row["value"]] else "has a key that is not one of its pairs with that value"


def _json_problem(row: Mapping[str, Any]) -> str | None:
    if not _pairs(row["demos"]):
        return "has demos that are not pairs of texts"
    if not row["answer"].strip() or row["answer"] not in row["context"] or row["question"] not in row["context"]:
        return "has a pair to ask for that is not in its context"
    return None


def _documents_problem(row: Mapping[str, Any]) -> str | None:
    if not _texts(row["answers"]):
        return "has answers that are not texts"
    if not row["ctxs"] or not all(
        isinstance(item, dict) and isinstance(item.get("title"), str) and isinstance(item.get("text"), str)
        for item in row["ctxs"]
    ):
        return "has ctxs that are not documents with title and text"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Published(LoadedTask):
    """Rows with one answer each."""

    name: ClassVar[str]
    source: ClassVar[str]
    summary: ClassVar[str]
    capability: ClassVar[Capability] = "retrieval"
    family: ClassVar[str] = "key-value"
    license: ClassVar[str] = "MIT"
    reserve: ClassVar[int] = RESERVE

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name=self.name,
            version=1,
            capability=self.capability,
            family=self.family,
            reserve=self.reserve,
            chance=0.0,
            has_depth=False,
            summary=f"{self.summary} (data is loaded, not shipped)",
            source=self.source,
            license=f"{self.license}; the data is not shipped",
            data_revision=self.data or None,
            departures=DEPARTURES,
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: an answer as whole words. `published`: the source's substring rule."""
        graded = grade_one(response.text, sample.target)
        score = Score(
            value=graded.value,
            published=self.published(response.text, sample.target),
            parts=graded.parts,
            extracted=graded.extracted,
        )
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    @abstractmethod
    def published(self, output: str, references: tuple[str, ...]) -> float:
        """The source's rule."""


def _asked(
    head: str, context: str, tail: str, target: tuple[str, ...], question: str, groups: Mapping[str, str]
) -> Asked:
    return Asked(
        messages=(Message(role="user", content=head + context + tail),),
        target=target,
        context=(len(head), len(head) + len(context)),
        groups=groups,
        extra={"question": question},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LitmKvRows(Published):
    """Key-value retrieval of Lost in the Middle."""

    name = "litm.kv_rows"
    source = LITM
    summary = "Lost in the Middle, its own objects: the value of one key among uuid pairs"
    columns: ClassVar[Types] = {"ordered_kv_records": list, "key": str, "value": str}
    check: ClassVar[Check | None] = staticmethod(_kv_problem)

    gold_index: int = -1
    """Where the pair that is asked for is moved to, from 0, as the source's own script does; -1: it stays."""

    def ask(self, row: Row, part: int) -> Asked:
        pairs = [Pair(key=key, value=value) for key, value in row.data["ordered_kv_records"]]
        asked = next(pair for pair in pairs if pair.key == row.data["key"])
        if self.gold_index >= 0:
            pairs.remove(asked)
            pairs.insert(self.gold_index, asked)
        head, tail, question = LitmKv().around(asked, ())
        context = ",\n ".join(pair.text for pair in pairs)
        groups = {"pairs": str(len(pairs)), "gold index": str(pairs.index(asked))}
        return _asked(head, context, tail, (asked.value,), question, groups)

    def published(self, output: str, references: tuple[str, ...]) -> float:
        return LitmKv().published(output, references[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class LitmMultiDocRows(Published):
    """Multi-document question answering of Lost in the Middle."""

    name = "litm.multi_doc_rows"
    source = LITM
    summary = "Lost in the Middle, its own documents: a question of NQ-Open"
    capability = "documents"
    family = "qa"
    license = "MIT (code), CC BY-SA 3.0 (Wikipedia, Natural Questions)"
    columns: ClassVar[Types] = {"question": str, "answers": list, "ctxs": list}
    check: ClassVar[Check | None] = staticmethod(_documents_problem)

    def ask(self, row: Row, part: int) -> Asked:
        documents = row.data["ctxs"]
        gold = [str(number) for number, item in enumerate(documents) if item.get("isgold") is True]
        context = "\n".join(
            LitmMultiDoc.form.format(number=number, title=item["title"], text=item["text"])
            for number, item in enumerate(documents, 1)
        )
        question = row.data["question"]
        groups = {"documents": str(len(documents)), "gold index": ", ".join(gold) or "none"}
        return _asked(
            LitmMultiDoc.head,
            context,
            f"\n\nQuestion: {question}\nAnswer:",
            tuple(row.data["answers"]),
            question,
            groups,
        )

    def published(self, output: str, references: tuple[str, ...]) -> float:
        return best_subspan_em(output, references)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonKvRows(Published):
    """HELMET's json_kv."""

    name = "helmet.json_kv_rows"
    source = HELMET
    summary = "HELMET json_kv, its own objects: the value of one key, two keys solved"
    columns: ClassVar[Types] = {"context": str, "question": str, "answer": str, "demos": list, "num_kvs": int}
    check: ClassVar[Check | None] = staticmethod(_json_problem)

    def ask(self, row: Row, part: int) -> Asked:
        data = row.data
        demos = tuple(Pair(key=key, value=value) for key, value in data["demos"][: JsonKv.n_demos])
        _, tail, question = JsonKv().around(Pair(key=data["question"], value=data["answer"]), demos)
        groups = {"pairs": str(data["num_kvs"])}
        return _asked("", data["context"], tail.removeprefix("}"), (data["answer"],), question, groups)

    def published(self, output: str, references: tuple[str, ...]) -> float:
        return JsonKv().published(output, references[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class RagRows(Published):
    """HELMET's questions on passages of Wikipedia."""

    name = "helmet.rag_rows"
    source = HELMET
    summary = "HELMET RAG (NQ, TriviaQA, HotpotQA, PopQA), its own passages"
    capability = "documents"
    family = "qa"
    license = "MIT (code), CC BY-SA (Wikipedia) and the question sets' own"
    reserve = HelmetMultiDoc.reserve
    columns: ClassVar[Types] = {"question": str, "answers": list, "ctxs": list}
    check: ClassVar[Check | None] = staticmethod(_documents_problem)

    def ask(self, row: Row, part: int) -> Asked:
        documents, question = row.data["ctxs"], row.data["question"]
        context = "\n\n".join(HelmetMultiDoc.form.format(title=item["title"], text=item["text"]) for item in documents)
        return _asked(
            HelmetMultiDoc.head,
            context,
            f"\n\nQuestion: {question}\nAnswer:",
            tuple(row.data["answers"]),
            question,
            {"passages": str(len(documents))},
        )

    def published(self, output: str, references: tuple[str, ...]) -> float:
        return substring_em(output, references, "answer:")


TASKS = (LitmKvRows(), LitmMultiDocRows(), JsonKvRows(), RagRows())
