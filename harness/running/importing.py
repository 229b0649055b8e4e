"""Results across the border: of another tool as a run folder, marked with its origin; of a run in another tool's form."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach.harness.errors import ConfigError, RunFolderError
from longreach.harness.imported import ImportedRun, ImportedSample, ImportedTask, SummaryRow, deduplicated
from longreach.harness.record import Record
from longreach.harness.registry import importer, results_writer
from longreach.harness.running.config import SCHEMA
from longreach.harness.running.malformed import shown
from longreach.harness.running.results import write_results
from longreach.harness.running.store import CONFIG, open_store, read_config, read_records, write_config
from longreach.harness.sample import digest
from longreach.harness.task import is_label

if TYPE_CHECKING:
    from longreach.harness.report.card import Card

KEY = "imported"
"""Key of config.yaml that says what was read and what was not understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What came of it."""

    card: "Card"
    n: int
    """Samples."""
    rows: int
    """Summary rows."""
    repeated: int
    """Samples of a place that another one took."""
    not_understood: tuple[str, ...]
    notes: tuple[str, ...]


def import_results(tool: str, paths: Sequence[Path], out: Path, *, model: str | None = None) -> Import:
    """Writes `out` as the run folder of what the files hold.

    Args:
        model: name under which the model is known here; cards of one model can be united.

    Raises:
        ConfigError: the files cannot be read, or name no model. RunFolderError: `out` is a run that was made here.
    """
    found = importer(tool)(paths)
    for task in found.tasks:
        if not is_label(task.label):
            raise ConfigError(f"the files name a task {shown(task.label)}, which no table can show; rename it there")
    name = model or found.model
    if name is None:
        raise ConfigError("the files do not say which model answered; name it with --model")
    if (out / CONFIG).exists() and not read_config(out).get(KEY):
        raise RunFolderError(
            f"{out} is a run that was made here and is not overwritten; name another folder with --out"
        )
    samples, repeated = deduplicated(found.samples)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    records = _records(found, samples, name, at)
    config = _config(found, samples, records, name, paths, at)
    if (out / CONFIG).exists():
        _refuse_mixture(read_config(out), config, out)
    with open_store(out) as store:
        write_config(out, config)
        store.add_all([record for record in records if _is_news(record, store.records.get(record.key))])
        card, _ = write_results(out, store.records)
    return Import(
        card=card,
        n=len(samples),
        rows=len(found.rows),
        repeated=repeated,
        not_understood=found.not_understood,
        notes=found.notes,
    )


def export_results(tool: str, run: Path, folder: Path) -> list[Path]:
    """The samples of a run as files that `tool` would have written; returns the files.

    Raises:
        RunFolderError: not a run folder. ConfigError: the folder cannot be written, or holds such files.
    """
    write = results_writer(tool)
    config, records = read_config(run), read_records(run)
    if folder.is_dir() and any(folder.glob("results_*.json")):
        raise ConfigError(f"{folder} holds results already; name another folder")
    stamp = max((record.at for record in records.values()), default="").partition("+")[0].replace(":", "-")
    try:
        return write(folder, list(records.values()), config, f"{stamp or 'empty'}.000000")
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written ({error.strerror or error}); name another one") from error


def _refuse_mixture(old: Mapping[str, Any], new: Mapping[str, Any], out: Path) -> None:
    for what, before, after in (
        ("tool", old[KEY]["tool"], new[KEY]["tool"]),
        ("files", old[KEY]["files"], new[KEY]["files"]),
        ("model", old["model"]["name"], new["model"]["name"]),
    ):
        if before != after:
            raise RunFolderError(
                f"{out} holds an import of another {what} ({before}, now {after}); choose another --out"
            )


def _is_news(record: Record, old: Record | None) -> bool:
    """Not there yet, apart from the time of the import."""
    return old is None or replace(record, at=old.at) != old


def _records(found: ImportedRun, samples: Sequence[ImportedSample], model: str, at: str) -> list[Record]:
    tasks = {task.label: task for task in found.tasks}
    records = [_record(found, sample, tasks[sample.task], model, at) for sample in samples]
    return records + [_row(found, row, tasks[row.task], model, at) for row in found.rows]


def _record(found: ImportedRun, sample: ImportedSample, task: ImportedTask, model: str, at: str) -> Record:
    own = task.own or {}
    return Record(
        key=digest([f"imported:{found.tool}", model, *sample.place])[:32],
        origin=f"imported:{found.tool}",
        task=task.label,
        task_id=_id(task),
        version=task.version,
        capability=task.capability,
        family=task.family,
        params=dict(own.get("params") or {}),
        length=sample.length,
        depth=sample.depth,
        index=sample.index,
        seed=sample.seed,
        model=model,
        tokenizer=found.tokenizer,
        outcome=sample.outcome,
        finish=sample.finish,
        score=sample.score,
        score_published=sample.published,
        parts=dict(sample.parts),
        text=sample.text,
        target=sample.target,
        placed=sample.placed,
        n_tokens=sample.n_tokens,
        n_prompt_tokens=sample.n_prompt_tokens,
        n_output_tokens=sample.n_output_tokens,
        latency_s=sample.latency_s,
        prompt_sha256=sample.prompt_sha256,
        error=sample.error,
        at=at,
        extra={"groups": dict(sample.groups)} if sample.groups else {},
    )


def _row(found: ImportedRun, row: SummaryRow, task: ImportedTask, model: str, at: str) -> Record:
    origin = "vendor" if found.vendor else f"reported:{found.tool}"
    return Record(
        key=digest([origin, model, row.task, row.length])[:32],
        origin=origin,
        task=task.label,
        task_id=_id(task),
        version=task.version,
        capability=task.capability,
        family=task.family,
        length=row.length,
        depth=None,
        index=0,
        seed=0,
        model=model,
        tokenizer=found.tokenizer,
        outcome="scored",
        score=row.mean,
        at=at,
        extra={"n": row.n},
    )


def _id(task: ImportedTask) -> str:
    return str((task.own or {}).get("id") or f"{task.label}@1")


def _config(
    found: ImportedRun,
    samples: Sequence[ImportedSample],
    records: Sequence[Record],
    model: str,
    paths: Sequence[Path],
    at: str,
) -> dict[str, Any]:
    planned = Counter((sample.task, sample.length, sample.depth) for sample in samples)
    sampled = {sample.task for sample in samples}
    return {
        "schema": SCHEMA,
        "longreach": version("longreach"),
        "battery": f"imported from {found.tool}",
        "description": "",
        "headline": _headline(found.tasks),
        "lengths": sorted({record.length for record in records}),
        "depths": sorted({sample.depth for sample in samples if sample.depth is not None}),
        "samples": max(planned.values(), default=0),
        "seed": 0,
        "tasks": [_task(task, samples) for task in found.tasks if task.label in sampled],
        "infeasible": [],
        "planned": [
            {"task": task, "length": length, "depth": depth, "n": n} for (task, length, depth), n in planned.items()
        ],
        "model": {
            "spec": model,
            "name": model,
            "args": {},
            "simulated": model.startswith("sim:"),
            "window": None,
            "concurrency": 1,
            "facts": dict(found.facts),
            "price": {"input": None, "cached": None, "output": None},
        },
        "tokenizer": {
            "spec": found.tokenizer_spec,
            "name": found.tokenizer,
            "knows_template": True,
            "is_estimate": False,
        },
        "sampling": {
            "temperature": None,
            "top_p": None,
            "seed": None,
            "reasoning_budget": 0,
            "system": None,
            "chat_template_kwargs": {},
            "extra_body": {},
            "headers": {},
            "judge": None,
        },
        "corpus": None,
        "advertised": None,
        "limits": {"max_cost": None, "max_tokens": None, "max_time": None},
        "environment": {"python": None, "platform": None, "packages": {}, "plugins": []},
        "command": f"longreach import {found.tool} {' '.join(path.name for path in paths)}",
        "started": at,
        KEY: {
            "tool": found.tool,
            "files": sorted(path.name for path in paths),
            "notes": list(found.notes),
            "not_understood": list(found.not_understood),
        },
    }


def _headline(tasks: Sequence[ImportedTask]) -> dict[str, list[str]]:
    """What the battery of our own tasks names; nothing for a capability whose tasks all count, or none."""
    capabilities = {task.capability for task in tasks if task.is_beside}
    named = {
        name: [task.label for task in tasks if task.capability == name and not task.is_beside] for name in capabilities
    }
    return {name: named[name] for name in sorted(named) if named[name]}


def _task(task: ImportedTask, samples: Sequence[ImportedSample]) -> dict[str, Any]:
    own = task.own or {}
    return {
        "task": str(own.get("task") or task.label),
        "label": task.label,
        "params": dict(own.get("params") or {}),
        "id": _id(task),
        **({} if own else {"foreign": True}),
        "info": {
            "version": task.version,
            "capability": task.capability,
            "family": task.family,
            "chance": task.chance,
            "reserve": None,
            "has_depth": any(sample.depth is not None for sample in samples if sample.task == task.label),
            "source": task.source,
            "license": "",
            "data_revision": None,
        },
    }
