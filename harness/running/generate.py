"""Test cases without a model: streamed to a file one by one, or one of them shown."""

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from longreach.harness.errors import BatteryError, MissingExtra
from longreach.harness.files import replacing
from longreach.harness.running.battery import Battery
from longreach.harness.running.battery_load import load_battery
from longreach.harness.running.options import Options
from longreach.harness.running.plan import Item, Plan, make_plan
from longreach.harness.running.resolve import default_tokenizer, resolve_tasks, with_system
from longreach.harness.sample import Sample
from longreach.harness.task import Measured
from longreach.harness.tokenizer import Tokenizer

OCTAVES = [1 << power for power in range(8, 25)]
"""Lengths for a row that may have any."""
ALL = 10**9
"""More samples than there are rows."""
_PER_GROUP = 16
"""Cases per row group of a parquet file: one of 1M tokens is about 4 MB."""


def _planned(options: Options) -> tuple[Battery, Plan, Tokenizer]:
    battery = load_battery(options)
    tasks = resolve_tasks(battery)
    tokenizer = with_system(default_tokenizer(battery.tokenizer), battery.system, prove=battery.prove)
    return battery, make_plan(battery, tasks, tokenizer, window=None), tokenizer


def _case(sample: Sample) -> dict[str, Any]:
    needles = list(sample.extra.get("needles", ()))
    target = list(sample.target)
    return {
        "length": sample.point.length,
        "position_ratio": sample.placed[0] if sample.placed and sample.point.depth is not None else None,
        "haystack_text": sample.haystack_text
        if {"context", "turns"} & sample.extra.keys()
        else sample.messages[-1].content,
        "needle": needles[0] if len(needles) == 1 else needles,
        "question": sample.extra.get("question", ""),
        "true_answer": target[0] if len(target) == 1 else target,
    }


def _cases(plan: Plan, tokenizer: Tokenizer) -> Iterator[dict[str, Any]]:
    """One case after another, task by task; with several tasks each case names its own."""
    rank = {label: number for number, label in enumerate(plan.tasks)}
    for item in sorted(plan.items, key=lambda item: (rank[item.label], item.point.length)):
        case = _case(plan.tasks[item.label].task.sample(item.point, tokenizer))
        yield {"task": item.label, **case} if len(plan.tasks) > 1 else case


def generate(options: Options, path: Path) -> int:
    """Writes the battery's cases to `path`; the suffix says how. Returns their number.

    Raises:
        BatteryError: an unknown suffix, or a folder that is not there. MissingExtra: parquet without pyarrow.
    """
    if path.suffix not in (".json", ".jsonl", ".parquet"):
        raise BatteryError(f"--out {path} must end in .json, .jsonl or .parquet")
    if not path.parent.is_dir():
        raise BatteryError(f"the folder {path.parent} of --out does not exist; make it first")
    _, plan, tokenizer = _planned(options)
    cases = _cases(plan, tokenizer)
    return _write_parquet(cases, path) if path.suffix == ".parquet" else _write_json(cases, path)


def _write_json(cases: Iterator[dict[str, Any]], path: Path) -> int:
    """A JSON list, or one object a line; never more than one case in memory."""
    is_list = path.suffix == ".json"
    n = 0
    with replacing(path) as file:
        file.write("[\n" if is_list else "")
        for case in cases:
            file.write((",\n" if is_list and n else "") + json.dumps(case, ensure_ascii=False))
            file.write("" if is_list else "\n")
            n += 1
        file.write("\n]\n" if is_list else "")
    return n


def _write_parquet(cases: Iterator[dict[str, Any]], path: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra("parquet files need pyarrow: pip install 'longreach[parquet]', or write .jsonl") from error
    text, many = pa.string(), pa.list_(pa.string())
    names = {"task": text, "length": pa.int64(), "position_ratio": pa.float64(), "haystack_text": text}
    schema = pa.schema(names | {"needle": many, "question": text, "true_answer": many})
    draft = path.with_name(f".{path.name}.part")
    n = 0
    try:
        with pq.ParquetWriter(draft, schema) as writer:
            group: list[dict[str, Any]] = []
            for case in cases:
                lists = {key: value if isinstance(value, list) else [value] for key, value in case.items()}
                group.append({"task": None, **case, "needle": lists["needle"], "true_answer": lists["true_answer"]})
                n += 1
                if len(group) == _PER_GROUP:
                    writer.write_table(pa.Table.from_pylist(group, schema=schema))
                    group = []
            if group:
                writer.write_table(pa.Table.from_pylist(group, schema=schema))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return n


def _one(options: Options, index: int) -> tuple[Plan, Tokenizer, Item]:
    """Plan, tokenizer and the item `index`; a row is sought at its own length unless one is given."""
    tasks = resolve_tasks(load_battery(options))
    if isinstance(tasks[0].task, Measured):
        options = replace(options, lengths=options.lengths or OCTAVES, samples=ALL)
    elif options.lengths is None:
        options = replace(options, lengths=["4k"])
    _, plan, tokenizer = _planned(options)
    item = next((item for item in plan.items if item.point.index == index), None)
    if item is None:
        raise BatteryError(
            f"{tasks[0].label} has no row --index {index} at these lengths; leave --length out, or count from 0"
        )
    return plan, tokenizer, item


def show_lines(options: Options, *, index: int, as_json: bool) -> Iterator[str]:
    """One sample for people, or whole as JSON."""
    plan, tokenizer, item = _one(options, index)
    task = plan.tasks[item.label].task
    sample = task.sample(item.point, tokenizer)
    if as_json:
        facts = dataclasses.asdict(sample) | {"reserve": task.info.reserve, "prompt_sha256": sample.prompt_sha256}
        yield json.dumps(facts, ensure_ascii=False, indent=2)
        return
    for message in sample.messages:
        yield f"--- {message.role}"
        yield message.content
    if sample.answer_prefix:
        yield "--- assistant begins"
        yield sample.answer_prefix
    yield "---"
    estimated = " (lengths estimated)" if tokenizer.is_estimate else ""
    unproven = " (summed, not proven)" if "proof" in sample.extra else ""
    yield f"task {sample.point.task}, sample {sample.point.index}, seed {sample.point.seed}"
    yield f"target: {', '.join(sample.target)}"
    yield (
        f"length: {sample.n_tokens} prompt tokens + {task.info.reserve} reserved = {sample.n_tokens + task.info.reserve} "
        f"of {sample.point.length}, by {sample.tokenizer}{estimated}{unproven}"
    )
    if sample.point.depth is not None:
        yield f"depth: {', '.join(f'{depth:.4f}' for depth in sample.placed)} (asked for {sample.point.depth:g})"
    yield f"prompt sha256: {sample.prompt_sha256}"
