"""A scripted server in this process: each request takes the next reply of the script (the last one stays)."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from longreach.harness.model import Model, Request, Response
from longreach.harness.registry import open_model
from longreach.harness.sample import Message


@dataclass
class Reply:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[Any] | None = None
    done: bool = True
    cut: bool = False
    hang: bool = False


class FaultServer:
    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.pages: dict[str, Any] = {}
        self._replies: list[Reply] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def reply(self, status: int, body: Any, **headers: str) -> None:
        """A whole reply; a str goes out as it is (HTML), anything else as JSON."""
        self._replies.append(
            Reply(status=status, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        )

    def stream(self, *chunks: Any, done: bool = True, cut: bool = False, hang: bool = False) -> None:
        """A stream of events; `cut` breaks the socket after them, `hang` says nothing more."""
        self._replies.append(Reply(chunks=list(chunks), done=done, cut=cut, hang=hang))

    def answer(self, text: str, finish: str | None = "stop", **usage: Any) -> None:
        """A well-behaved stream."""
        chunks = [{"delta": {"role": "assistant", "content": ""}}, *({"delta": {"content": piece}} for piece in text)]
        self.stream(
            *(choice(**chunk) for chunk in chunks),
            choice(finish_reason=finish, delta={}),
            {"choices": [], "usage": usage},
        )

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._handle)
        app.router.add_post("/v1/completions", self._handle)
        app.router.add_get("/{path:.*}", self._page)
        runner = web.AppRunner(app, access_log=None)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self.port = runner.addresses[0][1]
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())

    async def _page(self, request: web.Request) -> web.Response:
        page = self.pages.get(request.path)
        if isinstance(page, int) or page is None:
            return web.Response(status=page or 404)
        return (
            web.json_response(page) if not isinstance(page, str) else web.Response(text=page, content_type="text/html")
        )

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        self.headers.append(request.headers.copy())
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if reply.chunks is None:
            if isinstance(reply.body, str):
                kind = "text/html" if "<" in reply.body else "text/plain"
                return web.Response(status=reply.status, text=reply.body, headers=reply.headers, content_type=kind)
            return web.json_response(reply.body, status=reply.status, headers=reply.headers)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": a comment, as keep-alive\n\n")
        for chunk in reply.chunks:
            data = chunk if isinstance(chunk, str) else json.dumps(chunk)
            await response.write(f"data: {data}\n\n".encode())
        if reply.hang:
            while request.transport is not None and not request.transport.is_closing():
                await asyncio.sleep(0.01)
        elif reply.cut:
            assert request.transport is not None
            request.transport.close()
        elif reply.done:
            await response.write(b"data: [DONE]\n\n")
        return response


def choice(**fields: Any) -> dict[str, Any]:
    return {"model": "m-served", "choices": [{"index": 0, **fields}]}


@pytest.fixture
def server() -> Iterator[FaultServer]:
    faults = FaultServer()
    yield faults
    faults.close()


@pytest.fixture
def delta() -> Callable[..., dict[str, Any]]:
    """One chunk: `delta(content="x")`, `delta(finish="stop")`."""

    def make(finish: str | None = None, **fields: Any) -> dict[str, Any]:
        return choice(delta=fields, finish_reason=finish)

    return make


@pytest.fixture
def connect(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Model]:
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
