"""A program that truly reads the prompt (no answer key) and solves every synthetic task: reader:window=8k.

It sees only the last `window` tokens of the prompt, so that its effective length is known by construction; it reports
the tokens of the whole prompt and declares no window, as a server that silently forgets would.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from longreach.adapters.options import read_length, read_tokenizer
from longreach.harness.errors import ConfigError, ModelError
from longreach.harness.model import Price, Request, Response
from longreach.harness.registry import tasks
from longreach.harness.sample import Message
from longreach.harness.task import Solvable
from longreach.harness.tokenizer import Tokenizer, WordsTokenizer

NOTHING_FOUND = "The text does not say."
"""What it answers when it finds nothing: an answer, and a wrong one, not a silence."""
_COUNTER = WordsTokenizer()


class Reader:
    """A program, not a language model: it matches the templates of the registered tasks."""

    concurrency = 4
    simulated = False
    window: int | None = None
    price = Price(input=0.0, cached=0.0, output=0.0)

    def __init__(self, name: str, sees: int, tokenizer: Tokenizer) -> None:
        self._name = name
        self._sees = sees
        self._tokenizer = tokenizer

    @property
    def name(self) -> str:
        return self._name

    @property
    def tokenizer(self) -> Tokenizer | None:
        return self._tokenizer

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"kind": "program", "note": "a program, not a language model", "sees_last_tokens": self._sees}

    async def generate(self, request: Request) -> Response:
        return await asyncio.to_thread(self._read, request)

    async def close(self) -> None:
        """Nothing is held."""

    def _read(self, request: Request) -> Response:
        started = time.perf_counter()
        prompt = self._tokenizer.render(request.messages, request.answer_prefix)
        starts, _ = self._tokenizer.spans(prompt)
        n_prompt = len(starts)
        messages = request.messages
        if n_prompt > self._sees:
            messages = last_part(messages, prompt, int(starts[n_prompt - self._sees]))
        text = solve(messages)
        latency_s = time.perf_counter() - started
        return Response(
            text=text,
            n_prompt_tokens=n_prompt,
            n_output_tokens=_COUNTER.count(text),
            n_reasoning_tokens=0,
            ttft_s=latency_s,
            ttft_answer_s=latency_s if text else None,
            latency_s=latency_s,
        )


def last_part(messages: tuple[Message, ...], prompt: str, cut: int) -> tuple[Message, ...]:
    """What is left of `messages` when the first `cut` characters of their rendered `prompt` are forgotten."""
    kept: list[Message] = []
    position = 0
    for message in messages:
        content = message.content
        start = prompt.find(content, position)
        if start < 0:  # a template may trim what it is given
            content = content.strip()
            start = max(prompt.find(content, position), position)
        position = start + len(content)
        if position > cut:
            kept.append(Message(role=message.role, content=content[max(0, cut - start) :]))
    return tuple(kept)


def solve(messages: tuple[Message, ...]) -> str:
    """The answer of the registered task whose question this is; NOTHING_FOUND if none knows it or finds it.

    Tasks that ask in the same words may all answer, if it is the same answer.

    Raises:
        ModelError: two tasks answer differently, so that one of them takes the other's question for its own.
    """
    answers = {}
    for name, task in tasks().items():
        answer = task.solve(messages) if isinstance(task, Solvable) else None
        if answer is not None:
            answers[name] = answer
    if len(set(answers.values())) > 1:
        raise ModelError(
            f"tasks {' and '.join(answers)} both answer the same prompt; one of their `solve` is too eager"
        )
    return next(iter(answers.values()), "") or NOTHING_FOUND


def open_model(rest: str, *, window: int | str | None = None, tokenizer: Tokenizer | str | None = None) -> Reader:
    """`window=LENGTH`, or nothing and the option `window`.

    Args:
        window: tokens, counted from the end of the prompt, that the reader sees.
        tokenizer: counts them; `words` if it is not given.

    Raises:
        ConfigError: no window, or not a length.
    """
    key, _, value = rest.partition("=")
    if rest and key != "window":
        raise ConfigError(f"model 'reader:{rest}': the one option is the window, as in reader:window=8k")
    if not value and window is None:
        raise ConfigError("model 'reader:': say how many tokens it sees, as in reader:window=8k")
    sees = read_length(value or window, f"model 'reader:{rest}'")
    return Reader(f"reader:window={value or window}", sees, read_tokenizer(tokenizer) or WordsTokenizer())
