"""The run folder survives crashes, and two writers cannot meet in it."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.errors import RunFolderError
from longreach.harness.record import Record
from longreach.harness.running.lock import NAME as LOCK
from longreach.harness.running.store import RECORDS, open_store, read_config, read_records


def record(key: str = "k", **changes: Any) -> Record:
    fields: dict[str, Any] = {
        "key": key,
        "task": "niah.single",
        "task_id": "niah.single@1",
        "version": 1,
        "capability": "retrieval",
        "family": "needle",
        "length": 512,
        "depth": 0.5,
        "index": 0,
        "seed": 42,
        "model": "sim:perfect",
        "tokenizer": "words",
        "outcome": "scored",
        "score": 1.0,
        "text": "an answer",
        "at": "2026-01-01T00:00:00+00:00",
    }
    return Record(**(fields | changes))


def write(folder: Path, *records: Record) -> None:
    async def add() -> None:
        with open_store(folder) as store:
            await asyncio.gather(*(store.add(item) for item in records))

    asyncio.run(add())


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    records = [record(f"k{n}", text=f"zwölf \u2028 {n}") for n in range(50)]
    write(tmp_path, *records)
    assert list(read_records(tmp_path).values()) == records


def test_a_lone_surrogate_does_not_stop_the_writer(tmp_path: Path) -> None:
    write(tmp_path, record(text="bad \ud800 text"))
    assert read_records(tmp_path)["k"].text == "bad ? text"


def test_the_last_success_of_a_key_wins(tmp_path: Path) -> None:
    failed = record(outcome="failed", score=None, error="cut off")
    write(tmp_path, failed, record(score=0.0), record(score=1.0), failed)
    assert read_records(tmp_path)["k"].score == 1.0


def test_a_torn_last_line_is_moved_aside_and_the_rest_kept(tmp_path: Path) -> None:
    write(tmp_path, record("a"), record("b"))
    whole = (tmp_path / RECORDS).read_bytes()
    (tmp_path / RECORDS).write_bytes(whole + whole[:77])
    assert list(read_records(tmp_path)) == ["a", "b"]
    with open_store(tmp_path) as store:
        assert list(store.records) == ["a", "b"]
        assert store.torn == tmp_path / "records.torn-1"
    assert (tmp_path / RECORDS).read_bytes() == whole
    assert (tmp_path / "records.torn-1").read_bytes() == whole[:77]


def test_a_last_line_of_zeros_counts_as_torn(tmp_path: Path) -> None:
    write(tmp_path, record("a"))
    with (tmp_path / RECORDS).open("ab") as file:
        file.write(b"\0" * 300_000 + b"\n")
    with open_store(tmp_path) as store:
        assert (list(store.records), store.torn is not None) == (["a"], True)


def test_a_damaged_line_in_the_middle_is_an_error_with_its_number(tmp_path: Path) -> None:
    write(tmp_path, record("a"), record("b"), record("c"))
    lines = (tmp_path / RECORDS).read_bytes().splitlines(keepends=True)
    (tmp_path / RECORDS).write_bytes(lines[0] + lines[1][:40] + b"\n" + lines[2])
    with pytest.raises(RunFolderError, match=r"line 2: not a JSON line"), open_store(tmp_path):
        pass


def test_a_record_of_another_schema_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, record("a"), record("b"))
    text = (tmp_path / RECORDS).read_text().replace('"schema":1', '"schema":9', 1)
    (tmp_path / RECORDS).write_text(text)
    with pytest.raises(RunFolderError, match="schema 9"):
        read_records(tmp_path)


def test_a_second_writer_is_refused_while_the_first_is_there(tmp_path: Path) -> None:
    refused = pytest.raises(RunFolderError, match=f"in use by another process.*{os.getpid()}")
    with open_store(tmp_path), refused, open_store(tmp_path):
        pass
    with open_store(tmp_path):
        pass


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    owner = {"pid": int(child.stdout), "host": socket.gethostname(), "started": 1}
    (tmp_path / LOCK).write_text(json.dumps(owner))
    with open_store(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert not (tmp_path / LOCK).exists()


def test_the_lock_of_an_earlier_process_with_our_number_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "started": 1}))
    if not Path("/proc/self/stat").exists():  # the system does not tell when a process began
        return
    with open_store(tmp_path):
        pass


def test_the_lock_of_another_host_is_respected(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text(json.dumps({"pid": 1, "host": "elsewhere", "started": 1}))
    with pytest.raises(RunFolderError, match="on elsewhere"), open_store(tmp_path):
        pass


def test_a_full_disk_is_one_sentence_and_what_was_acknowledged_stays(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():  # no such device on this system
        return
    write(tmp_path, record("a"))

    async def overfill(file: FileIO) -> None:
        with open_store(tmp_path) as store:
            store._file.close()
            store._file = file
            await store.add(record("b"))

    with pytest.raises(RunFolderError, match="No space left"):
        asyncio.run(overfill(full.open("ab", buffering=0)))
    assert list(read_records(tmp_path)) == ["a"]


def test_a_folder_without_config_is_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="not a run folder"):
        read_config(tmp_path)


def test_a_folder_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(RunFolderError, match="cannot be made"), open_store(tmp_path / "x"):
        pass


def test_a_secret_that_a_model_repeats_is_in_no_record(tmp_path: Path) -> None:
    async def go() -> None:
        with open_store(tmp_path, secrets=("sk-very-secret",)) as store:
            await store.add(record("a", text="it is sk-very-secret", error="sk-very-secret?"))
            store.add_all([record("b", extra={"notes": ["sk-very-secret"]}), record("c", text="kept")])
            assert "sk-very-secret" not in str(store.records)

    asyncio.run(go())
    assert "sk-very-secret" not in (tmp_path / RECORDS).read_text()
    found = read_records(tmp_path)
    assert (found["a"].text, found["c"].text) == ("it is <redacted>", "kept")
