import asyncio
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.errors import ConfigError, ContextOverflow, MissingExtra, ModelError, ModelUnusable
from longreach.harness.model import Model, Response
from longreach.harness.registry import open_model
from longreach.harness.sample import Message

Ask = Callable[..., Response]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None,
    reason="torch and transformers are not installed (pip install 'longreach[hf]')",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama with a byte-level tokenizer whose own rule adds a begin-of-text token."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    path = tmp_path_factory.mktemp("tiny")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(["<s>", "</s>", *alphabet])}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(path)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=258, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(path)
    return path


def test_missing_libraries_are_answered_with_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"torch and transformers; run: pip install 'longreach\[hf\]'"):
        open_model("hf:some/model")


@needs_torch
def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(ConfigError, match="'int3' is none of auto, float32"):
        open_model("hf:some/model", dtype="int3")


@needs_torch
def test_a_model_that_is_not_there_is_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model: Any = open_model(f"hf:{tmp_path}")
    with pytest.raises(ModelUnusable, match="name a folder"):
        asyncio.run(model.probe())


@needs_torch
def test_a_tiny_model_answers_with_counts_times_and_one_begin_token(folder: Path, ask: Ask) -> None:
    model = open_model(f"hf:{folder}", dtype="float32")
    assert isinstance(model, Model)
    assert model.window == 256
    response = ask(model, "What?", max_new_tokens=8)
    assert response.n_prompt_tokens == len("[user] What? [assistant]") + 1
    assert response.raw["first_ids"].count(0) == 1
    assert response.n_output_tokens == 8 or response.finish == "stop"
    assert response.ttft_s is not None and response.latency_s is not None
    assert 0 < response.ttft_s <= response.latency_s
    assert model.tokenizer is not None
    rendered = model.tokenizer.render((Message(role="user", content="What?"),))
    assert model.tokenizer.count(rendered) == response.n_prompt_tokens
    again = ask(model, "What?", max_new_tokens=8)
    assert again.text == response.text


@needs_torch
def test_a_prompt_beyond_the_window_overflows(folder: Path, ask: Ask) -> None:
    model = open_model(f"hf:{folder}", dtype="float32")
    with pytest.raises(ContextOverflow, match="window of 256"):
        ask(model, "x" * 240)
    assert ask(open_model(f"hf:{folder}", n_ctx="1k"), "x" * 240).n_prompt_tokens is not None


@needs_torch
def test_sampling_is_seeded_and_leaves_the_global_generator_alone(folder: Path, ask: Ask) -> None:
    import torch

    model = open_model(f"hf:{folder}", dtype="float32")
    before = torch.get_rng_state()
    texts = [ask(model, temperature=1.0, seed=seed).text for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert torch.equal(before, torch.get_rng_state())


@needs_torch
def test_running_out_of_memory_is_a_clear_failure(folder: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    def no_memory(*_: Any, **__: Any) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    monkeypatch.setattr(transformers.LlamaForCausalLM, "generate", no_memory)
    with pytest.raises(ModelError, match="out of memory with 25 prompt tokens") as caught:
        ask(open_model(f"hf:{folder}", dtype="float32"))
    assert not caught.value.transient


@needs_torch
def test_facts_tell_window_rope_and_versions(folder: Path) -> None:
    model: Any = open_model(f"hf:{folder}", dtype="float32")
    asyncio.run(model.probe())
    facts = model.facts
    assert (facts["architecture"], facts["native_window"], facts["dtype"]) == ("llama", 256, "float32")
    assert facts["device"] == "cpu"
    assert "rope" in facts


@needs_torch
def test_a_scaled_window_is_told_from_the_native_one(folder: Path, tmp_path: Path) -> None:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder)
    config.rope_parameters = {
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 256
    }  # fmt: skip
    config.save_pretrained(tmp_path)
    model = open_model(f"hf:{tmp_path}")
    assert model.window == 1024
    assert (model.facts["native_window"], model.facts["rope"]["rope_type"]) == (256, "yarn")
