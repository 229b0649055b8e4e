"""--cold: a salt before each prompt, counted in its length, never the same twice."""

from pathlib import Path
from typing import Any

import pytest

import longreach
from longreach.harness.errors import RunFolderError
from longreach.harness.registry import open_tokenizer
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import prepare
from longreach.harness.running.revisit import verify
from longreach.harness.running.salt import REFERENCE, fresh_salt, salted


def cold_run(folder: Path, **options: Any) -> longreach.Run:
    wanted = {"tasks": ["niah.single"], "lengths": "512", "depths": "0,1", "samples": 3, "model": "sim:perfect"}
    return longreach.run(**(wanted | options), out=folder)


@pytest.mark.parametrize("spec", ["gguf:smollm2", "words", "bytes"])
def test_salts_differ_and_have_the_tokens_of_the_reference(spec: str) -> None:
    tokenizer = open_tokenizer(spec)
    salts = {fresh_salt(tokenizer) for _ in range(50)}
    assert len(salts) == 50
    assert {tokenizer.count(salt) for salt in salts} == {tokenizer.count(REFERENCE)}


def test_the_salt_is_inside_the_length(tmp_path: Path) -> None:
    wanted = {"tasks": "niah.single", "lengths": "512", "samples": 1, "depths": "0.5", "model": "sim:perfect"}
    case = prepare(Options.of(**wanted, tokenizer="gguf:smollm2", cold=True, out=tmp_path))
    entry = case.plan.tasks["niah.single"]
    sample = entry.task.sample(case.plan.items[0].point, case.tokenizer)
    plain = open_tokenizer("gguf:smollm2")
    messages = salted(sample.messages, fresh_salt(plain))
    sent = plain.count(plain.render(messages, sample.answer_prefix))
    assert sent == sample.n_tokens
    assert 512 - 8 <= sent + entry.task.info.reserve <= 512


def test_a_cold_run_says_so_is_verified_and_mixes_with_no_other(tmp_path: Path) -> None:
    run = cold_run(tmp_path / "a", cold=True)
    assert all(record.extra["cold"] is True for record in run.records)
    n, wrong = verify(tmp_path / "a")
    assert (n, wrong) == (6, [])
    with pytest.raises(RunFolderError, match=r"sampling\.cold"):
        cold_run(tmp_path / "a")


def test_keys_of_other_runs_are_what_they_were(tmp_path: Path) -> None:
    warm, cold = cold_run(tmp_path / "a"), cold_run(tmp_path / "b", cold=True)
    assert not {record.key for record in warm.records} & {record.key for record in cold.records}
    assert "cold" not in (tmp_path / "a" / "config.yaml").read_text()
