"""Shards: a plan dealt to several processes, and merged to what one process would have made."""

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml

import longreach
from longreach.harness.cli import run_command
from longreach.harness.errors import BatteryError, RunFolderError
from longreach.harness.running.merge import merge
from longreach.harness.running.shards import parse_shard

TIMING = ("ttft_s", "latency_s")


def run(folder: Path, **options: Any) -> longreach.Run:
    wanted = {"tasks": ["niah.single", "ruler.vt"], "lengths": "1k,2k", "depths": "0,1", "samples": 3}
    return longreach.run(**(wanted | {"model": "sim:cliff@1k"} | options), out=folder)


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open() as file:
        return [{name: value for name, value in row.items() if name not in TIMING} for row in csv.DictReader(file)]


def test_four_shards_merged_are_one_run(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    parts = [run(tmp_path / "a", shard=f"{index}/4") for index in range(1, 5)]
    assert sum(len(part.records) for part in parts) == len(whole.records)
    assert [part.exit_code for part in parts] == [0] * 4
    assert run_command(["merge", str(tmp_path / "a"), "--out", str(tmp_path / "a")]) == 0
    assert rows(tmp_path / "a") == rows(tmp_path / "whole")
    ours, theirs = (yaml.safe_load((tmp_path / name / "config.yaml").read_text()) for name in ("a", "whole"))
    for name in ("planned", "tasks", "lengths", "sampling", "headline"):
        assert ours[name] == theirs[name]
    assert "shard" not in ours
    assert "--shard" not in ours["command"]
    again = run(tmp_path / "a")  # the merged folder is a run like any other
    assert again.exit_code == 0
    assert len(again.records) == len(whole.records)


def test_a_missing_shard_is_named_with_exit_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for index in (1, 3):
        run(tmp_path / "a", shard=f"{index}/3")
    assert run_command(["merge", str(tmp_path / "a"), "--out", str(tmp_path / "b")]) == 3
    assert "shards 2/3 are missing" in capsys.readouterr().err


def test_runs_of_other_settings_do_not_merge(tmp_path: Path) -> None:
    run(tmp_path / "a")
    run(tmp_path / "b", seed=7)
    with pytest.raises(RunFolderError, match="seed: 42 -> 7"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert not (tmp_path / "c" / "config.yaml").exists()


@pytest.mark.parametrize("value", ["0/4", "5/4", "4", "a/b"])
def test_a_shard_is_i_of_n(value: str) -> None:
    with pytest.raises(BatteryError, match="is not of the form i/n"):
        parse_shard(value)
