"""Recipes, points and docs as other harnesses get them, and the folder for lm-eval; needs neither of them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import longreach
from longreach.adapters import bridge
from longreach.adapters.lm_eval_folder import write
from longreach.harness.cli import run_command
from longreach.harness.errors import ConfigError, InfeasibleCell, UnknownName
from longreach.harness.registry import get_task, open_tokenizer
from longreach.harness.sample import Message, Sample

WORDS = open_tokenizer("words")


def recipe(task: str = "niah.single", **given: Any) -> bridge.Recipe:
    return bridge.changed(bridge.Recipe(task=task, label=task), given, "a test")


def test_the_first_docs_are_spread_over_lengths_and_a_smaller_number_is_a_part() -> None:
    small = recipe(lengths="512,1k", depths=[0, 1], samples=1)
    points, left = bridge.points(small, small.open(), WORDS)
    assert [point.length for point in points] == [512, 1024, 512, 1024]
    assert [point.depth for point in points] == [0.0, 0.0, 1.0, 1.0]
    assert left == []
    large = recipe(lengths="512,1k", depths=[0, 1], samples=3)
    assert {point.key for point in points} < {point.key for point in bridge.points(large, large.open(), WORDS)[0]}


def test_samples_may_differ_by_length() -> None:
    uneven = recipe(lengths=[512, 1024, 2048], depths=0.5, samples={512: 3, 2048: 1})
    lengths = [point.length for point in bridge.points(uneven, uneven.open(), WORDS)[0]]
    assert {length: lengths.count(length) for length in lengths} == {512: 3, 1024: 3, 2048: 1}


def test_prompts_are_those_of_our_own_runner(tmp_path: Path) -> None:
    longreach.run(battery="quick", samples=2, model="sim:perfect", tokenizer="words", out=str(tmp_path / "run"))
    records = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    ours = {
        tuple(item[name] for name in ("task", "length", "depth", "index")): item["prompt_sha256"] for item in records
    }
    words = ["export", "lm-eval", str(tmp_path / "dir"), "quick", "--samples", "2"]
    assert run_command(words) == 0
    theirs = {}
    for path in (tmp_path / "dir").glob("longreach_quick_*.yaml"):
        made = bridge.recipe_of(_load(path)["longreach"], path.name)
        task = made.open()
        for point in bridge.points(made, task, WORDS)[0]:
            doc = bridge.doc_of(point, made, task, WORDS)
            bridge.build(doc, task, WORDS)
            theirs[doc["label"], doc["length"], doc["depth"], doc["index"]] = doc["prompt_sha256"]
            assert doc["is_beside"] == (doc["label"] == "niah.distractor")  # as the battery's headline says
    assert len(theirs) == len(ours) > 10
    assert theirs == ours


def test_a_length_that_was_asked_for_and_cannot_be_built_is_an_error_else_left_out() -> None:
    asked = recipe("ruler.vt", lengths=[64, 1024], samples=1)
    with pytest.raises(InfeasibleCell):
        bridge.points(asked, asked.open(), WORDS)
    plain = bridge.Recipe(task="ruler.vt", label="ruler.vt", lengths=(64, 1024, 4096), samples={1: 1})
    points, left = bridge.points(plain, plain.open(), WORDS, window=2048)
    assert {point.length for point in points} == {1024}
    assert "4,096 are above the window of 2,048" in left[0]
    assert "length 64 is left out" in left[1]


def test_a_window_below_every_length_leaves_nothing_to_ask() -> None:
    plain = bridge.Recipe(task="niah.single", label="niah.single")
    with pytest.raises(ConfigError, match="nothing to ask"):
        bridge.points(plain, plain.open(), WORDS, window=100)


@pytest.mark.parametrize("lengths", ["4k,8k", ["4k", 8192], [4096, 8192], "[4096,8192]", ("8k", "4k")])
def test_lengths_are_read_as_people_write_them(lengths: Any) -> None:
    assert recipe(lengths=lengths).lengths == (4096, 8192)
    assert recipe(max_seq_lengths=lengths).lengths == (4096, 8192)


@pytest.mark.parametrize(
    "given", [{"lengths": "far"}, {"lengths": []}, {"depths": 2}, {"samples": 0}, {"samples": "many"}, {"seed": -1}]
)
def test_a_value_that_makes_no_sense_is_named(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"a test.*{next(iter(given))}|a test: an empty"):
        recipe(**given)


def test_an_unknown_task_or_parameter_is_named() -> None:
    with pytest.raises(UnknownName, match="did you mean 'niah.single'"):
        recipe("niah.singel").open()
    with pytest.raises(UnknownName, match="no parameter 'colour'"):
        bridge.Recipe(task="niah.single", label="x", params={"colour": 1}).open()


def test_a_recipe_comes_back_from_its_data() -> None:
    made = recipe(lengths="1k", depths=[0, 0.5], samples={512: 2}, seed=7, tokenizer="words", reasoning_budget=100)
    data = yaml.safe_load(yaml.safe_dump(bridge.recipe_data(made)))
    assert bridge.recipe_of(data, "here") == made


def _sample() -> tuple[Any, Sample]:
    task = get_task("niah.single")
    made = recipe(lengths=512, samples=1)
    return task, task.sample(bridge.points(made, task, WORDS)[0][0], WORDS)


def test_reasoning_is_taken_off_before_scoring_and_nothing_left_is_no_answer() -> None:
    task, sample = _sample()
    right = sample.target[0]
    assert bridge.grade(task, sample, f"<think>it is 1</think>{right}").score.value == 1.0
    inside = bridge.grade(task, sample, f"<think>it is {right}")
    assert (inside.outcome, inside.score.value) == ("no_answer", 0.0)
    assert bridge.grade(task, sample, " \n").outcome == "no_answer"
    assert bridge.grade(task, sample, "1").outcome == "scored"


def test_a_protocol_of_two_calls_is_refused() -> None:
    class Twice:
        info = get_task("niah.single").info

        def sample(self, point: Any, tokenizer: Any) -> Sample:
            return _sample()[1]

        def follow_up(self, sample: Sample, first: str) -> Any:
            return Message(role="user", content="and now?")

        def points(self, grid: Any) -> Any: ...

        def score(self, sample: Any, response: Any) -> Any: ...

    made = recipe(lengths=512, samples=1)
    point = bridge.points(made, made.open(), WORDS)[0][0]
    doc = bridge.doc_of(point, made, made.open(), WORDS)
    with pytest.raises(ConfigError, match="asks twice"):
        bridge.build(doc, Twice(), WORDS)


class _Loader(yaml.SafeLoader):
    """YAML with lm-eval's tag."""


_Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=_Loader)


def test_the_folder_holds_a_group_per_battery_and_every_task_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert run_command(["export", "lm-eval", str(tmp_path / "dir")]) == 0
    told = capsys.readouterr()
    group = _load(tmp_path / "dir" / "longreach_quick.yaml")
    assert group["task"] == [
        "longreach_quick_niah_single",
        "longreach_quick_niah_distractor",
        "longreach_quick_ruler_vt",
    ]
    shown = {item["metric"]: item["weight_by_size"] for item in group["aggregate_metric_list"]}
    assert shown["score"] is False
    assert {"score@256", "score@4096", "score@131072"} < set(shown)
    single = _load(tmp_path / "dir" / "longreach_niah_single.yaml")
    assert single["class"] == "longreach.adapters.lm_eval_class.LongreachTask"
    assert single["longreach"]["task"] == "niah.single"
    assert "longreach_niah_single" in told.out.splitlines()
    assert "longbench_v2: its data is not shipped" in told.err
    assert run_command(["export", "lm-eval", str(tmp_path / "dir"), "quick"]) == 0
    assert len(list((tmp_path / "dir").iterdir())) == 4


def test_yaml_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "longreach_mine.yaml").write_text("task: mine\n")
    assert run_command(["export", "lm-eval", str(tmp_path), "quick"]) == 2
    assert (tmp_path / "longreach_mine.yaml").read_text() == "task: mine\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_two_labels_of_one_name_are_refused(tmp_path: Path) -> None:
    tasks = [{"task": "niah.single", "label": "a.b"}, {"task": "niah.single", "label": "a-b"}]
    with pytest.raises(ConfigError, match="two tasks would be named 'longreach_x_a_b'"):
        write(tmp_path, [{"name": "x", "tasks": tasks}])
