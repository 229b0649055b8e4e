"""Our tasks in Inspect: found by the entry point, scores grouped by length. Runs where inspect_ai is installed."""

import os
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.registry import get_task, open_tokenizer
from longreach.harness.sample import Point

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (pip install 'longreach[inspect]')")
pytestmark = pytest.mark.lm_eval


@pytest.fixture(autouse=True)
def _counts_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """mockllm counts by tiktoken, whose file has to be downloaded; characters do here."""
    from inspect_ai.model import ModelAPI

    async def count(self: Any, *_: Any, **__: Any) -> int:
        return 1

    for name in ("count_tokens", "count_text_tokens"):
        if hasattr(ModelAPI, name):
            monkeypatch.setattr(ModelAPI, name, count)


def evaluate(folder: Path, answers: list[str], **args: Any) -> Any:
    from inspect_ai import eval
    from inspect_ai.model import ModelOutput, get_model

    outputs = [ModelOutput.from_content("mockllm/model", answer) for answer in answers]
    model = get_model("mockllm/model", custom_outputs=outputs)
    os.environ["INSPECT_DISPLAY"] = "none"
    (log,) = eval(
        "longreach/niah_single",
        model=model,
        task_args={"tokenizer": "words", **args},
        log_dir=str(folder),
        max_samples=1,
        max_connections=1,
    )
    return log


def _sample(length: int, depth: float) -> Any:
    task = get_task("niah.single")
    point = Point(task=f"niah.single@{task.info.version}", length=length, depth=depth, index=0, seed=42)
    return task.sample(point, open_tokenizer("words"))


def test_a_task_runs_by_its_name_with_scores_grouped_by_length(tmp_path: Path) -> None:
    right = _sample(512, 0.5).target[0]
    log = evaluate(tmp_path, [f"It is {right}.", "I see none."], lengths="512,1k", depths=0.5, samples=1)
    assert log.status == "success"
    metrics = {name: metric.value for score in log.results.scores for name, metric in score.metrics.items()}
    assert (metrics["512"], metrics["1024"], metrics["mean"]) == (1.0, 0.0, 0.5)


def test_prompts_and_hashes_are_those_of_our_own_runner(tmp_path: Path) -> None:
    log = evaluate(tmp_path, ["a"], lengths=512, depths=0.5, samples=1)
    (sample,) = log.samples
    ours = _sample(512, 0.5)
    assert [message.text for message in sample.messages[:-1]] == [message.content for message in ours.messages]
    assert sample.metadata["prompt_sha256"] == ours.prompt_sha256
    assert log.eval.model_generate_config.max_tokens or log.plan.config.max_tokens == 48


def test_an_answer_of_reasoning_alone_is_no_answer(tmp_path: Path) -> None:
    log = evaluate(tmp_path, ["<think>it may be"], lengths=512, depths=0.5, samples=1)
    (score,) = log.samples[0].scores.values()
    assert (score.value, score.metadata["outcome"]) == (0.0, "no_answer")
