"""Backends of lm-eval as models (`make test-lm-eval`): the window, one request a call, failures, log-likelihoods."""

import asyncio
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.errors import (
    ConfigError,
    ContextOverflow,
    MissingExtra,
    ModelError,
    ModelUnusable,
)
from longreach.harness.model import Model, Response
from longreach.harness.registry import open_model

os.environ.setdefault("HF_HUB_OFFLINE", "1")
Ask = Callable[..., Response]
pytestmark = pytest.mark.lm_eval
needs_lm_eval = pytest.mark.skipif(
    importlib.util.find_spec("lm_eval") is None, reason="lm-eval is not installed (make test-lm-eval has it)"
)
needs_torch = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("lm_eval", "torch", "transformers")),
    reason="lm-eval, torch and transformers are not all installed",
)


def test_a_missing_library_is_answered_with_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"needs lm-eval 0\.4\.13 or newer; run: pip install 'longreach\[lm-eval\]'"):
        open_model("lm-eval:hf")


@needs_lm_eval
def test_an_unknown_backend_or_option_is_named(ask: Ask) -> None:
    with pytest.raises(ConfigError, match="lm-eval has no model 'hff'"):
        ask(open_model("lm-eval:hff"))
    with pytest.raises(ConfigError, match="'rank' is neither generate nor loglikelihood"):
        open_model("lm-eval:hf", choices="rank")
    with pytest.raises(ConfigError, match="name a backend"):
        open_model("lm-eval:")


@needs_lm_eval
@pytest.mark.parametrize(
    ("backend", "mend"),
    [("hf", r"run: pip install 'lm-eval\[hf\]'"), ("hf-auto", r"lm-eval\[hf\]"), ("mamba_ssm", "own page")],
)
def test_a_backend_without_its_library_names_what_installs_it(
    backend: str, mend: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr("lm_eval.api.registry.get_model", fail)
    with pytest.raises(MissingExtra, match=rf"'lm-eval:{backend}' needs a library.*'torch'.*{mend}"):
        ask(open_model(f"lm-eval:{backend}"))


@pytest.fixture
def connect(server: Any) -> Callable[..., Model]:
    """A backend of lm-eval at the fault server."""

    def make(backend: str = "local-chat-completions", **options: Any) -> Model:
        return open_model(f"lm-eval:{backend}:m", base_url=server.url, **options)

    return make


def _reply(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "text": text}]}


@needs_lm_eval
def test_a_chat_backend_sends_turns_and_says_that_nothing_was_counted(
    connect: Callable[..., Model], server: Any, ask: Ask
) -> None:
    server.reply(200, _reply("<think>hm</think>7301"))
    model = connect()
    answer = ask(model, "What is it?", max_new_tokens=9)
    assert model.name == "lm-eval:local-chat-completions:m"
    assert (answer.text, answer.reasoning, answer.finish, answer.n_prompt_tokens) == ("7301", "hm", None, None)
    (sent,) = server.requests
    assert sent["messages"] == [{"role": "user", "content": "What is it?"}]
    assert (sent["max_tokens"], sent["temperature"]) == (9, 0)
    assert answer.raw["usage"] == "not available"


@needs_lm_eval
def test_one_request_that_fails_is_one_failure(connect: Callable[..., Model], server: Any, ask: Ask) -> None:
    model = connect()
    server.reply(500, {"error": {"message": "out of luck"}})
    server.reply(400, {"error": {"message": "This model's maximum context length is 512 tokens."}})
    server.reply(200, _reply("fine"))
    with pytest.raises(ModelError, match="out of luck") as failed:
        ask(model)
    assert failed.value.transient
    with pytest.raises(ContextOverflow):
        ask(model)
    assert ask(model).text == "fine"
    assert len(server.requests) == 3


@needs_lm_eval
def test_a_server_that_is_not_there_is_worth_another_try(ask: Ask) -> None:
    model = open_model("lm-eval:local-chat-completions:m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelError) as failed:
        ask(model)
    assert failed.value.transient


@needs_lm_eval
def test_a_longer_prompt_than_the_window_is_not_sent(connect: Callable[..., Model], server: Any, ask: Ask) -> None:
    with pytest.raises(ContextOverflow, match="exceed the window of 1,024; lm-eval would cut the prompt"):
        ask(connect(max_length="1k"), n_tokens=1000, max_new_tokens=25)
    assert server.requests == []


@needs_lm_eval
def test_a_backend_that_would_cut_needs_to_be_told_its_window(connect: Callable[..., Model], ask: Ask) -> None:
    with pytest.raises(ConfigError, match=r"cuts prompts above 2,048 tokens unless .*max_length=N"):
        ask(connect("local-completions", tokenizer_backend="huggingface"))


TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama with a byte-level tokenizer."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    path = tmp_path_factory.mktemp("tiny")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(["<s>", "</s>", *alphabet])}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(path)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=258, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=1024, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(path)
    return path


@needs_torch
def test_hf_by_lm_eval_answers_as_our_own_hf_does(folder: Path, ask: Ask) -> None:
    theirs = open_model(f"lm-eval:hf:{folder}", dtype="float32", device="cpu")
    ours = open_model(f"hf:{folder}", dtype="float32", device="cpu")
    _answer_alike(theirs, ours, ask)


@needs_torch
def test_hf_by_lm_eval_runs_on_the_cpu_where_there_is_no_gpu(
    folder: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    theirs = open_model(f"lm-eval:hf:{folder}", dtype="float32")
    _answer_alike(theirs, open_model(f"hf:{folder}", dtype="float32"), ask)


def _answer_alike(theirs: Model, ours: Model, ask: Ask) -> None:
    for text in ("What?", "A much longer question than that one is, is it not?"):
        assert ask(theirs, text, max_new_tokens=12).text == ask(ours, text, max_new_tokens=12).text
    assert theirs.tokenizer is not None and ours.tokenizer is not None
    assert theirs.tokenizer.name == ours.tokenizer.name
    assert theirs.window == ours.window == 1024


@needs_torch
def test_the_window_of_a_loaded_model_is_kept(folder: Path, ask: Ask) -> None:
    model = open_model(f"lm-eval:hf:{folder}", dtype="float32", device="cpu")
    n = len("[user]  [assistant]") + 1
    ask(model, "x" * (1024 - n - 8), max_new_tokens=8)
    with pytest.raises(ContextOverflow, match="1,017 prompt tokens and 8 for the answer exceed the window of 1,024"):
        ask(model, "x" * (1024 - n - 8 + 1), max_new_tokens=8)


@needs_torch
def test_closed_questions_can_be_answered_by_log_likelihood(folder: Path, ask: Ask) -> None:
    options = ("The correct answer is (A)", "The correct answer is (B)", "The correct answer is (C)")
    model = open_model(f"lm-eval:hf:{folder}", dtype="float32", device="cpu", choices="loglikelihood")
    answer = ask(model, "Which?", options=options)
    values = answer.raw["loglikelihoods"]
    assert len(values) == 3
    assert all(value < 0 for value in values)
    assert answer.text == options[values.index(max(values))]
    assert values == pytest.approx([_loglikelihood(folder, "Which?", option) for option in options], abs=1e-3)
    plain = ask(model, "Which?", max_new_tokens=4)
    assert "loglikelihoods" not in plain.raw


def _loglikelihood(folder: Path, question: str, option: str) -> float:
    """By transformers itself, one token after another."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    prompt = tokenizer(f"<s>[user] {question} [assistant]", add_special_tokens=False)["input_ids"]
    ids = prompt + tokenizer(f" {option}", add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        logits = torch.log_softmax(model(torch.tensor([ids])).logits[0], dim=-1)
    return sum(float(logits[at - 1, ids[at]]) for at in range(len(prompt), len(ids)))


@needs_torch
def test_a_model_that_is_not_there_is_unusable(tmp_path: Path) -> None:
    model: Any = open_model("lm-eval:hf", pretrained=str(tmp_path), device="cpu")
    with pytest.raises(ModelUnusable, match="cannot be loaded by lm-eval"):
        asyncio.run(model.probe())
