"""The openai model on the fault server, and one answer of a model."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from longreach.harness.model import Model, Request, Response
from longreach.harness.registry import open_model
from longreach.harness.sample import Message


@pytest.fixture
def delta(fault_server: Any) -> Callable[..., dict[str, Any]]:
    """One chunk: `delta(content="x")`, `delta(finish="stop")`."""

    def make(finish: str | None = None, **fields: Any) -> dict[str, Any]:
        return dict(fault_server.choice(delta=fields, finish_reason=finish))

    return make


@pytest.fixture
def connect(server: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Model]:
    """The openai model on the server; time-outs are short."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def make(spec: str = "openai:m", **options: Any) -> Model:
        return open_model(spec, **({"base_url": server.url, "timeout_s": 20} | options))

    return make


@pytest.fixture
def ask() -> Callable[..., Response]:
    """One answer, in an event loop of its own."""

    def go(model: Model, text: str = "What?", **fields: Any) -> Response:
        messages = (Message(role="user", content=text),)

        async def once() -> Response:
            try:
                return await model.generate(Request(**({"messages": messages, "max_new_tokens": 16} | fields)))
            finally:
                await model.close()

        return asyncio.run(once())

    return go
