"""Inspect: `.eval` and `.json` logs, read by inspect-ai itself, sample by sample.

Length and depth come from a sample's metadata; scores are numbers, C and I, or (of ours) a dictionary. A log whose
status is not `success` brings in the samples that were scored, and says what happened to the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longreach.adapters.results.shared import OwnDoc, files_below, is_own, read_own, texts, whole
from longreach.harness.errors import DataError, MissingExtra
from longreach.harness.imported import ImportedRun, ImportedSample, ImportedTask, as_score

LENGTHS = ("length", "max_length", "context_length", "target_context_length")
DEPTHS = {"depth": 1.0, "position": 100.0, "target_position_percentage": 100.0, "depth_percent": 100.0}
"""Name -> what stands for the end of the context."""
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5}
"""Inspect's letters; N (no answer) is an outcome."""

COUNTED_BY_INSPECT = "as the task of Inspect counts"


@dataclass(slots=True)
class _Gathered:
    samples: list[ImportedSample] = field(default_factory=list)
    tasks: dict[str, ImportedTask] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    tokenizers: dict[str, str | None] = field(default_factory=dict)
    """Name -> SPEC."""
    notes: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


def read(paths: Sequence[Path]) -> ImportedRun:
    """All logs below the paths, oldest first.

    Raises:
        MissingExtra: inspect-ai is not installed. DataError: nothing there, unreadable, or several models.
    """
    try:
        from inspect_ai.log import read_eval_log, read_eval_log_samples
    except ImportError as error:
        raise MissingExtra("reading Inspect's logs needs inspect-ai; run: pip install 'longreach[inspect]'") from error
    found = _Gathered()
    for path in sorted(files_below(paths, "*.eval", "*.json"), key=lambda path: (path.name, str(path))):
        try:
            header = read_eval_log(str(path), header_only=True)
            _header(path, header, found)
            for number, sample in enumerate(read_eval_log_samples(str(path), all_samples_required=False)):
                _take(path, header, sample, number, found)
        except DataError:
            raise
        except Exception as error:  # whatever a damaged log makes of the library
            raise DataError(
                f"{path} cannot be read as a log of Inspect: {' '.join(str(error).split())[:160]}"
            ) from error
    if not found.samples:
        raise DataError(f"no sample of these logs is understood: {'; '.join(found.strange[:3]) or 'they hold none'}")
    if len(found.models) > 1:
        raise DataError(f"the logs are of several models ({', '.join(found.models)}); import one model at a time")
    return ImportedRun(
        tool="inspect",
        model=next(iter(found.models), None),
        tasks=list(found.tasks.values()),
        samples=found.samples,
        tokenizer=next(iter(found.tokenizers)) if len(found.tokenizers) == 1 else COUNTED_BY_INSPECT,
        tokenizer_spec=next(iter(found.tokenizers.values())) if len(found.tokenizers) == 1 else None,
        facts=found.facts,
        notes=tuple(found.notes),
        not_understood=tuple(found.strange),
    )


def _header(path: Path, header: Any, found: _Gathered) -> None:
    found.models[str(header.eval.model)] = None
    found.facts |= {
        "inspect": str((header.eval.packages or {}).get("inspect_ai", "")),
        "date": str(header.eval.created),
    }
    if header.status != "success":
        planned = header.eval.dataset.samples or "an unknown number of"
        found.notes.append(
            f"{path.name} ended with status {header.status!r}: of {planned} samples the finished ones count."
        )


def _take(path: Path, header: Any, sample: Any, number: int, found: _Gathered) -> None:
    facts: Mapping[str, Any] = sample.metadata or {}
    where = f"{path.name}, sample {sample.id}"
    own = read_own(facts) if is_own(facts) else None
    if isinstance(own, str):
        found.strange.append(f"{where}: {own}")
        return
    length = own.length if own else next((value for name in LENGTHS if (value := whole(facts.get(name)))), None)
    if length is None:
        found.strange.append(f"{where}: its metadata names no length")
        return
    task = own.imported() if own else _task(str(header.eval.task))
    found.tasks[task.label] = task
    found.tokenizers[own.tokenizer if own else COUNTED_BY_INSPECT] = own.tokenizer_spec if own else None
    found.samples.append(_sample(task, own, length, own.depth if own else _depth(facts), sample, number))


def _task(name: str) -> ImportedTask:
    return ImportedTask(
        label=f"inspect:{name.rpartition('/')[2]}", capability="retrieval", family="needle", source=f"Inspect, {name}"
    )


def _depth(facts: Mapping[str, Any]) -> float | None:
    depth = next((facts[name] / end for name, end in DEPTHS.items() if isinstance(facts.get(name), int | float)), None)
    return None if depth is None or not 0 <= depth <= 1 else round(depth, 6)


def _sample(
    task: ImportedTask, own: OwnDoc | None, length: int, depth: float | None, sample: Any, number: int
) -> ImportedSample:
    text = str(sample.output.completion or "") if sample.output is not None else ""
    value = next(iter((sample.scores or {}).values())).value if sample.scores else None
    if isinstance(value, Mapping):
        value = value.get("score", value.get("value"))
    score = GRADES.get(value) if isinstance(value, str) and value in GRADES else as_score(value)
    outcome, error = "scored", None
    if sample.error is not None:
        outcome, error, score = "failed", str(sample.error.message), None
    elif score is None and value != "N":
        outcome, error = "failed", "Inspect logged no score for this sample"
    elif value == "N" or not text.strip():
        outcome, score = "no_answer", 0.0
    return ImportedSample(
        task=task.label,
        length=length,
        depth=depth,
        index=own.index if own else number,
        seed=own.seed if own else 0,
        outcome=outcome,  # type: ignore[arg-type]
        score=score,
        published=score,
        text=text,
        target=tuple(own.target) if own else texts(sample.target),
        placed=tuple(own.placed) if own else (),
        prompt_sha256=own.prompt_sha256 if own else None,
        n_tokens=own.n_tokens if own else None,
        groups=own.groups if own else {},
        n_prompt_tokens=whole(next((usage.input_tokens for usage in (sample.model_usage or {}).values()), None)),
        error=error,
    )
