"""lm-evaluation-harness: `results_*.json` with the `samples_*.jsonl` beside them (protocol: lm-eval 0.4.13).

Samples come in where they were logged (`--log_samples`); a task without them comes in as summary rows. RULER's metrics are
named by length and hold -1 for every other length: a sentinel, never a score. Of several filters the first one counts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longreach.adapters.results.lm_eval_decode import Decoded, decode, outcome_of, rows_of, tasks_of
from longreach.adapters.results.shared import as_text, files_below, read_json, read_lines, texts
from longreach.harness.errors import DataError
from longreach.harness.imported import ImportedRun, ImportedSample, ImportedTask, SummaryRow
from longreach.harness.record import COUNTED

_STAMP = re.compile(r"results_(.+)\.json$")


@dataclass(slots=True)
class _Gathered:
    samples: list[ImportedSample] = field(default_factory=list)
    rows: list[SummaryRow] = field(default_factory=list)
    tasks: dict[str, ImportedTask] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    tokenizers: dict[str, str | None] = field(default_factory=dict)
    """Name -> SPEC."""
    facts: dict[str, Any] = field(default_factory=dict)


def read(paths: Sequence[Path]) -> ImportedRun:
    """All results files below the paths, oldest first.

    Raises:
        DataError: nothing there, a file that cannot be read, or several models.
    """
    files = [path for path in files_below(paths, "results*.json") if path.suffix == ".json"]
    found = _Gathered()
    for path in sorted(files, key=lambda path: (path.name, str(path))):
        data = read_json(path)
        if not isinstance(data, Mapping) or not isinstance(data.get("results"), Mapping):
            found.strange.append(f"{path.name}: no `results`")
            continue
        _file(path, data, found)
    if not found.samples and not found.rows:
        raise DataError(
            f"no task in {', '.join(map(str, paths))} is understood: {'; '.join(found.strange[:3]) or 'no results'}"
        )
    if len(found.models) > 1:
        raise DataError(f"the files are of several models ({', '.join(found.models)}); import one model at a time")
    return ImportedRun(
        tool="lm-eval",
        model=next(iter(found.models), None),
        tasks=list(found.tasks.values()),
        samples=found.samples,
        rows=found.rows,
        tokenizer=next(iter(found.tokenizers)) if len(found.tokenizers) == 1 else "as each task of lm-eval counts",
        tokenizer_spec=next(iter(found.tokenizers.values())) if len(found.tokenizers) == 1 else None,
        facts=found.facts,
        notes=tuple(found.notes),
        not_understood=tuple(found.strange),
    )


def _file(path: Path, data: Mapping[str, Any], found: _Gathered) -> None:
    config = data.get("config") or {}
    model = data.get("model_name") or config.get("model_name") or config.get("model")
    if model:
        found.models[str(model)] = None
    names = ("lm_eval_version", "transformers_version", "date", "chat_template_sha", "system_instruction_sha")
    found.facts |= {name: data[name] for name in names if data.get(name)}
    stamp = _STAMP.search(path.name)
    for task, metrics in data["results"].items():
        task_config = (data.get("configs") or {}).get(task)
        if not isinstance(task_config, Mapping):
            continue  # a group: its row is the mean of rows that come in one by one
        log = path.with_name(f"samples_{task}_{stamp.group(1)}.jsonl") if stamp else None
        if log is not None and log.is_file():
            _log(log, task, task_config, found)
            continue
        rows, left = rows_of(task, metrics, task_config)
        found.rows += rows
        found.strange += [f"{path.name}: {text}" for text in left]
        found.tasks |= {item.label: item for item in tasks_of(task, rows)}


def _log(path: Path, task: str, config: Mapping[str, Any], found: _Gathered) -> None:
    wanted: str | None = None
    others = 0
    for number, line in read_lines(path):
        name = str(line.get("filter", "none"))
        wanted = wanted or name
        if name != wanted:
            others += 1
            continue
        decoded = decode(task, config, line)
        if isinstance(decoded, str):
            found.strange.append(f"{path.name}, line {number}: {decoded}")
            continue
        found.samples.append(_sample(line, decoded))
        found.tasks[decoded.task.label] = decoded.task
        found.tokenizers[decoded.tokenizer] = decoded.tokenizer_spec
        found.notes |= {decoded.note: None} if decoded.note else {}
    if others:
        found.notes[f"{task}: the filter {wanted!r} counts; {others:,} lines of other filters are left out."] = None


def _sample(line: Mapping[str, Any], found: Decoded) -> ImportedSample:
    replies = line.get("filtered_resps")
    reply = replies[0] if isinstance(replies, Sequence) and not isinstance(replies, str) and replies else replies
    text = as_text(reply) if found.needs_text else ""  # log-likelihoods are no text
    outcome, error = outcome_of(found, text)
    return ImportedSample(
        task=found.task.label,
        length=found.length,
        depth=found.depth,
        index=found.index,
        seed=found.seed,
        outcome=outcome,
        score=None if outcome not in COUNTED else found.score if outcome == "scored" else 0.0,
        published=found.published if outcome in COUNTED else None,
        parts=found.parts,
        text=text,
        target=found.target or texts(line.get("target")),
        placed=found.placed,
        prompt_sha256=found.prompt_sha256,
        n_tokens=found.n_tokens,
        groups=found.groups,
        error=error,
    )
