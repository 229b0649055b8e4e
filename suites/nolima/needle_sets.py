"""NoLiMa's needle sets and books, from the user's files or the hub: read and checked, never shipped.

A set is a JSON list of experiments: `id` (four digits first), `needle` with {CHAR} and {1}, {2}, ..., `questions` (kind ->
text), `tests` (id -> `input_args`, `gold_answers`), and optionally `character_set`, `task_template`, `distractors`. The
schema is that of adobe-research/NoLiMa 7532e4e; the published files could not be read when this was written.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longreach.harness.data import hub_file, pin, read_corpus
from longreach.harness.errors import DataError
from longreach.harness.rows import Row, read_rows

HUB = "amodaresi/NoLiMa"
REVISION = "378115b1"
MAIN = "needle_set.json"
MAIN_SIZE = (10, 58)
"""Experiments and pairs of the main set (NoLiMa, section 3)."""
BOOKS = tuple(f"haystack/rand_shuffle/rand_book_{number}.txt" for number in range(1, 6))
_TYPES: Mapping[str, type] = {"id": str, "needle": str, "questions": dict, "tests": dict}
_MAY: Mapping[str, type] = {
    "reasoning_type": str,
    "system_prompt": str,
    "task_template": str,
    "character_set": list,
    "distractors": dict,
}
_SLOT = re.compile(r"\{(?:CHAR|\d+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialPair:
    """One question-needle pair of a set; `{CHAR}` is still open."""

    id: str
    """Experiment, test and kind of question: `0401/T17_C02/onehop`."""
    kind: str
    needle: str
    question: str
    distractor: str
    """Empty in a set without distractors."""
    names: tuple[str, ...]
    """What {CHAR} is drawn from; empty if the needle has none."""
    gold: tuple[str, ...]
    """Accepted answers where the needle has no {CHAR}."""
    template: str
    """The experiment's own prompt with {haystack} and {question}; empty if it has none."""
    reasoning: str


@functools.lru_cache(maxsize=8)
def read_set(data: str) -> tuple[OfficialPair, ...]:
    """The pairs of a set, experiment by experiment.

    Args:
        data: `file:PATH#DIGEST` or a path; "" = the main set on the hub.

    Raises:
        DataError: it cannot be had, an experiment is not of the schema (named by file and row), or a file of the main
            set's name does not hold its 10 experiments and 58 pairs.
    """
    spec = data or str(hub_file(HUB, f"needlesets/{MAIN}", REVISION))
    rows = read_rows(spec, _TYPES, optional=_MAY, check=_problem).rows
    pairs = tuple(pair for row in rows for pair in _pairs(row))
    found = (len(rows), len(pairs))
    if Path(rows_path(spec)).name == MAIN and found != MAIN_SIZE:
        raise DataError(
            f"{spec} has {found[0]} experiments and {found[1]} question-needle pairs, but NoLiMa's main set has "
            f"{MAIN_SIZE[0]} and {MAIN_SIZE[1]}; get the whole file, or give a set of your own another name"
        )
    return pairs


def rows_path(spec: str) -> str:
    """The path in `file:PATH#DIGEST`, or the path itself."""
    return re.sub(r"#[0-9a-f]{16}\Z", "", spec.removeprefix("file:"))


def _problem(data: Mapping[str, Any]) -> str | None:
    """What is wrong with an experiment, as the end of a sentence."""
    if not re.match(r"\d{4}", data["id"]):
        return f"has the id {data['id']!r}, which does not begin with four digits"
    if not data["questions"] or not data["tests"]:
        return "has no questions or no tests"
    texts = [data["needle"], *data["questions"].values(), *(data.get("distractors") or {}).values()]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        return "has a needle, question or distractor that is no text"
    names = data.get("character_set") or []
    if not all(isinstance(name, str) and name for name in names):
        return "has a character_set with something else than names"
    if "{CHAR}" in data["needle"] and len(set(names)) < 2:
        return "has {CHAR} in its needle and fewer than two names in character_set"
    template = data.get("task_template") or "{haystack}{question}"
    if template.count("{haystack}") != 1 or template.count("{question}") != 1:
        return "has a task_template that does not hold {haystack} and {question} once each"
    return next((problem for key, test in data["tests"].items() if (problem := _test_problem(data, key, test))), None)


def _test_problem(data: Mapping[str, Any], key: str, test: Any) -> str | None:
    arguments = test.get("input_args") if isinstance(test, Mapping) else None
    if not isinstance(arguments, list) or not all(isinstance(item, str) for item in arguments):
        return f"has no list of texts as input_args in test {key!r}"
    gold = test.get("gold_answers")
    if "{CHAR}" not in data["needle"] and not (
        isinstance(gold, list) and gold and all(isinstance(item, str) and item.strip() for item in gold)
    ):
        return f"has neither {{CHAR}} in its needle nor gold_answers in test {key!r}"
    for text in (data["needle"], *data["questions"].values(), *(data.get("distractors") or {}).values()):
        if left := [slot for slot in _SLOT.findall(_filled(text, arguments)) if slot != "{CHAR}"]:
            return f"leaves {left[0]} open in test {key!r}"
    return None


def _filled(text: str, arguments: list[str]) -> str:
    """`text` with {1}, {2}, ... filled at once, so that an argument that looks like a slot stays as it is."""
    values = {f"{{{number}}}": value for number, value in enumerate(arguments, 1)}
    return _SLOT.sub(lambda match: values.get(match[0], match[0]), text)


def _pairs(row: Row) -> list[OfficialPair]:
    data = row.data
    told: Mapping[str, str] = data.get("distractors") or {}
    with_name = "{CHAR}" in data["needle"]
    return [
        OfficialPair(
            id=f"{data['id']}/{key}/{kind}",
            kind=kind,
            needle=_filled(data["needle"], test["input_args"]),
            question=_filled(question, test["input_args"]),
            distractor=_filled(told.get(kind, ""), test["input_args"]),
            names=tuple(dict.fromkeys(data["character_set"])) if with_name else (),
            gold=() if with_name else tuple(test["gold_answers"]),
            template=data.get("task_template") or "",
            reasoning=data.get("reasoning_type") or "unknown",
        )
        for key, test in data["tests"].items()
        for kind, question in data["questions"].items()
    ]


@functools.lru_cache(maxsize=8)
def read_books(haystack: str) -> tuple[str, ...]:
    """Specs of the books, in the order of their names: NoLiMa's order depends on the file system.

    Args:
        haystack: a pinned folder or file; "" = the five shuffled books on the hub.

    Raises:
        DataError: they cannot be had, or are not what was pinned.
    """
    if not haystack:
        return tuple(pin(str(hub_file(HUB, path, REVISION))) for path in BOOKS)
    folder = Path(rows_path(haystack))
    if not folder.is_dir():
        return (haystack,)
    read_corpus(haystack)  # is the folder what was pinned?
    return tuple(pin(str(path)) for path in sorted(folder.glob("*.txt"))) or (haystack,)
