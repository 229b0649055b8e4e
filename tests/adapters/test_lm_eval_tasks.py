"""Our tasks inside lm-eval (`make test-lm-eval`): prompts, metrics by length, the stop before a prompt is cut."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
lm_eval = pytest.importorskip("lm_eval", reason="lm-eval is not installed (make test-lm-eval has it)")

from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from longreach.adapters.lm_eval_tasks import tasks
from longreach.harness.cli import run_command
from longreach.harness.errors import ConfigError, InfeasibleCell, UnknownName
from longreach.harness.registry import get_task, open_tokenizer
from longreach.harness.sample import Grid, Message, Point

pytestmark = pytest.mark.lm_eval
SMALL: dict[str, Any] = {"lengths": "512,1k", "depths": [0, 1], "samples": 1, "tokenizer": "words"}


class Reader(LM):
    """Solves what it reads, up to a number of characters; keeps what it was sent."""

    tokenizer_name = "none"

    def __init__(self, *, up_to: int = 10**9, max_length: int | None = None) -> None:
        super().__init__()
        self._up_to = up_to
        self.sent: list[tuple[Any, dict[str, Any]]] = []
        if max_length is not None:
            self.max_length = max_length

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        answers = []
        for request in requests:
            text, options = request.args
            self.sent.append((text, options))
            turns = json.loads(text)["turns"] if text.startswith('{"turns"') else [{"role": "user", "content": text}]
            messages = tuple(Message(**turn) for turn in turns if turn["role"] == "user")
            found = get_task("niah.single").solve(messages) or get_task("ruler.vt").solve(messages)
            answers.append(found if found and len(text) < self._up_to else "I see none.")
        return answers

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return json.dumps({"turns": chat_history})

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        raise NotImplementedError


def evaluate(model: LM, found: list[Any], **options: Any) -> dict[str, Any]:
    manager = options.pop("task_manager", None) or TaskManager(include_defaults=False)
    plain: dict[str, Any] = {"bootstrap_iters": 10, **options}
    results: dict[str, Any] = lm_eval.simple_evaluate(model=model, tasks=found, task_manager=manager, **plain)
    return results


def test_each_length_has_its_score_and_standard_error() -> None:
    results = evaluate(Reader(up_to=3500), tasks("niah.single", **SMALL))["results"]["longreach_niah_single"]
    assert (results["score@512,none"], results["score@1024,none"]) == (1.0, 0.0)
    assert results["score,none"] == 0.5
    assert results["score_stderr,none"] == pytest.approx((0.25 / 3) ** 0.5)
    assert results["score@512_stderr,none"] == 0.0


def test_prompts_and_hashes_are_those_of_our_own_runner() -> None:
    model = Reader()
    results = evaluate(model, tasks("niah.single", "ruler.vt", **(SMALL | {"lengths": "1k"})))
    ours = {}
    for name in ("niah.single", "ruler.vt"):
        task = get_task(name)
        for depth in (0.0, 1.0) if task.info.has_depth else (None, None):
            index = 0 if depth is not None else len([key for key in ours if key[0] == name])
            point = Point(task=f"{name}@{task.info.version}", length=1024, depth=depth, index=index, seed=42)
            sample = task.sample(point, open_tokenizer("words"))
            ours[name, depth, index] = (sample.messages[-1].content, sample.prompt_sha256)
    logged = [line["doc"] for lines in results["samples"].values() for line in lines]
    assert {(doc["label"], doc["depth"], doc["index"]): doc["prompt_sha256"] for doc in logged} == {
        key: digest for key, (_, digest) in ours.items()
    }
    assert {text for text, _ in model.sent} == {text for text, _ in ours.values()}


def test_the_answer_budget_goes_along_and_no_stop_is_made_up() -> None:
    model = Reader()
    evaluate(model, tasks("niah.single", **SMALL, reasoning_budget=100))
    reserve = get_task("niah.single").info.reserve
    assert {json.dumps(options, sort_keys=True) for _, options in model.sent} == {
        json.dumps({"until": [], "max_gen_toks": reserve + 100, "do_sample": False, "temperature": 0.0}, sort_keys=True)
    }


def test_a_limit_is_spread_over_the_lengths() -> None:
    results = evaluate(Reader(), tasks("niah.single", **(SMALL | {"lengths": "256,512,1k", "samples": 5})), limit=3)
    docs = [line["doc"] for line in results["samples"]["longreach_niah_single"]]
    assert [doc["length"] for doc in docs] == [256, 512, 1024]
    assert results["n-samples"]["longreach_niah_single"] == {"original": 30, "effective": 3}


def test_a_chat_model_gets_turns_with_the_system_prompt_counted() -> None:
    model = Reader()
    results = evaluate(
        model, tasks("niah.single", **SMALL), apply_chat_template=True, system_instruction="You are a careful reader."
    )
    turns = json.loads(model.sent[0][0])["turns"]
    assert [turn["role"] for turn in turns] == ["system", "user"]
    assert results["results"]["longreach_niah_single"]["score,none"] == 1.0
    for line in results["samples"]["longreach_niah_single"]:
        doc = line["doc"]
        assert 0 <= doc["length"] - doc["reserve"] - doc["n_tokens"] <= 8


def test_the_log_holds_the_recipe_and_not_the_prompt_unless_asked() -> None:
    (line, *_) = evaluate(Reader(), tasks("niah.single", **SMALL))["samples"]["longreach_niah_single"]
    assert line["doc"]["prompt_sha256"] in line["arguments"][0][0]
    assert len(json.dumps(line)) < 3000
    assert line["doc"]["outcome"] == "scored"
    assert line["target"] == line["doc"]["target"]
    model = Reader()
    (line, *_) = evaluate(model, tasks("niah.single", **SMALL, log_prompts=True))["samples"]["longreach_niah_single"]
    assert line["arguments"][0][0] == model.sent[0][0]


@pytest.mark.parametrize("args", [{"max_length": 800}, {"base_url": "http://127.0.0.1:1/v1/completions"}])
def test_a_prompt_that_the_backend_would_cut_stops_the_run_before_anything_is_sent(args: dict[str, Any]) -> None:
    model = Reader()
    found = tasks("niah.single", **(SMALL | {"lengths": "512,3k", "tokenizer": "bytes"}), model_args=args)
    with pytest.raises(ConfigError, match=r"would cut the prompt from the left.*max_length=N"):
        evaluate(model, found)
    assert model.sent == []


def test_a_chat_backend_is_asked_for_its_own_window() -> None:
    model = Reader(max_length=800)
    with pytest.raises(ConfigError, match="takes 800 and would cut"):
        evaluate(
            model, tasks("niah.single", **(SMALL | {"tokenizer": "bytes", "lengths": "1k"})), apply_chat_template=True
        )
    assert model.sent == []


def test_lengths_of_a_battery_above_the_window_are_left_out() -> None:
    found = tasks("niah.single", depths=0.5, samples=1, tokenizer="bytes", model_args={"max_length": 9000})
    docs = [line["doc"]["length"] for line in evaluate(Reader(), found)["samples"]["longreach_niah_single"]]
    assert docs == [4096, 8192]


def test_a_length_that_was_asked_for_and_cannot_be_built_stops_the_run() -> None:
    with pytest.raises(InfeasibleCell):
        evaluate(Reader(), tasks("ruler.vt", **(SMALL | {"lengths": "64"})))


def test_the_start_of_an_answer_stands_at_the_end_of_the_prompt() -> None:
    model = Reader()
    evaluate(model, tasks("ruler.vt", **(SMALL | {"lengths": "1k"}), params={"ruler.vt": {"prefill": True}}))
    task, words = get_task("ruler.vt", prefill=True), open_tokenizer("words")
    ours = [task.sample(point, words) for point in task.points(Grid(lengths=(1024,), depths=(0.0, 1.0), n=1))]
    assert all(sample.answer_prefix.strip() for sample in ours)
    assert [text for text, _ in model.sent] == [sample.messages[0].content + sample.answer_prefix for sample in ours]


def test_a_turn_that_the_server_must_go_on_from_is_only_sent_if_the_user_says_so() -> None:
    class Turns(Reader):
        def apply_chat_template(self, chat_history: Any, add_generation_prompt: bool = True) -> Any:
            return tuple((turn["role"], turn["content"]) for turn in chat_history)

    given: dict[str, Any] = SMALL | {"lengths": "1k", "params": {"ruler.vt": {"prefill": True}}}
    with pytest.raises(ConfigError, match="prefill=true"):
        evaluate(Turns(), tasks("ruler.vt", **given), apply_chat_template=True)


def test_the_exported_folder_runs_with_lengths_and_tokenizer_of_the_command_line(tmp_path: Path) -> None:
    assert run_command(["export", "lm-eval", str(tmp_path / "dir"), "quick"]) == 0
    manager = TaskManager(
        include_path=str(tmp_path / "dir"),
        include_defaults=False,
        metadata={"tokenizer": "words", "max_seq_lengths": [1024, "2k"], "samples": 1, "depths": [0.5, 1]},
    )
    results = evaluate(Reader(up_to=6000), ["longreach_quick"], task_manager=manager)
    group = results["results"]["longreach_quick"]
    single = results["results"]["longreach_quick_niah_single"]
    assert (single["score@1024,none"], single["score@2048,none"]) == (1.0, 0.0)
    means = [results["results"][name]["score@1024,none"] for name in results["group_subtasks"]["longreach_quick"]]
    assert group["score@1024,none"] == pytest.approx(sum(means) / 3)
    config = results["configs"]["longreach_quick_niah_single"]["metadata"]
    assert config["tokenizer"] == "words"
    assert config["longreach"]["lengths"] == [1024, 2048]


def test_secrets_of_the_model_arguments_stay_out_of_the_results() -> None:
    found = tasks("niah.single", **SMALL, model_args={"auth_token": "hush-hush", "header": {"key": "hush-hush"}})
    assert "hush-hush" not in json.dumps(evaluate(Reader(), found)["configs"])


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(UnknownName, match=r"did you mean 'niah\.single'"):
        tasks("niah.singel")
    with pytest.raises(ConfigError, match="name at least one task"):
        tasks()
