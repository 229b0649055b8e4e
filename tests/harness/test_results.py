"""What the end of a run writes: results.csv, the card, and the notebook where it is wanted."""

import json
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.cli import run_command
from longreach.harness.running.store import write_config


def _folder(make: Any, path: Path, records: Any, **changes: Any) -> Path:
    path.mkdir(parents=True)
    write_config(path, make.config(records, **changes))
    (path / "records.jsonl").write_text("".join(record.to_json() + "\n" for record in records), encoding="utf-8")
    return path


def test_the_card_command_writes_an_executed_notebook(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LONGREACH_NOTEBOOK")
    run = _folder(make, tmp_path / "run", make.row("niah.single", {4096: 5, 8192: 3}, 5, (0.0, 1.0)))
    assert run_command(["card", str(run)]) == 0
    book = json.loads((run / "report.ipynb").read_text(encoding="utf-8"))
    assert "Long-context report: sim:test" in "".join(book["cells"][0]["source"])
    assert all(cell["outputs"] for cell in book["cells"] if cell["cell_type"] == "code" and cell["id"] == "verdict")
    printed = capsys.readouterr()
    assert printed.err == ""
    assert len(printed.out.splitlines()) <= 10
    assert printed.out.splitlines()[-1] == str(run / "card.md")


def test_the_notebook_can_be_left_out(make: Any, tmp_path: Path) -> None:
    run = _folder(make, tmp_path / "run", make.row("niah.single", {4096: 5}, 5))
    assert run_command(["card", str(run)]) == 0
    assert (run / "results.csv").exists()
    assert not (run / "report.ipynb").exists()


def test_a_folder_without_records_gets_a_card_and_no_notebook(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LONGREACH_NOTEBOOK")
    planned = [{"task": "niah.single", "length": 4096, "depth": 0.5, "n": 3}]
    run = _folder(make, tmp_path / "run", [], planned=planned)
    assert run_command(["card", str(run)]) == 0
    assert not (run / "report.ipynb").exists()
