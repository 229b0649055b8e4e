"""A run folder seen again: its prompts rebuilt, its answers scored again, its card rewritten. Nothing is sent."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach.harness.errors import LongreachError, RunFolderError
from longreach.harness.model import Response
from longreach.harness.record import Record
from longreach.harness.registry import open_model, open_tokenizer, takes_option
from longreach.harness.running.controls import open_task
from longreach.harness.running.outcome import outcome_of_score
from longreach.harness.running.redact import REDACTED, api_keys
from longreach.harness.running.resolve import open_counter, with_system
from longreach.harness.running.results import write_results
from longreach.harness.running.store import open_store, read_config, read_records
from longreach.harness.sample import Point
from longreach.harness.task import Task, task_id
from longreach.harness.tokenizer import Tokenizer

if TYPE_CHECKING:
    from longreach.harness.report.card import Card


def rewrite(folder: Path, say: Callable[[str], None] | None = None, baseline: Path | None = None) -> "Card":
    """Writes results.csv, the card and the notebook again; with `baseline`, a run folder, the card compares the two."""
    read_config(folder)  # says so if it is no run folder, before anything is made
    with open_store(folder) as store:
        card, _ = write_results(folder, store.records, say, baseline)
    return card


def rescore(folder: Path, say: Callable[[str], None] | None = None) -> tuple[int, int]:
    """Scores stored answers by today's scorers; returns how many, and how many changed. Judged answers keep their verdict."""
    config = read_config(folder)
    _refuse_foreign(folder, config)
    tokenizer = _tokenizer(config)
    n = changed = 0
    with open_store(folder, api_keys(config["model"].get("args") or {})) as store:
        fresh = []
        for record, task, point in _recipes(config, store.records):
            # A refusal in words was graded; one that the server calls so has the finish `filter`.
            was_graded = record.outcome == "scored" or (record.outcome == "refused" and record.finish != "filter")
            if not was_graded or "strict" in record.parts:
                continue
            sample = task.sample(point, tokenizer)
            score = task.score(sample, Response(text=record.text, reasoning=record.reasoning, finish=None))
            n += 1
            new = dataclasses.replace(
                record,
                outcome=outcome_of_score(score, record.text, sample),
                score=score.value,
                score_published=score.published,
                parts=dict(score.parts),
                extracted=score.extracted,
                target=sample.target,
            )
            if new != record:
                changed += 1
                fresh.append(new)
        store.add_all(fresh)
        write_results(folder, store.records, say)
    return n, changed


def verify(folder: Path) -> tuple[int, list[str]]:
    """Rebuilds every prompt; returns how many, and a line for each that is not what was sent."""
    config = read_config(folder)
    _refuse_foreign(folder, config)
    tokenizer = _tokenizer(config)
    wrong = []
    n = 0
    for record, task, point in _recipes(config, read_records(folder)):
        if record.prompt_sha256 is None:
            continue
        n += 1
        where = f"{record.task} length {record.length} depth {record.depth} sample {record.index}"
        try:
            found = task.sample(point, tokenizer).prompt_sha256
        except LongreachError as error:
            wrong.append(f"{where}: cannot be rebuilt: {error}")
            continue
        if found != record.prompt_sha256:
            wrong.append(f"{where}: stored {record.prompt_sha256[:16]}, rebuilt {found[:16]}")
    return n, wrong


def _refuse_foreign(folder: Path, config: Mapping[str, Any]) -> None:
    """A run that holds nothing but another tool's tasks has no recipe here."""
    if config["tasks"] and all(entry.get("foreign") for entry in config["tasks"]):
        raise RunFolderError(
            f"{folder} was imported: its prompts and scorers are another tool's, and cannot be run again here"
        )


def _recipes(config: Mapping[str, Any], records: Mapping[str, Record]) -> Iterator[tuple[Record, Task, Point]]:
    tasks: dict[str, Task] = {}
    for entry in config["tasks"]:
        if entry.get("foreign"):
            continue
        params = {name: tuple(value) if isinstance(value, list) else value for name, value in entry["params"].items()}
        task = tasks[entry["label"]] = open_task(entry["task"], **params)
        if task_id(task) != entry["id"]:
            raise RunFolderError(
                f"the run used task {entry['id']}, this installation has {task_id(task)}; use the version of longreach "
                f"that made the run ({config['longreach']})"
            )
    for record in records.values():
        if record.task not in tasks:
            continue
        point = Point(
            task=record.task_id, length=record.length, depth=record.depth, index=record.index, seed=record.seed
        )
        yield record, tasks[record.task], point


def _tokenizer(config: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer that the run counted with: by its SPEC, by its name, or the model's own."""
    known, spec = config["tokenizer"], config["model"]["spec"]
    # A secret that was taken out is not needed to count; an address with one in it comes from OPENAI_BASE_URL.
    args = {name: value for name, value in config["model"]["args"].items() if REDACTED not in str(value)}
    template = config["sampling"].get("chat_template_kwargs") or {}
    if known["spec"] is not None:
        tokenizer = open_counter(known["spec"], spec, args, template)
    elif known["name"] in ("words", "bytes"):
        tokenizer = open_tokenizer(known["name"])
    else:
        if template and takes_option(spec, "chat_template_kwargs"):
            args["chat_template_kwargs"] = template
        own = open_model(spec, **args).tokenizer
        if own is None:
            raise RunFolderError(
                f"the tokenizer {known['name']!r} of this run came with its model and cannot be had now"
            )
        tokenizer = own
    if tokenizer.name != known["name"]:
        raise RunFolderError(f"the run counted with {known['name']!r}, but {tokenizer.name!r} is what can be had now")
    sampling = config["sampling"]
    return with_system(
        tokenizer, sampling["system"], cold=sampling.get("cold", False), prove=known.get("prove", "always")
    )
