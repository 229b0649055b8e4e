"""Keys stay out of what commands write later on, and out of the last line of a command that failed."""

import json
import logging
import os
from pathlib import Path

import pytest

import longreach
from longreach.harness.cli import run_command
from longreach.harness.errors import BatteryError
from longreach.harness.running.redact import keys_around
from longreach.harness.running.revisit import rescore

SECRET = "quite-a-secret"
GRID = {"tasks": ["niah.single"], "lengths": "512", "depths": "0.5", "samples": 2, "model": "sim:perfect"}


def tell(folder: Path) -> None:
    """The records of a folder as if a model had repeated the key, and been graded by an older scorer."""
    records = folder / "records.jsonl"
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    told = [line | {"text": f"{line['text']} {SECRET}", "score": 0.5} for line in lines]
    records.write_text("".join(json.dumps(line) + "\n" for line in told))


def test_what_rescore_and_merge_write_holds_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longreach.run(**GRID, out=tmp_path / "a")
    tell(tmp_path / "a")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert run_command(["merge", str(tmp_path / "a"), "--out", str(tmp_path / "b")]) == 0
    assert SECRET not in (tmp_path / "b" / "records.jsonl").read_text()
    before = (tmp_path / "a" / "records.jsonl").stat().st_size
    assert rescore(tmp_path / "a") == (2, 2)
    assert SECRET not in (tmp_path / "a" / "records.jsonl").read_text()[before:]


def test_the_last_line_of_a_failed_command_holds_no_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MY_LLM", SECRET)
    words = ["run", f"{SECRET}.yaml", "--model", "openai:m", "--model-args", "concurrency=2,api_key_env=MY_LLM"]
    assert run_command(words) == 2
    said = capsys.readouterr().err
    assert "<redacted>.yaml" in said
    assert SECRET not in said


def test_whatever_is_named_like_a_key_is_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    found = {
        "TEAM_API_KEY": "long-enough-1",
        "HF_TOKEN": "long-enough-2",
        "A_KEY": "short",
        "GIT_AUTHOR": "somebody else",
    }
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    assert keys_around() == ("long-enough-1", "long-enough-2")


def test_a_broken_pdf_is_told_in_one_line_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "book.pdf").write_bytes(b"%PDF-1.4 nothing else")
    words = ["run", "--tasks", "niah.single", "--lengths", "512", "--model", "sim:perfect"]
    assert run_command([*words, "--corpus", str(tmp_path / "book.pdf")]) == 2
    said = capsys.readouterr().err
    assert (said.count("\n"), "cannot be read as PDF" in said) == (1, True)
    assert not caplog.records
    assert logging.getLogger("pypdf").level == logging.NOTSET


@pytest.mark.parametrize("label", ["a|b", "a\nb", "\x1b[31mred", " ", "a\u202eb"])
def test_a_label_that_would_break_a_table_is_refused_in_one_line(label: str) -> None:
    battery = {"lengths": ["512"], "depths": [0.5], "tasks": [{"task": "niah.single", "label": label}]}
    with pytest.raises(
        BatteryError, match="is no label: it must be one line of printable text without '\\|'"
    ) as caught:
        longreach.run(battery=battery, model="sim:perfect")
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
