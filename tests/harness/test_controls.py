"""Control arms: same questions without the haystack or in a short context; on the card, in no headline."""

from pathlib import Path
from typing import Any

import pytest

import longreach
from longreach.harness.registry import get_task
from longreach.harness.running.controls import NO_CONTEXT, SHORT_CONTEXT, Control, arms, open_task
from longreach.harness.running.revisit import verify
from longreach.harness.sample import Grid
from longreach.harness.task import task_id
from longreach.harness.tokenizer import WordsTokenizer

K = 1024
BATTERY: dict[str, Any] = {
    "name": "controlled",
    "lengths": [2048, 4096],
    "depths": [0.5],
    "samples": 2,
    "controls": True,
    "tasks": ["niah.single", "ruler.vt"],
}


def _pair(name: str, arm: str, length: int, **params: Any) -> tuple[Any, Any]:
    task = get_task(name, **params)
    control = Control(arm=arm, of=task_id(task))
    grid = Grid(lengths=(length,), depths=(0.5,), n=1)
    tokenizer = WordsTokenizer()
    return (
        task.sample(next(iter(task.points(grid))), tokenizer),
        control.sample(next(control.points(grid)), tokenizer),
    )


@pytest.mark.parametrize("name", ["niah.single", "niah.distractor", "niah.multihop", "ruler.vt", "trace.arith"])
def test_without_context_the_question_stays_and_the_haystack_goes(name: str) -> None:
    whole, cut = _pair(name, NO_CONTEXT, 2 * K)
    start, end = whole.extra["context"]
    text = whole.messages[-1].content
    assert cut.messages[-1].content == text[:start] + text[end:]
    assert cut.target == whole.target
    assert cut.n_tokens < whole.n_tokens
    assert cut.point.task != whole.point.task
    assert not any(needle in cut.messages[-1].content for needle in whole.extra["needles"])


def test_a_short_context_is_the_tasks_own_prompt() -> None:
    whole, short = _pair("niah.single", SHORT_CONTEXT, K)
    assert short.messages == whole.messages


def test_parameters_of_the_task_come_along() -> None:
    control = Control(arm=NO_CONTEXT, of=task_id(get_task("niah.single", kind="code")))
    assert control.base == get_task("niah.single", kind="code")
    assert control.info.family == "control"
    assert open_task("niah.single", arm=control.arm, of=control.of) == control
    assert task_id(control).startswith("niah.single@")


def test_a_short_context_needs_longer_lengths_to_differ_from() -> None:
    task = get_task("niah.single")
    assert [(control.arm, length) for control, length in arms(task, (512, 4 * K))] == [(NO_CONTEXT, 512)]
    assert [length for _, length in arms(task, (8 * K, 4 * K))] == [4 * K, K]


def test_a_run_shows_its_controls_beside_the_scores_and_in_no_headline(tmp_path: Path) -> None:
    run = longreach.run(battery=BATTERY, model="reader:window=64k", tokenizer="words", out=tmp_path / "run")
    assert run.exit_code == 0
    data = run.card.to_dict()
    assert [curve["name"] for curve in data["controls"]] == [
        "niah.single (no context)",
        "niah.single (short context)",
        "ruler.vt (no context)",
        "ruler.vt (short context)",
    ]
    assert [curve["points"][0]["mean"] for curve in data["controls"]] == [0.0, 1.0, 0.0, 1.0]
    assert [curve["tasks"] for curve in data["curves"] if curve["kind"] == "capability"] == [
        ["niah.single"],
        ["ruler.vt"],
    ]
    assert {cell["task"] for cell in data["cells"]} == {"niah.single", "ruler.vt"}
    assert data["effective_retrieval"]["value"] == 4 * K
    text = run.card.to_markdown()
    assert "| `niah.single` | 0% (0% to 66%, n 2) at 2k | 100% (34% to 100%, n 2) at 1k |  |" in text
    assert data["conditions"] == []
    assert "Control arms" in run.card.to_html()
    assert verify(tmp_path / "run") == (16, [])


def test_a_repeat_from_the_runs_own_config_asks_nothing_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    longreach.run(battery=BATTERY, model="sim:perfect", tokenizer="words", out=out)
    before = (out / "records.jsonl").read_bytes()
    again = longreach.run(battery=str(out / "config.yaml"), out=out)
    assert (out / "records.jsonl").read_bytes() == before
    assert len(again.records) == 16


def test_a_simulated_model_does_not_know_what_it_has_not_read(tmp_path: Path) -> None:
    run = longreach.run(battery=BATTERY, model="sim:perfect", tokenizer="words", out=tmp_path / "run")
    assert {record.score for record in run.records if record.task.endswith("(no context)")} == {0.0}
