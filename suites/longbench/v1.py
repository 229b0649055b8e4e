"""LongBench v1 and LongBench-E: 21 sets of questions, summaries, few-shot tasks and code, and 13 of them by length.

Source: Bai et al. 2023, "LongBench" (arXiv 2308.14508); github THUDM/LongBench at 2e00731, folder LongBench; rows from the
benchmark's data.zip (a folder of `<set>.jsonl`, `<set>_e.jsonl`) or the mirror `Xnhyacinth/LongBench`, whose `question` is
`input` there. The score is ours and strict; `score_published` is the benchmark's. Checked against the schema as it is
documented, not against the real files.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from longreach.harness.data import read_corpus, read_text_file
from longreach.harness.errors import DataError
from longreach.harness.model import Response
from longreach.harness.rows import Check, Row, Types
from longreach.harness.sample import Message, Sample
from longreach.harness.task import Score, TaskInfo
from longreach.suites.loaded import Asked, LoadedTask
from longreach.suites.longbench import text_metrics as metrics
from longreach.suites.longbench.v1_sets import BUCKETS, E_SETS, LONGEST_BUCKET, SETS, Set
from longreach.suites.longbench.v2_prompts import one_pass

CUT_AT = 31_500  # LongBench, config/model2maxlen.json: models with 32k
_LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "f1_zh": ("jieba",),
    "rouge": ("rouge", "rouge_score"),
    "rouge_zh": ("jieba", "rouge", "rouge_score"),
}
DEPARTURES = (
    "The wording of the prompts is ours; `prompts` takes the published file dataset2prompt.json.",
    (
        "Every prompt is one user message; published runs send few-shot and code prompts without a chat template to models that "
        "have one."
    ),
    (
        "The text is never cut unless over_length=middle; published runs cut the middle of every prompt above the limit of the "
        "model."
    ),
    "Edit similarity is rapidfuzz's; fuzzywuzzy without python-Levenshtein, which published runs may use, can differ.",
    "Strings that a tokenizer would take for control tokens are spaced apart.",
)


def _problem(row: Mapping[str, Any]) -> str | None:
    answers = row["answers"]
    if not answers or not all(isinstance(answer, str) for answer in answers):
        return "has 'answers' that are no list of texts with at least one"
    return None


def _problem_of_classes(row: Mapping[str, Any]) -> str | None:
    classes = row.get("all_classes")
    if not classes or not all(isinstance(name, str) for name in classes):
        return "has 'all_classes' that are no list of texts"
    return _problem(row)


@lru_cache(maxsize=4)
def _templates(prompts: str) -> Mapping[str, str]:
    """Set -> template of the pinned file `prompts`."""
    read_corpus(prompts)  # says so if it has changed
    path = Path(prompts.removeprefix("file:").rpartition("#")[0])
    try:
        found = json.loads(read_text_file(path)[0])
    except ValueError as error:
        raise DataError(
            f"{path} is not JSON; give dataset2prompt.json of THUDM/LongBench, or leave `prompts` out"
        ) from error
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise DataError(f"{path} does not map sets to texts; give dataset2prompt.json of THUDM/LongBench")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LongBench(LoadedTask):
    """One set."""

    columns: ClassVar[Types] = {"context": str, "answers": list}
    optional: ClassVar[Types] = {
        **dict.fromkeys(("input", "question", "dataset", "language", "_id"), str),
        "length": int,
        "all_classes": list,
    }
    key: ClassVar[str | None] = "_id"
    policies: ClassVar[tuple[str, ...]] = ("refuse", "skip", "middle")
    check: ClassVar[Check | None] = staticmethod(_problem)
    name: ClassVar[str]
    is_e: ClassVar[bool] = False

    max_tokens: int = CUT_AT
    """Tokens above which over_length=middle cuts the middle out of the prompt."""
    prompts: str = ""
    """The published file dataset2prompt.json; "" = our wording."""

    def __post_init__(self) -> None:
        LoadedTask.__post_init__(self)
        if self.max_tokens < 2:
            raise ValueError(f"max_tokens {self.max_tokens!r} is not a number of tokens")

    @property
    def recipe(self) -> Set:
        return SETS[self.name]

    @property
    def info(self) -> TaskInfo:
        suite = "longbench_e" if self.is_e else "longbench"
        return TaskInfo(
            name=f"{suite}.{self.name}",
            version=1,
            capability="documents",
            family="documents",
            reserve=self.recipe.reserve,
            chance=0.0,
            has_depth=False,
            summary=f"LongBench{'-E' if self.is_e else ''}: {self.name}, {self.recipe.category} (data is loaded, not shipped)",
            source="LongBench (Bai et al. 2023, arXiv 2308.14508), THUDM/LongBench 2e00731",
            license="MIT (code); the texts are of third parties and not shipped",
            data_revision=self.data or self.hub,
            departures=DEPARTURES,
        )

    @property
    def cut_above(self) -> int | None:
        return self.max_tokens if self.over_length == "middle" else None

    @property
    def file(self) -> str | None:
        return f"{self.name}_e" if self.is_e else self.name

    def require(self) -> None:
        metrics.require(*_LIBRARIES.get(self.recipe.metric, ()))

    def ask(self, row: Row, part: int) -> Asked:
        data = row.data
        text = self.recipe.prompt
        if self.prompts:
            text = _templates(self.prompts).get(self.name, "")
            if "{context}" not in text:
                raise DataError(f"{self.prompts} has no template for {self.name!r} with {{context}} in it")
        question = data.get("input") or data.get("question") or ""
        content, places = one_pass(text, {"{context}": data["context"], "{input}": question})
        groups = {"category": self.recipe.category}
        if self.is_e:
            groups["words"] = _bucket(data.get("length") or len(data["context"].split()))
        return Asked(
            messages=(Message(role="user", content=content),),
            target=tuple(data["answers"]),
            context=places["{context}"],
            groups=groups,
            extra={"question": question, "classes": data.get("all_classes") or [], "id": data.get("_id", "")},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """Ours on the cleaned answer; `published`: LongBench's rule on the answer as it is, best over the references."""
        raw = metrics.first_line(response.text) if self.recipe.one_line else response.text
        answer = metrics.cleaned(response.text)
        if self.recipe.one_line:
            answer = metrics.first_line(answer)
        value, published = _scores(self.recipe.metric, answer, raw, sample.target, sample.extra["classes"])
        return Score(value=value, published=published, extracted=answer if self.recipe.one_line else None)


def _scores(metric: str, answer: str, raw: str, target: tuple[str, ...], classes: list[str]) -> tuple[float, float]:
    """Our value and the published one."""
    if metric == "f1":
        return metrics.f1(answer, target), metrics.f1(raw, target)
    if metric == "f1_zh":
        words = metrics.chinese_words
        return metrics.f1(answer, target, words), metrics.f1(raw, target, words)
    if metric in ("rouge", "rouge_zh"):
        chinese = metric == "rouge_zh"
        ours = metrics.rouge(answer, target, ("rougeL",), metrics.chinese_words if chinese else None)["rougeL"]
        return ours, metrics.published_rouge(raw, target, chinese=chinese)
    if metric == "code":
        return metrics.code_line(answer, target), metrics.published_code(raw, target)
    if metric == "number":
        return (
            max(metrics.settled_number(answer, gold) for gold in target),
            max(metrics.published_number(raw, gold) for gold in target),
        )
    return (
        max(metrics.one_class(answer, gold, classes) for gold in target),
        max(metrics.published_class(raw, gold, classes) for gold in target),
    )


def _bucket(n_words: int) -> str:
    return next((name for below, name in BUCKETS if n_words < below), LONGEST_BUCKET)


def _tasks(names: tuple[str, ...], *, is_e: bool) -> tuple[LongBench, ...]:
    """A task for each set; they differ in class variables only."""
    found = []
    for name in names:
        check = _problem_of_classes if SETS[name].metric == "classes" else _problem
        config = f"{name}_e" if is_e else name
        parts = {"__slots__": (), "name": name, "is_e": is_e, "check": staticmethod(check)}
        kind = type(f"LongBench_{config}", (LongBench,), parts | {"hub": f"hf:Xnhyacinth/LongBench/{config}:test"})
        found.append(kind())
    return tuple(found)


TASKS = (*_tasks(tuple(SETS), is_e=False), *_tasks(E_SETS, is_e=True))
