"""--prove: which prompts are encoded as a whole; records, config.yaml and card say which were not."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import longreach
from longreach.harness.cli import run_command
from longreach.harness.running.revisit import verify
from longreach.harness.sample import Point
from longreach.harness.tokenizer import PROVEN_SHARE


def run(folder: Path, **options: Any) -> longreach.Run:
    wanted = {"tasks": ["niah.single", "ruler.vt"], "lengths": "1k", "depths": "0,1", "samples": 16}
    return longreach.run(**(wanted | options), model="sim:perfect", tokenizer="words", out=folder)


def test_a_run_without_proof_says_so_and_sends_the_same_prompts(tmp_path: Path) -> None:
    proven, bare = run(tmp_path / "a"), run(tmp_path / "b", prove="never")
    hashes = {record.key: record.prompt_sha256 for record in proven.records}
    assert {record.key: record.prompt_sha256 for record in bare.records} == hashes
    assert all(record.extra["proof"] == "none" for record in bare.records)
    assert not any("proof" in record.extra for record in proven.records)
    assert yaml.safe_load((tmp_path / "a" / "config.yaml").read_text())["tokenizer"]["prove"] == "always"
    assert yaml.safe_load((tmp_path / "b" / "config.yaml").read_text())["tokenizer"]["prove"] == "never"
    assert bare.card.to_dict()["provenance"]["tokenizer"]["prove"] == "never"
    assert "no prompt proven" in bare.card.to_markdown()
    assert "proven by an encode" not in proven.card.to_markdown()
    assert verify(tmp_path / "b") == (64, [])


def test_one_prompt_in_sixteen_is_proven_by_the_key_of_its_point(tmp_path: Path) -> None:
    thinned = run(tmp_path / "a", prove="sample")
    for record in thinned.records:
        point = Point(
            task=record.task_id, length=record.length, depth=record.depth, index=record.index, seed=record.seed
        )
        assert ("proof" not in record.extra) == (int(point.key, 16) % PROVEN_SHARE == 0)
    assert 0 < sum("proof" not in record.extra for record in thinned.records) < 20
    assert "one prompt in 16 proven" in thinned.card.to_markdown()


def test_the_config_of_a_run_can_be_given_back(tmp_path: Path) -> None:
    run(tmp_path / "a", samples=1, prove="never")
    again = longreach.run(str(tmp_path / "a" / "config.yaml"), out=tmp_path / "b")
    assert all(record.extra["proof"] == "none" for record in again.records)


@pytest.mark.parametrize("verb", ["run", "plan", "show"])
def test_the_command_line_takes_it(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"show": ["show", "niah.single", "--tokenizer", "words"]}.get(
        verb, [verb, "--tasks", "niah.single", "--lengths", "512", "--samples", "1", "--model", "sim:perfect"]
    )
    where = [] if verb == "show" else ["--out", str(tmp_path / "a")]
    assert run_command([*words, *where, "--prove", "never"]) == 0
    assert ("summed, not proven" in capsys.readouterr().out) == (verb == "show")
    assert run_command([*words, *where, "--prove", "perhaps"]) == 2
    assert "prove" in capsys.readouterr().err


def test_generate_takes_it_too(tmp_path: Path) -> None:
    for prove in ("always", "never"):
        out = tmp_path / f"{prove}.jsonl"
        words = ["generate", "--tasks", "niah.single", "--lengths", "512", "--samples", "2", "--tokenizer", "words"]
        assert run_command([*words, "--out", str(out), "--prove", prove]) == 0
    assert (tmp_path / "always.jsonl").read_text() == (tmp_path / "never.jsonl").read_text()
