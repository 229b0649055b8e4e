"""needlehaystack (Kamradt's needle in a haystack): one JSON a cell, graded 1 to 10 by a judge model.

Grades become (grade - 1) / 9: the judge's lowest is 1. The length is the asked one; the tool's own prompts are some
200 tokens shorter (protocol: needle-in-a-haystack v1).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from longreach.adapters.results.shared import as_text, files_below, read_json, texts, whole
from longreach.harness.errors import DataError
from longreach.harness.imported import ImportedRun, ImportedSample, ImportedTask

LABEL = "needlehaystack:single"


def read(paths: Sequence[Path]) -> ImportedRun:
    """All result files below the paths.

    Raises:
        DataError: nothing there, or a file that cannot be read, or several models.
    """
    files = files_below(paths, "*_results.json", "*.json")
    samples: list[ImportedSample] = []
    strange: list[str] = []
    models: dict[str, None] = {}
    for path in files:
        data = read_json(path)
        for item in data if isinstance(data, list) else [data]:
            found = _sample(item) if isinstance(item, Mapping) else None
            if found is None:
                strange.append(f"{path.name}: no context_length, depth_percent and score of 1 to 10")
                continue
            models[str(item.get("model") or "")] = None
            samples.append(found)
    if not samples:
        raise DataError(f"none of the {len(files)} files holds results of needlehaystack: {'; '.join(strange[:3])}")
    if len(models) > 1:
        raise DataError(f"the files are of several models ({', '.join(models)}); import one model at a time")
    return ImportedRun(
        tool="needlehaystack",
        model=next(iter(models)) or None,
        tasks=[
            ImportedTask(
                label=LABEL, capability="retrieval", family="needle", source="Needle In A Haystack (Kamradt 2023)"
            )
        ],
        samples=samples,
        tokenizer="as needlehaystack was given it",
        notes=("Scores are grades of a judge model, (grade - 1) / 9; every cell asks the same question.",),
        not_understood=tuple(strange),
    )


def _sample(item: Mapping[str, object]) -> ImportedSample | None:
    length, depth, grade = whole(item.get("context_length")), item.get("depth_percent"), item.get("score")
    if length is None or isinstance(depth, bool) or not isinstance(depth, int | float):
        return None
    if isinstance(grade, bool) or not isinstance(grade, int | float) or not (1 <= grade <= 10 and 0 <= depth <= 100):
        return None
    text = as_text(item.get("model_response"))
    version = whole(item.get("version")) or 1
    return ImportedSample(
        task=LABEL,
        length=length,
        depth=round(depth / 100, 6),
        index=version - 1,
        outcome="scored" if text.strip() else "no_answer",
        score=(grade - 1) / 9 if text.strip() else 0.0,
        text=text,
        target=texts(item.get("needle")),
        latency_s=float(found) if isinstance(found := item.get("test_duration_seconds"), int | float) else None,
    )
