"""Offline batches: the requests of a run as files for a batch API, and its replies back into the run folder.

Export writes config.yaml into the run folder, so that import needs only that folder and the files, in any order. Keys are
those of a normal run: a batch and a run complete each other.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from longreach.harness.errors import ConfigError, ModelError
from longreach.harness.files import replacing
from longreach.harness.model import Model, Price, Request, Response
from longreach.harness.record import FINAL
from longreach.harness.running.attempts import Policy
from longreach.harness.running.conduct import Conductor
from longreach.harness.running.grading import Judge
from longreach.harness.running.options import Options
from longreach.harness.running.plan import Item
from longreach.harness.running.prepare import Prepared, prepare
from longreach.harness.running.progress import Progress
from longreach.harness.running.requests import make_request
from longreach.harness.running.run import caps_of, finish
from longreach.harness.running.scheduler import Job
from longreach.harness.running.store import CONFIG, open_store, read_config
from longreach.harness.running.two_calls import second_call
from longreach.harness.tokenizer import Tokenizer

MAX_LINES = 50_000
MAX_BYTES = 200 * 1000 * 1000
"""Of one file: what OpenAI takes."""


@runtime_checkable
class Batched(Protocol):
    """A model whose requests can be written down and answered later."""

    def batch_line(self, request: Request) -> Mapping[str, Any]:
        """The request as one line of a batch file, under its key."""

    def batch_reply(self, line: Mapping[str, Any]) -> Response | ModelError:
        """What one line of a batch's output or error file says."""


def export_batch(
    options: Options, path: Path, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES
) -> tuple[list[Path], int, Path]:
    """Writes FILE-00001.jsonl and so on; returns the files, the number of requests, and the run folder.

    Raises:
        ConfigError: the model has no batch form, or one request alone is larger than a file may be.
    """
    prepared = prepare(options)
    batched = _batched(prepared.model)
    files: list[Path] = []
    n = 0
    with open_store(prepared.folder, prepared.secrets) as store:
        conductor = Conductor(prepared, store, caps_of(prepared), Progress())
        conductor.note_settings()
        items = [item for item in prepared.items if _is_open(prepared, store.records, item)]
        lines = (_line(prepared, batched, item) for item in items)
        for number, chunk in enumerate(_chunks(lines, max_lines, max_bytes), start=1):
            target = path.with_name(f"{path.stem}-{number:05d}{path.suffix or '.jsonl'}")
            with replacing(target) as file:
                for line in chunk:
                    file.write(line)
                    n += 1
            files.append(target)
    return files, n, prepared.folder


def _batched(model: Model) -> Batched:
    if not isinstance(model, Batched):
        raise ConfigError(f"{model.name} has no batch form; name a model such as openai:NAME")
    return model


def _is_open(prepared: Prepared, records: Mapping[str, Any], item: Item) -> bool:
    record = records.get(prepared.settings.key(item.point))
    return record is None or record.outcome not in FINAL


def _line(prepared: Prepared, batched: Batched, item: Item) -> str:
    task = prepared.plan.tasks[item.label].task
    sample = task.sample(item.point, prepared.tokenizer)
    if second_call(task, sample, "") is not None:
        raise ConfigError(
            f"{item.label} asks twice for each sample, which a batch cannot; choose another mode, or `run`"
        )
    request = make_request(item, sample, prepared.plan, prepared.settings, prepared.tokenizer, simulated=False)
    return json.dumps(batched.batch_line(request), ensure_ascii=False, separators=(",", ":")) + "\n"


def _chunks(lines: Iterator[str], max_lines: int, max_bytes: int) -> Iterator[Iterator[str]]:
    """Runs of lines that one file may hold; each must be used up before the next."""
    waiting = next(lines, None)

    def chunk() -> Iterator[str]:
        nonlocal waiting
        n = size = 0
        while waiting is not None:
            more = len(waiting.encode("utf-8", "replace"))
            if more > max_bytes:
                raise ConfigError(
                    f"one request alone has {more:,} bytes, and a batch file may have {max_bytes:,}; test shorter lengths"
                )
            if n == max_lines or size + more > max_bytes:
                return
            n, size = n + 1, size + more
            line, waiting = waiting, None
            yield line
            waiting = next(lines, None)

    while waiting is not None:
        yield chunk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What files of replies brought in."""

    answers: int
    errors: int
    strangers: int
    """Lines whose id is no sample of this run."""
    repeated: int
    """Lines whose id came before; an answer beats an error, and of two answers the later one counts."""
    folder: Path
    exit_code: int


def import_batch(paths: Sequence[Path], folder: Path, progress: Progress) -> Imported:
    """Scores the replies of batch files as if they had just come, and writes the card.

    Raises:
        RunFolderError: the folder holds no exported run. ConfigError: a file cannot be read, or no line is of this run.
    """
    read_config(folder)
    prepared = prepare(Options.of(battery=str(folder / CONFIG), out=str(folder), force=True))
    replies, repeated = _read(paths, _batched(prepared.model))
    known = {prepared.settings.key(item.point) for item in prepared.plan.items}
    strangers = len(replies.keys() - known)
    if not replies.keys() & known:
        raise ConfigError(
            f"none of the {len(replies)} lines in {', '.join(map(str, paths))} belongs to the run in {folder}; name the "
            f"folder that the export wrote"
        )
    ours = {key: reply for key, reply in replies.items() if key in known}
    prepared = replace(prepared, model=Answered(model=prepared.model, replies=ours))
    finished = finish(prepared, Importer, progress)
    errors = sum(isinstance(reply, ModelError) for reply in ours.values())
    return Imported(
        answers=len(ours) - errors,
        errors=errors,
        strangers=strangers,
        repeated=repeated,
        folder=folder,
        exit_code=finished.exit_code,
    )


def _read(paths: Sequence[Path], batched: Batched) -> tuple[dict[str, Response | ModelError], int]:
    found: dict[str, Response | ModelError] = {}
    repeated = 0
    for path in paths:
        try:
            with path.open(encoding="utf-8") as file:
                for number, line in enumerate(file, start=1):
                    if not line.strip():
                        continue
                    key, reply = _parse(line, f"{path}, line {number}", batched)
                    repeated += key in found
                    if not isinstance(reply, ModelError) or isinstance(found.get(key, reply), ModelError):
                        found[key] = reply
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} cannot be read ({error})") from error
    return found, repeated


def _parse(line: str, where: str, batched: Batched) -> tuple[str, Response | ModelError]:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{where} is not JSON ({error}); download the file again") from error
    if not isinstance(data, Mapping) or not isinstance(data.get("custom_id"), str):
        raise ConfigError(f"{where} has no custom_id: it is not a line of a batch's output")
    return data["custom_id"], batched.batch_reply(data)


@dataclass(slots=True, kw_only=True)
class Answered:
    """A model that has answered already."""

    model: Model
    replies: Mapping[str, Response | ModelError]
    simulated: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def tokenizer(self) -> Tokenizer | None:
        return self.model.tokenizer

    @property
    def window(self) -> int | None:
        return self.model.window

    @property
    def concurrency(self) -> int:
        return self.model.concurrency

    @property
    def price(self) -> Price:
        return self.model.price

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.model.facts

    async def generate(self, request: Request) -> Response:
        reply = self.replies[str(request.key)]
        if isinstance(reply, ModelError):
            raise reply
        return reply

    async def close(self) -> None:
        await self.model.close()


class Importer(Conductor):
    """A conductor whose answers are there: nothing is probed, retried or given up."""

    def _todo(self) -> list[Item]:
        key = self.prepared.settings.key
        replies = cast(Answered, self.prepared.model).replies
        return [item for item in Conductor._todo(self) if key(item.point) in replies]

    async def _look_at_model(self) -> None:
        return None

    async def _send_canaries(self, old: Mapping[str, Any] | None) -> None:
        return None

    def _save_config(self, old: Mapping[str, Any] | None) -> None:
        return None

    def _job(self, judge: Judge | None) -> Job:
        return replace(Conductor._job(self, judge), policy=Policy(tries=1, base_s=0.0), gives_up=False)
