"""The run folder: records.jsonl (append-only, durable before it counts), config.yaml, the lock.

One writer thread drains a queue and syncs once per drain ("group commit"): thousands of acknowledged records a second.
A torn last line, left by a crash, is moved aside when the folder is opened for writing; it was never acknowledged.
"""

import asyncio
import os
import queue
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from longreach.harness.errors import RunFolderError
from longreach.harness.files import replacing, sync_folder
from longreach.harness.record import FINAL, Record
from longreach.harness.running.lock import locked
from longreach.harness.running.redact import without

RECORDS = "records.jsonl"
CONFIG = "config.yaml"
_Ack = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.yaml.

    Raises:
        RunFolderError: not a run folder, or the file is damaged.
    """
    path = folder / CONFIG
    try:
        config = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{folder} is not a run folder: it has no {CONFIG}; name the folder that `longreach run` wrote"
        ) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RunFolderError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(config, dict) or "planned" not in config or "model" not in config:
        raise RunFolderError(f"{path} is not the configuration of a run")
    if config.get("schema") != 1:
        raise RunFolderError(f"{path} has schema {config.get('schema')!r}; this version reads 1")
    return config


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Replaces config.yaml as a whole."""
    with replacing(folder / CONFIG) as file:
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        yaml.dump(dict(config), file, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120)


def read_records(folder: Path) -> dict[str, Record]:
    """Last state of each sample by key, in order of first appearance: the last success wins, else the last line.

    A torn last line is left out.

    Raises:
        RunFolderError: a damaged line that is not the last one, with its number.
    """
    path = folder / RECORDS
    found: dict[str, Record] = {}
    for number, line, is_last in _lines(path):
        try:
            record = Record.from_json(line.decode("utf-8"))
        except (RunFolderError, UnicodeDecodeError) as error:
            if is_last:
                break
            raise RunFolderError(
                f"{path}, line {number}: {error}; repair or delete that line (the sample is asked again), or use another folder"
            ) from error
        merge_into(found, record)
    return found


def merge_into(found: dict[str, Record], record: Record) -> None:
    """Keeps the last success of a key: a later failure does not undo it."""
    old = found.get(record.key)
    if old is None or record.outcome in FINAL or old.outcome not in FINAL:
        found[record.key] = record


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Number, bytes and whether it is the last, for each line that is not blank."""
    if not path.exists():
        return
    with path.open("rb") as file:
        waiting: tuple[int, bytes] | None = None
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            if waiting is not None:
                yield *waiting, False
            waiting = (number, line)
        if waiting is not None and waiting[1].endswith(b"\n"):
            yield *waiting, True


def heal(folder: Path) -> Path | None:
    """Moves a torn last line (no newline, or not a record) to a file of its own; returns that file."""
    path = folder / RECORDS
    if not path.exists() or path.stat().st_size == 0:
        return None
    start, tail = _last_line(path)
    if tail.endswith(b"\n") and _is_json(tail):
        return None
    number = 1
    while (aside := folder / f"records.torn-{number}").exists():
        number += 1
    aside.write_bytes(tail)
    with path.open("r+b") as file:
        file.truncate(start)
        os.fsync(file.fileno())
    return aside


def _last_line(path: Path, block: int = 1 << 16) -> tuple[int, bytes]:
    """Offset and bytes of the last line, read from the end."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - block)
        file.seek(start)
        data = file.read()
    cut = data.rfind(b"\n", 0, len(data) - 1)
    if cut < 0 and start > 0:
        return _last_line(path, block * 4)
    return start + cut + 1, data[cut + 1 :]


def _is_json(line: bytes) -> bool:
    try:
        Record.from_json(line.decode("utf-8"))
    except UnicodeDecodeError:
        return False
    except RunFolderError as error:
        return "not a JSON line" not in str(error)  # a record of another schema is whole, and refused elsewhere
    return True


class Store:
    """A run folder that is open for writing. Use `open_store`."""

    def __init__(self, folder: Path, secrets: Sequence[str] = ()) -> None:
        self.folder = folder
        self._secrets = tuple(secrets)
        self.torn = heal(folder)
        self.records = read_records(folder)
        self._file = (folder / RECORDS).open("ab", buffering=0)
        sync_folder(folder)
        self._queue: queue.SimpleQueue[tuple[bytes, _Ack | None] | None] = queue.SimpleQueue()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._write, name="longreach-store", daemon=True)
        self._thread.start()

    async def add(self, record: Record) -> None:
        """Returns when the record is on disk.

        Raises:
            RunFolderError: it cannot be written (disk full, for example); what was acknowledged before is safe.
        """
        record = self._clean(record)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._queue.put((_line(record), (loop, done)))
        try:
            await done
        except OSError as error:
            raise RunFolderError(
                f"{self.folder / RECORDS} cannot be written: {error.strerror}; all records before it are kept"
            ) from error
        merge_into(self.records, record)

    def add_all(self, records: Iterable[Record]) -> None:
        """Writes many records; they are durable after `close`."""
        for record in map(self._clean, records):
            self._queue.put((_line(record), None))
            merge_into(self.records, record)

    def _clean(self, record: Record) -> Record:
        """The record without the secrets, which a model may have been told and repeats."""
        if not self._secrets:
            return record
        line = record.to_json()
        cleaned: str = without(line, self._secrets)
        return record if cleaned == line else Record.from_json(cleaned)

    def close(self) -> None:
        """Writes what is queued and ends the writer. Safe to call twice."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self._file.close()
        if self._error is not None:
            raise RunFolderError(f"{self.folder / RECORDS} cannot be written: {self._error}")

    def _write(self) -> None:
        ending = False
        while not ending:
            batch = [self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get())
            ending = None in batch
            lines = [item for item in batch if item is not None]
            error = self._commit([line for line, _ in lines])
            for _, ack in lines:
                if ack is not None:
                    ack[0].call_soon_threadsafe(_acknowledge, ack[1], error)

    def _commit(self, lines: list[bytes]) -> OSError | None:
        """Appends and syncs; on failure cuts the file back to what was whole."""
        if not lines:
            return None
        if self._error is not None:
            return self._error
        size = os.fstat(self._file.fileno()).st_size
        data = memoryview(b"".join(lines))
        try:
            while data:
                data = data[self._file.write(data) or 0 :]
            _sync(self._file.fileno())
        except OSError as error:
            self._error = error
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), size)
        return self._error


_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


def _line(record: Record) -> bytes:
    return record.to_json().encode("utf-8", "replace") + b"\n"


def _acknowledge(done: "asyncio.Future[None]", error: OSError | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


@contextmanager
def open_store(folder: Path, secrets: Sequence[str] = ()) -> Iterator[Store]:
    """The run folder, made if it is missing, locked and healed.

    Args:
        secrets: texts that are replaced in every record before it is written.

    Raises:
        RunFolderError: in use, damaged or not writable.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"run folder {folder} cannot be made ({error.strerror}); choose another --out") from error
    with locked(folder):
        store = Store(folder, secrets)
        try:
            yield store
        finally:
            store.close()
