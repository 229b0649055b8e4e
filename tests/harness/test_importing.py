"""`longreach import`: a run folder like any other, marked with its origin, and cards of several origins."""

import json
from pathlib import Path

import pytest
import yaml

from longreach.harness.cli import run_command

PREDICTIONS = [
    {"index": i, "pred": f"it is {i}" if i else "unknown", "outputs": [str(i)], "length": 4000} for i in range(80)
]


@pytest.fixture
def ruler(tmp_path: Path) -> Path:
    folder = tmp_path / "ruler" / "m" / "synthetic" / "4096" / "pred"
    folder.mkdir(parents=True)
    (folder / "niah_single_1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PREDICTIONS))
    (folder / "summary.csv").write_text("Tasks,cwe\nScore,50.0\nNulls,0/500\n")
    return tmp_path / "ruler"


def _card(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "card.json").read_text())
    return found


@pytest.fixture(autouse=True)
def _no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGREACH_NOTEBOOK", "off")


def test_an_import_is_a_run_folder_that_says_so(
    ruler: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs"
    assert run_command(["import", "ruler", str(ruler), "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith("IMPORTED: WITH REPORTED ROWS: m ")
    card = _card(out)
    assert card["effective_retrieval"]["low"] == 4096  # type: ignore[index]
    assert card["provenance"]["origins"] == {"imported:ruler": 80}  # type: ignore[index]
    assert [(row["task"], row["score"], row["n"], row["by"]) for row in card["reported"]] == [  # type: ignore[attr-defined]
        ("ruler:cwe", 0.5, 500, "ruler")
    ]
    assert card["effective_reasoning"]["state"] == "not_measured"  # type: ignore[index]
    rows = (out / "results.csv").read_text().splitlines()
    assert len(rows) == 82  # the header, 80 samples, the summary row
    assert run_command(["import", "ruler", str(ruler), "--out", str(out)]) == 0  # again: nothing is added
    assert len((out / "records.jsonl").read_text().splitlines()) == 81
    assert run_command(["gate", str(out), "recall@4k > 0.9"]) == 0


def test_what_cannot_be_done_with_an_import_is_said(
    ruler: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, own = tmp_path / "runs", tmp_path / "own"
    assert run_command(["import", "ruler", str(ruler), "--out", str(out)]) == 0
    for command in ("verify", "rescore"):
        assert run_command([command, str(out)]) == 2
        assert "was imported" in capsys.readouterr().err
    options = ["--tasks", "niah.single", "--lengths", "1k", "--depths", "0.5", "--samples", "1", "--out", str(own)]
    assert run_command(["run", "--model", "sim:perfect", *options]) == 0
    assert run_command(["import", "ruler", str(ruler), "--out", str(own)]) == 2
    assert "was made here and is not overwritten" in capsys.readouterr().err
    assert run_command(["import", "ruler", str(ruler), "--out", str(out), "--model", "other"]) == 2
    assert "another model" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a|b", "two\u2028lines", "\u202ebackwards"])
def test_a_task_that_no_table_can_show_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "v.csv", tmp_path / "out"
    table.write_text(f"task,length,score_percent,n\n{name},128k,20,500\n", encoding="utf-8")
    assert run_command(["import", "vendor", str(table), "--out", str(out), "--model", "m"]) == 2
    assert f"the files name a task {name!r}, which no table can show" in capsys.readouterr().err
    assert not out.exists()


def test_one_card_of_three_origins_tells_them_apart(ruler: Path, tmp_path: Path) -> None:
    run, imported, vendor, out = (tmp_path / name for name in ("run", "imported", "vendor", "out"))
    options = ["--tasks", "ruler.vt", "--lengths", "4k", "--depths", "0.5", "--samples", "12", "--out", str(run)]
    assert run_command(["run", "--model", "sim:perfect", *options]) == 0
    assert run_command(["import", "ruler", str(ruler), "--out", str(imported), "--model", "sim:perfect"]) == 0
    (tmp_path / "v.csv").write_text("task,length,score_percent,n\nRULER,128k,20,500\n")
    assert (
        run_command(["import", "vendor", str(tmp_path / "v.csv"), "--out", str(vendor), "--model", "sim:perfect"]) == 0
    )
    assert run_command(["card", str(run), str(imported), str(vendor), "--out", str(out)]) == 0
    card = _card(out)
    assert card["provenance"]["origins"] == {"imported:ruler": 80, "run": 12}  # type: ignore[index]
    assert {row["by"] for row in card["reported"]} == {"ruler", "vendor"}  # type: ignore[attr-defined]
    assert card["effective_reasoning"]["low"] == 4096  # type: ignore[index]
    text = (out / "card.md").read_text()
    assert "PARTLY IMPORTED: WITH VENDOR-REPORTED ROWS" in text
    assert "80 of 92 samples were imported (ruler), not run here." in text
    assert "| `RULER` | 128k | 20.0% | 500 | vendor |" in text


def test_a_run_through_the_files_of_lm_eval_and_back_has_the_same_cells(tmp_path: Path) -> None:
    run, files, back = (tmp_path / name for name in ("run", "files", "back"))
    profile = tmp_path / "p.yaml"
    profile.write_text("retrieval: {1k: 0.9, 4k: 0.5}\nreasoning: {1k: 0.7}\n")
    options = [
        "--tasks",
        "niah.single,niah.distractor,ruler.vt",
        "--lengths",
        "1k,2k",
        "--samples",
        "3",
        "--out",
        str(run),
    ]
    assert run_command(["run", "--model", f"sim:{profile}", *options]) == 0
    assert run_command(["export", "lm-eval-results", str(run), str(files)]) == 0
    assert run_command(["export", "lm-eval-results", str(run), str(files)]) == 2  # they are there already
    assert run_command(["import", "lm-eval", str(files), "--out", str(back)]) == 0
    cells = [{(c["task"], c["length"], c["depth"]): c for c in _card(folder)["cells"]} for folder in (run, back)]  # type: ignore[attr-defined]
    assert cells[0] == cells[1]
    assert len(cells[0]) == 46
    assert run_command(["verify", str(back)]) == 0
    assert (_card(back)["simulated"], _card(run)["model"]) == (True, _card(back)["model"])


def test_a_battery_keeps_its_headline_through_the_files_of_lm_eval(tmp_path: Path) -> None:
    run, files, back = (tmp_path / name for name in ("run", "files", "back"))
    profile = tmp_path / "p.yaml"
    profile.write_text("retrieval: {256: 0.97, 1k: 0.9}\nreasoning: {1k: 0.7}\n")
    assert run_command(["run", "quick", "--model", f"sim:{profile}", "--out", str(run)]) == 0
    assert run_command(["export", "lm-eval-results", str(run), str(files)]) == 0
    assert run_command(["import", "lm-eval", str(files), "--out", str(back)]) == 0
    # ruler.vt is the only reasoning task: all of them count, and nothing needs to be named
    assert yaml.safe_load((back / "config.yaml").read_text())["headline"] == {"retrieval": ["niah.single"]}
    for name in ("effective_retrieval", "effective_reasoning", "effective_by_task", "curves"):
        assert _card(back)[name] == _card(run)[name]
