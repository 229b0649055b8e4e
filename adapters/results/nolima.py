"""NoLiMa: the result files of its own scripts, one JSON for each question-needle pair, book and length.

A file holds `context_length` (haystack tokens, decimal thousands), the depths of its grid, and `results` with `metric` (0 or
1) and `response` for each depth (protocol: adobe-research/NoLiMa, evaluation).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longreach.adapters.results.shared import as_text, files_below, read_json, texts, whole
from longreach.harness.errors import DataError
from longreach.harness.imported import ImportedRun, ImportedSample, ImportedTask, as_score

KINDS = ("onehop", "twohop", "direct")
_NUMBERS = ("document_depth_percent_min", "document_depth_percent_max", "document_depth_percent_intervals")


def read(paths: Sequence[Path]) -> ImportedRun:
    """All result files below the paths.

    Raises:
        DataError: nothing there, or a file that cannot be read.
    """
    samples: list[ImportedSample] = []
    strange: list[str] = []
    models: list[str] = []
    files = files_below(paths, "*.json")
    for number, path in enumerate(files):
        data = read_json(path)
        length = whole(data.get("context_length")) if isinstance(data, Mapping) else None
        if length is None or not isinstance(data.get("results"), list):
            strange.append(f"{path.name}: no `context_length` or no `results`")
            continue
        found, left = _file(data, length, number, path)
        samples += found
        strange += left
        models.append(str((data.get("model_args") or {}).get("model") or ""))
    if not samples:
        raise DataError(f"none of the {len(files)} files holds results of NoLiMa: {'; '.join(strange[:3])}")
    named = dict.fromkeys(name for name in models if name)
    if len(named) > 1:
        raise DataError(f"the files are of several models ({', '.join(named)}); import one model at a time")
    return ImportedRun(
        tool="nolima",
        model=next(iter(named), None),
        tasks=[
            ImportedTask(label=label, capability="reasoning", family="latent", source="NoLiMa (Modarressi et al. 2025)")
            for label in dict.fromkeys(sample.task for sample in samples)
        ],
        samples=samples,
        tokenizer="haystack tokens of the model's tokenizer, decimal thousands (NoLiMa)",
        notes=("Lengths are NoLiMa's: tokens of the haystack alone, in decimal thousands.",),
        not_understood=tuple(strange),
    )


def _file(data: Mapping[str, Any], length: int, number: int, path: Path) -> tuple[list[ImportedSample], list[str]]:
    low, high, n = (data.get(name) for name in _NUMBERS)
    results = data["results"]
    if not isinstance(low, int | float) or not isinstance(high, int | float) or n != len(results):
        return [], [f"{path.name}: {len(results)} results do not fit its grid of depths ({low} to {high}, {n})"]
    name = str(data.get("test_name") or data.get("eval_name") or path.stem)
    found, strange = [], []
    for place, item in enumerate(results):
        score = as_score(item.get("metric")) if isinstance(item, Mapping) else None
        if score is None:
            strange.append(f"{path.name}, result {place}: no metric")
            continue
        depth = (low + (high - low) * place / max(1, len(results) - 1)) / 100
        text = as_text(item.get("response"))
        found.append(
            ImportedSample(
                task=f"nolima:{_kind(name)}",
                length=length,
                depth=round(depth, 6),
                index=number,
                outcome="scored" if text.strip() else "no_answer",
                score=score if text.strip() else 0.0,
                published=score,
                text=text,
                target=texts(item.get("selected_character") or data.get("gold_answers")),
                n_prompt_tokens=whole(item.get("prompt_tokens")),
                n_output_tokens=whole(item.get("completion_tokens")),
                finish=str(item["finish_reason"]) if item.get("finish_reason") else None,
                groups={"pair": name},
            )
        )
    return found, strange


def _kind(name: str) -> str:
    """The question's kind, which the test's name ends with: `0401_T17_C02_twohop`."""
    last = name.rpartition("_")[2].lower()
    return next((kind for kind in KINDS if last.startswith(kind)), "other")
