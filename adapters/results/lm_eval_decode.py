"""What lm-eval's long-context tasks mean by their fields: length, score and family of one logged sample or one results row.

Where the length stands: ruler `doc.max_length`; babilong the task's metadata; longbench `doc.length` (words); longbench2 the
class in `doc.length`; ours everything in `doc`. A task that names no length is not understood.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longreach.adapters.results.longbench_v2 import CLASSES
from longreach.adapters.results.ruler import FAMILIES
from longreach.adapters.results.shared import is_own, read_own, texts, whole
from longreach.harness.imported import ImportedTask, SummaryRow, as_score
from longreach.harness.record import COUNTED, OUTCOMES, Outcome

RULER_NAMES = {
    **{name: name for name in FAMILIES if name.startswith("niah")},
    "ruler_vt": "vt",
    "ruler_cwe": "cwe",
    "ruler_fwe": "fwe",
    "ruler_qa_squad": "qa_1",
    "ruler_qa_hotpot": "qa_2",
}
"""lm-eval's name of a RULER task -> RULER's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """One logged sample, understood."""

    task: ImportedTask
    length: int
    index: int
    score: float | None
    """None: logged without a score (a sentinel, "N/A", NaN, null)."""
    published: float | None = None
    depth: float | None = None
    seed: int = 0
    parts: Mapping[str, float] = field(default_factory=dict)
    target: tuple[str, ...] = ()
    placed: tuple[float, ...] = ()
    prompt_sha256: str | None = None
    n_tokens: int | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    tokenizer: str = "as lm-eval's task was given it"
    tokenizer_spec: str | None = None
    note: str = ""
    outcome: Outcome | None = None
    """As our own task noted it; None where the other tool has no such word."""
    needs_text: bool = True
    """An empty reply is `no_answer`; choices are read off log-likelihoods instead."""


def decode(task: str, config: Mapping[str, Any], line: Mapping[str, Any]) -> Decoded | str:
    """One line of a sample log, or in words why it is not understood."""
    doc = line.get("doc")
    index = line.get("doc_id")
    if not isinstance(doc, Mapping) or not isinstance(index, int) or isinstance(index, bool):
        return "no `doc` or no `doc_id`"
    if is_own(doc):
        return _own(doc, line)
    if task in RULER_NAMES:
        return _ruler(task, doc, index, line)
    if task.startswith("babilong"):
        return _babilong(task, config, index, line)
    if task.startswith("longbench2"):
        return _longbench2(task, doc, index, line)
    if task.startswith("longbench"):
        return _longbench(task, doc, index, line)
    return f"the task {task!r} names no length"


def outcome_of(found: Decoded, text: str) -> tuple[Outcome, str | None]:
    """What became of a sample, and the error if it has no score."""
    if found.outcome is not None and found.outcome not in COUNTED:
        return found.outcome, f"logged as {found.outcome}"
    if found.score is None:
        return "failed", "lm-eval logged no score for this sample"
    if found.outcome is not None:
        return found.outcome, None
    return ("no_answer" if found.needs_text and not text.strip() else "scored"), None


def rows_of(task: str, metrics: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[list[SummaryRow], list[str]]:
    """Summary rows of a task whose samples were not logged, and in words what is not understood."""
    label = f"lm-eval:{RULER_NAMES.get(task, task)}"
    values = {name.partition(",")[0]: value for name, value in metrics.items() if "_stderr" not in name}
    if task in RULER_NAMES:
        found = [
            SummaryRow(task=label, length=int(name), mean=mean)
            for name, value in values.items()
            if name.isdecimal() and (mean := as_score(value)) is not None
        ]
        return found, [] if found else [f"{task}: no length has a score"]
    length, mean = _stated_length(config), as_score(values.get("acc", values.get("score")))
    if task.startswith("babilong") and length is not None and mean is not None:
        return [SummaryRow(task=label, length=length, mean=mean)], []
    return [], [f"{task}: its samples were not logged and its row names no length"]


def tasks_of(task: str, rows: Sequence[SummaryRow]) -> list[ImportedTask]:
    """The task of summary rows."""
    return [_task(task, row.task) for row in rows[:1]]


def _task(task: str, label: str = "") -> ImportedTask:
    name = RULER_NAMES.get(task)
    label = label or f"lm-eval:{name or task}"
    source = "lm-evaluation-harness"
    if name is not None:
        return ImportedTask(label=label, capability=FAMILIES[name][0], family=FAMILIES[name][1], source=source)
    if task.startswith("babilong"):
        return ImportedTask(label=label, capability="reasoning", family="stories", source=source)
    chance = 0.25 if task.startswith("longbench2") else 0.0
    return ImportedTask(label=label, capability="documents", family="documents", chance=chance, source=source)


def _own(doc: Mapping[str, Any], line: Mapping[str, Any]) -> Decoded | str:
    own = read_own(doc)
    if isinstance(own, str):
        return own
    parts = doc.get("parts")
    known = parts.items() if isinstance(parts, Mapping) else ()
    return Decoded(
        task=own.imported(),
        length=own.length,
        depth=own.depth,
        index=own.index,
        seed=own.seed,
        score=as_score(line.get("score")),
        published=as_score(line.get("score_published")),
        parts={name: value for name, value in known if as_score(value) is not None},
        target=tuple(own.target),
        placed=tuple(own.placed),
        prompt_sha256=own.prompt_sha256,
        n_tokens=own.n_tokens,
        groups=own.groups,
        outcome=doc["outcome"] if doc.get("outcome") in OUTCOMES else None,
        tokenizer=own.tokenizer,
        tokenizer_spec=own.tokenizer_spec,
    )


def _ruler(task: str, doc: Mapping[str, Any], index: int, line: Mapping[str, Any]) -> Decoded | str:
    length = whole(doc.get("max_length"))
    if length is None:
        return "`doc.max_length` is missing"
    score = as_score(line.get(str(length)))
    return Decoded(
        task=_task(task), length=length, index=index, score=score, published=score, target=texts(doc.get("outputs"))
    )


def _babilong(task: str, config: Mapping[str, Any], index: int, line: Mapping[str, Any]) -> Decoded | str:
    length = _stated_length(config)
    if length is None:
        return "the task's metadata does not name one length (`max_seq_lengths`)"
    score = as_score(line.get("acc"))
    return Decoded(task=_task(task), length=length, index=index, score=score, published=score)


def _longbench(task: str, doc: Mapping[str, Any], index: int, line: Mapping[str, Any]) -> Decoded | str:
    words = whole(doc.get("length"))
    names = [name for name in line.get("metrics") or () if isinstance(name, str)]
    if words is None or not names:
        return "no `doc.length` or no metric"
    score = as_score(line.get(names[0]))
    return Decoded(
        task=_task(task),
        length=1 << (words - 1).bit_length(),
        index=index,
        score=score,
        published=score,
        tokenizer="words (LongBench)",
        note="LongBench's lengths are words, each rounded up to a power of two.",
    )


def _longbench2(task: str, doc: Mapping[str, Any], index: int, line: Mapping[str, Any]) -> Decoded | str:
    length = str(doc.get("length", "")).lower()
    if length not in CLASSES:
        return "`doc.length` is none of short, medium, long"
    score = as_score(line.get("acc"))
    groups = {name: str(doc[name]).lower() for name in ("difficulty", "length") if doc.get(name)}
    groups |= {name: str(doc[name]) for name in ("domain", "sub_domain") if doc.get(name)}
    return Decoded(
        task=_task(task),
        length=CLASSES[length],
        index=index,
        score=score,
        published=score,
        groups=groups,
        tokenizer="words of the context, by class (LongBench v2)",
        note="LongBench v2's lengths are classes of words: the most that a context of the class has (32k, 128k, 2M).",
        needs_text=False,
    )


def _stated_length(config: Mapping[str, Any]) -> int | None:
    """The one length of a task's metadata: `32k`, 32768, or a list of one."""
    stated = (config.get("metadata") or {}).get("max_seq_lengths")
    if isinstance(stated, list):
        stated = stated[0] if len(stated) == 1 else None
    return whole(stated)
