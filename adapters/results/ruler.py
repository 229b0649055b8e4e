"""RULER: prediction files (`.../4096/pred/niah_single_1.jsonl`) and `summary.csv`, scored by RULER's own rules.

Predictions are scored again with `string_match_all` and `string_match_part` (protocol: NVIDIA/RULER, scripts/eval). A
summary without its predictions is a set of means (0 to 100) and comes in as summary rows.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longreach.adapters.results.shared import as_text, files_below, read_lines, read_table, texts, whole
from longreach.harness.errors import DataError
from longreach.harness.imported import ImportedRun, ImportedSample, ImportedTask, SummaryRow, as_score
from longreach.harness.scoring import ruler_text, string_match_all, string_match_part
from longreach.harness.task import Capability

FAMILIES: Mapping[str, tuple[Capability, str]] = {
    **{
        name: ("retrieval", "needle")
        for name in (
            *(f"niah_single_{number}" for number in (1, 2, 3)),
            *(f"niah_multikey_{number}" for number in (1, 2, 3)),
            *("niah_multivalue", "niah_multiquery"),
        )
    },
    "vt": ("reasoning", "tracing"),
    "cwe": ("reasoning", "aggregation"),
    "fwe": ("reasoning", "aggregation"),
    "qa_1": ("reasoning", "qa"),
    "qa_2": ("reasoning", "qa"),
}
SOURCE = "RULER (Hsieh et al. 2024), run by its own scripts"


def ruler_tasks(tool: str, names: Sequence[str]) -> list[ImportedTask]:
    """RULER's tasks under the label `tool:name`."""
    return [
        ImportedTask(label=f"{tool}:{name}", capability=FAMILIES[name][0], family=FAMILIES[name][1], source=SOURCE)
        for name in names
    ]


def read(paths: Sequence[Path]) -> ImportedRun:
    """All prediction files and summaries below the paths.

    Raises:
        DataError: nothing there, or a file that cannot be read.
    """
    files = files_below(paths, "*.jsonl", "summary*.csv")
    samples: list[ImportedSample] = []
    summaries: list[tuple[Path, SummaryRow]] = []
    strange: list[str] = []
    for path in files:
        if path.suffix == ".csv":
            found, left = _summary(path)
            summaries += [(path, row) for row in found]
        else:
            sampled, left = _predictions(path)
            samples += sampled
        strange += left
    rows, notes = _beside(samples, summaries)
    known = {sample.task for sample in samples} | {row.task for row in rows}
    names = [name for name in FAMILIES if f"ruler:{name}" in known]
    if not names:
        raise DataError(f"none of the {len(files)} files holds results of RULER's tasks: {'; '.join(strange[:3])}")
    return ImportedRun(
        tool="ruler",
        model=_model(files),
        tasks=ruler_tasks("ruler", names),
        samples=samples,
        rows=rows,
        tokenizer="as RULER was given it",
        notes=(*notes, "Scores are RULER's own: a reference that stands anywhere in the answer counts."),
        not_understood=tuple(strange),
    )


def _predictions(path: Path) -> tuple[list[ImportedSample], list[str]]:
    name = _task_name(path.stem)
    if name is None:
        return [], [f"{path.name}: not one of RULER's tasks"]
    length = _length(path)
    found, strange = [], []
    for number, data in read_lines(path):
        where = f"{path.name}, line {number}"
        references = texts(data.get("outputs") if "outputs" in data else data.get("output"))
        if "pred" not in data or not references:
            strange.append(f"{where}: no `pred` or no `outputs`")
            continue
        cell = length or _next_power(whole(data.get("length")))
        if cell is None:
            strange.append(f"{where}: neither the path nor the line tells the length")
            continue
        found.append(_sample(name, cell, data, references, number - 1))
    return found, strange


def _sample(
    name: str, length: int, data: Mapping[str, Any], references: tuple[str, ...], number: int
) -> ImportedSample:
    answer = ruler_text(as_text(data["pred"]))
    score = string_match_part if name.startswith("qa") else string_match_all
    index = data.get("index")
    return ImportedSample(
        task=f"ruler:{name}",
        length=length,
        index=index if isinstance(index, int) and not isinstance(index, bool) else number,
        outcome="scored" if answer else "no_answer",
        score=score(answer, references) if answer else 0.0,
        published=score(answer, references) if answer else 0.0,
        text=answer,
        target=references,
        n_tokens=whole(data.get("length")),
    )


def _summary(path: Path) -> tuple[list[SummaryRow], list[str]]:
    """Rows `Tasks,...`, `Score,...` and `Nulls,0/500,...`, with or without a header of column numbers."""
    table = {row[0].strip().lower(): row[1:] for row in read_table(path)}
    if "tasks" not in table or "score" not in table:
        return [], [f"{path.name}: no rows `Tasks` and `Score`"]
    length = _length(path)
    if length is None:
        return [], [f"{path}: no folder of its path names a length"]
    found, strange = [], []
    nulls = table.get("nulls") or []
    for column, (name, value) in enumerate(zip(table["tasks"], table["score"], strict=False)):
        mean = as_score(value, scale=100.0)
        if name not in FAMILIES or mean is None:
            strange.append(f"{path.name}: {name!r} = {value!r}")
            continue
        n = whole(nulls[column].partition("/")[2]) if column < len(nulls) else None
        found.append(SummaryRow(task=f"ruler:{name}", length=length, mean=mean, n=n))
    return found, strange


def _beside(
    samples: Sequence[ImportedSample], summaries: Sequence[tuple[Path, SummaryRow]]
) -> tuple[list[SummaryRow], list[str]]:
    """Summaries of which there are no predictions; a note for each that differs from its predictions."""
    scores: dict[tuple[str, int], list[float]] = {}
    for sample in samples:
        scores.setdefault((sample.task, sample.length), []).append(sample.score or 0.0)
    rows, notes = [], []
    for path, row in summaries:
        known = scores.get((row.task, row.length))
        if known is None:
            rows.append(row)
        elif abs(sum(known) / len(known) - row.mean) > 0.00006:
            notes.append(
                f"{path.name} says {100 * row.mean:.2f} for {row.task} at {row.length}, its predictions give "
                f"{100 * sum(known) / len(known):.2f}; the predictions count."
            )
    return rows, notes


def _task_name(stem: str) -> str | None:
    """`niah_single_1`, also as one of several chunks: `niah_single_1-0`."""
    for name in sorted(FAMILIES, key=len, reverse=True):
        if stem == name or (stem.startswith(f"{name}-") and stem[len(name) + 1 :].isdecimal()):
            return name
    return None


def _length(path: Path) -> int | None:
    """The folder that is named by a length."""
    return next((int(part) for part in reversed(path.parts[:-1]) if part.isdecimal() and int(part) >= 256), None)


def _next_power(tokens: int | None) -> int | None:
    return None if tokens is None else 1 << (tokens - 1).bit_length()


def _model(files: Sequence[Path]) -> str | None:
    """`MODEL/synthetic/4096/pred/...`: the folder above the benchmark's."""
    for path in files:
        parts = path.resolve().parts
        if "synthetic" in parts[1:]:
            return parts[parts.index("synthetic") - 1]
    return None
