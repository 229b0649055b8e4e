"""LongBench v2: the prediction files of its own scripts (`results/MODEL.jsonl`), with `judge`, `pred` and the row's facts.

`length` in these files is a class of words (short below 32k, medium to 128k, long to 2M); a record's length is the upper end
of its class. They make a `documents` curve and tables by group, never an effective length.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longreach.adapters.results.shared import as_text, files_below, read_json, read_lines
from longreach.harness.errors import DataError
from longreach.harness.imported import ImportedRun, ImportedSample, ImportedTask

N_ROWS = 503
CLASSES = {"short": 32 * 1024, "medium": 128 * 1024, "long": 2 * 1024 * 1024}
"""Class -> words that its contexts stay below."""
LABEL = "longbench-v2:multiple_choice"
_NEEDED = ("_id", "domain", "sub_domain", "difficulty", "length", "answer")


def read(paths: Sequence[Path]) -> ImportedRun:
    """One prediction file, JSON lines or a JSON list.

    Raises:
        DataError: nothing there, or a file that cannot be read.
    """
    files = files_below(paths, "*.jsonl", "*.json")
    samples: dict[str, ImportedSample] = {}
    strange: list[str] = []
    repeated = 0
    for path in files:
        for number, row in _rows(path):
            missing = [name for name in _NEEDED if not isinstance(row.get(name), str)]
            if missing or str(row["length"]).lower() not in CLASSES:
                strange.append(f"{path.name}, row {number}: no {', '.join(missing) or 'known length class'}")
                continue
            repeated += row["_id"] in samples
            samples[row["_id"]] = _sample(row, len(samples))
    if not samples:
        raise DataError(f"none of the {len(files)} files holds results of LongBench v2: {'; '.join(strange[:3])}")
    notes = [
        "Lengths are LongBench v2's classes: the most words that a context of the class has (32k, 128k, 2M).",
        "Answers were extracted by the benchmark's own rule; an answer that it cannot read is wrong.",
    ]
    if len(samples) < N_ROWS:
        notes.append(
            f"{len(samples)} of the benchmark's {N_ROWS} rows are there: its scripts leave out a row whose request "
            f"failed, so that means may be of the easier rows."
        )
    if repeated:
        notes.append(f"{repeated} rows came twice; the later one counts.")
    return ImportedRun(
        tool="longbench-v2",
        model=files[0].stem if len(files) == 1 else None,
        tasks=[
            ImportedTask(
                label=LABEL,
                capability="documents",
                family="documents",
                chance=0.25,
                source="LongBench v2 (Bai et al. 2024)",
            )
        ],
        samples=list(samples.values()),
        tokenizer="words of the context, by class (LongBench v2)",
        notes=tuple(notes),
        not_understood=tuple(strange),
    )


def _rows(path: Path) -> list[tuple[int, Mapping[str, Any]]]:
    if path.suffix == ".jsonl":
        return list(read_lines(path))
    data = read_json(path)
    if not isinstance(data, list):
        raise DataError(f"{path} is not a list of rows")
    return [(number, row) for number, row in enumerate(data, start=1) if isinstance(row, Mapping)]


def _sample(row: Mapping[str, Any], index: int) -> ImportedSample:
    text = as_text(row.get("response"))
    judged = row.get("judge")
    right = judged if isinstance(judged, bool) else row.get("pred") == row["answer"]
    return ImportedSample(
        task=LABEL,
        length=CLASSES[str(row["length"]).lower()],
        index=index,
        outcome="scored" if text.strip() else "no_answer",
        score=float(right) if text.strip() else 0.0,
        published=float(right),
        parts={"unparsed_published": float(row.get("pred") is None)},
        text=text,
        target=(str(row["answer"]),),
        groups={
            "domain": row["domain"],
            "sub_domain": f"{row['domain']} / {row['sub_domain']}",
            "difficulty": row["difficulty"].lower(),
            "length": row["length"].lower(),
        },
    )
