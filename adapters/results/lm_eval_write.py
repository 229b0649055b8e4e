"""The samples of a run in lm-eval's two files, for tools that read those: results_<time>.json and samples_<task>_<time>.jsonl.

What lm-eval has no word for (overflow, truncation, a failure) stands in `doc.outcome` with a null score, and in no mean.
Reading the files back gives the cells of the run.
"""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longreach.adapters.bridge import SCHEMA
from longreach.adapters.lm_eval_tasks import lm_eval_name
from longreach.harness.imported import is_beside
from longreach.harness.record import COUNTED, Record


def write_results(folder: Path, records: Sequence[Record], config: Mapping[str, Any], stamp: str) -> list[Path]:
    """Writes the files into `folder` and returns them, the results first.

    Args:
        records: samples of one run; means without samples are left out, they are no samples.
        config: the run's config.yaml.
        stamp: time for the files' names, such as 2026-12-01T05-00-00.000000.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_task: dict[str, list[Record]] = {}
    for record in records:
        if not record.is_reported:
            by_task.setdefault(record.task, []).append(record)
    chances = {entry["label"]: entry["info"]["chance"] for entry in config["tasks"]}
    files = []
    for label, own in by_task.items():
        path = folder / f"samples_{lm_eval_name(label)}_{stamp}.jsonl"
        lines = (_line(number, record, chances.get(label, 0.0), config) for number, record in enumerate(own))
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
        files.append(path)
    results = folder / f"results_{stamp}.json"
    data = {
        "results": {lm_eval_name(label): _means(label, own) for label, own in by_task.items()},
        "configs": {lm_eval_name(label): {"task": lm_eval_name(label), "metadata": {}} for label in by_task},
        "n-samples": {
            lm_eval_name(label): {"original": len(own), "effective": _n(own)} for label, own in by_task.items()
        },
        "config": {"model": config["model"]["name"], "model_args": ""},
        "model_name": config["model"]["name"],
        "lm_eval_version": None,
        "longreach": config["longreach"],
    }
    results.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return [results, *files]


def _n(records: Sequence[Record]) -> int:
    return sum(record.outcome in COUNTED for record in records)


def _means(label: str, records: Sequence[Record]) -> dict[str, Any]:
    """`score` and `score@<length>` with standard errors, as our tasks give them inside lm-eval."""
    scores: dict[str, list[float]] = {}
    for record in records:
        if record.outcome in COUNTED and record.score is not None:
            for name in ("score", f"score@{record.length}"):
                scores.setdefault(name, []).append(record.score)
    found: dict[str, Any] = {"alias": label}
    for name, values in scores.items():
        error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else "N/A"
        found |= {f"{name},none": math.fsum(values) / len(values), f"{name}_stderr,none": error}
    return found


def _line(number: int, record: Record, chance: float, config: Mapping[str, Any]) -> dict[str, Any]:
    doc = {
        "longreach": SCHEMA,
        "label": record.task,
        "task": record.task_id.partition("@")[0],
        "task_id": record.task_id,
        "version": record.version,
        "params": dict(record.params),
        "capability": record.capability,
        "family": record.family,
        "chance": chance,
        "length": record.length,
        "depth": record.depth,
        "index": record.index,
        "seed": record.seed,
        "is_beside": is_beside(config.get("headline") or {}, record.capability, record.task),
        "tokenizer": record.tokenizer,
        "tokenizer_spec": config["tokenizer"]["spec"],
        "target": list(record.target),
        "placed": list(record.placed),
        "n_tokens": record.n_tokens,
        "prompt_sha256": record.prompt_sha256,
        "groups": dict(record.extra.get("groups") or {}),
        "outcome": record.outcome,
        "parts": dict(record.parts),
    }
    return {
        "doc_id": number,
        "doc": doc,
        "target": ", ".join(record.target),
        "arguments": {},
        "resps": [[record.text]],
        "filtered_resps": [record.text],
        "filter": "none",
        "metrics": ["score", f"score@{record.length}"],
        "score": record.score,
        f"score@{record.length}": record.score,
        "score_published": record.score_published,
    }
