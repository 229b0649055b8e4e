"""Logs of Inspect, written by Inspect in this test with its mock model: our own task comes home, an error is no score."""

import importlib.metadata
import shutil
from pathlib import Path

import pytest

from longreach.harness.cli import run_command

pytestmark = pytest.mark.lm_eval


def test_a_log_of_our_task_comes_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai", reason="Inspect is not installed (make test-lm-eval)")
    # Inspect counts with o200k; a copy, since tiktoken deletes what it finds damaged.
    files = importlib.metadata.distribution("llama-index-core").locate_file("llama_index/core/_static/tiktoken_cache")
    shutil.copytree(str(files), tmp_path / "tiktoken")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "tiktoken"))
    from inspect_ai import eval as inspect_eval

    from longreach.adapters.inspect_tasks import niah_single
    from longreach.adapters.results.inspect_logs import read

    task = niah_single(lengths="1k,2k", samples=1, depths="0.5", tokenizer="words")
    (log,) = inspect_eval(task, model="mockllm/model", log_dir=str(tmp_path / "logs"), display="none")
    assert log.status == "success", log.error
    run = read([tmp_path / "logs"])
    assert [(sample.task, sample.length, sample.score) for sample in run.samples] == [
        ("niah.single", 1024, 0.0),
        ("niah.single", 2048, 0.0),
    ]
    assert run.model == "mockllm/model"
    assert all(sample.prompt_sha256 and sample.target and len(sample.placed) == 1 for sample in run.samples)
    assert [0 <= sample.length - (sample.n_tokens or 0) <= 200 for sample in run.samples] == [True, True]
    out = tmp_path / "run"
    assert run_command(["import", "inspect", str(tmp_path / "logs"), "--out", str(out)]) == 0
    assert run_command(["verify", str(out)]) == 0  # its prompts are built again, with the same hashes
