"""A scripted server in this process: each request takes the next reply of the script (the last one stays), or an oracle's.

Loaded by the fixtures of conftest.py, and by the studies.
"""

import asyncio
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from longreach.harness.tokenizer import WordsTokenizer


@dataclass
class Reply:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[Any] | None = None
    done: bool = True
    cut: bool = False
    hang: bool = False


FAULTS = (
    *(
        "429",
        "503",
        "cut",
        "eof",
        "sse_error",
        "html",
        "no_choices",
        "bad_json",
        "error_200",
        "reasoning_only",
        "filter",
    ),
)
"""What a faulty reply may be. All but the last two are worth another try."""
FINAL_FAULTS = ("reasoning_only", "filter")


@dataclass
class Oracle:
    """A server that knows its trade: it reads the prompt, within its window, and models latency, a prefix cache and a rate.

    Tokens are those of the fallback tokenizer, and the template takes 12 more.
    """

    solve: Callable[[str], str | None]
    """Text of the prompt -> the answer, None if it is not in it."""
    window: int | None = None
    cuts: bool = False
    """What does not fit is cut at the start in silence, instead of being refused."""
    usage: bool = True
    prefill_s: float = 0.0
    """Seconds for each token of the prompt that is not cached."""
    cached: bool = False
    """There is a prefix cache, and usage tells of it."""
    tokens_per_minute: int | None = None
    faults: float = 0.0
    """Share of faulty replies."""
    seed: int = 1
    told: Counter[str] = field(default_factory=Counter)
    """Replies by kind."""
    last: dict[int, str] = field(default_factory=dict)
    """Kind of the last reply to each prompt, by `hash` of its text."""

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._seen: set[int] = set()
        self._left = float(self.tokens_per_minute or 0)
        self._at = time.monotonic()

    def count(self, text: str) -> int:
        """Tokens of a prompt with its template."""
        return WordsTokenizer().count(text) + 12

    async def reply(self, sent: Mapping[str, Any]) -> Reply:
        """What a request gets."""
        text = "\n\n".join(message["content"] for message in sent["messages"])
        kind = self._rng.choice(FAULTS) if self._rng.random() < self.faults else "ok"
        n_tokens = len(text) // 4 + 12 if self.window is None and not self.usage else self.count(text)
        n_output = sent.get("max_tokens", 0)
        if (refusal := self._refused(n_tokens + n_output)) is not None:
            self.told["quota"] += 1
            return refusal
        if self.window is not None and n_tokens + n_output > self.window:
            if not self.cuts:
                self.told["overflow"] += 1
                said = (
                    f"This model's maximum context length is {self.window} tokens, you requested {n_tokens + n_output}"
                )
                return Reply(status=400, body={"error": {"message": said, "code": "context_length_exceeded"}})
            n_tokens = self.window - n_output
            text = text[-3 * n_tokens :]
        self.told[kind] += 1
        self.last[hash(text)] = kind
        n_cached = self._hit(text, n_tokens) if self.cached else None
        if self.prefill_s:
            await asyncio.sleep(self.prefill_s * (n_tokens - (n_cached or 0)))
        return self._faulty(kind) if kind != "ok" else self._answer(text, n_tokens, n_cached)

    def _answer(self, text: str, n_tokens: int, n_cached: int | None) -> Reply:
        answer = self.solve(text) or "I see no answer."
        usage: dict[str, Any] = {"prompt_tokens": n_tokens, "completion_tokens": len(answer) // 4 + 1}
        if n_cached is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": n_cached}
        chunks = [choice(delta={"role": "assistant", "content": ""}), choice(delta={"content": answer})]
        chunks.append(choice(delta={}, finish_reason="stop"))
        return Reply(
            chunks=[*chunks, {"choices": [], "usage": usage}] if self.usage else chunks, headers=self._headers()
        )

    def _headers(self) -> dict[str, str]:
        if self.tokens_per_minute is None:
            return {}
        limit, left = self.tokens_per_minute, max(int(self._left), 0)
        return {
            "x-ratelimit-limit-tokens": str(limit),
            "x-ratelimit-remaining-tokens": str(left),
            "x-ratelimit-reset-tokens": f"{(limit - left) / limit * 60:.3f}s",
        }

    def _refused(self, n_tokens: int) -> Reply | None:
        if self.tokens_per_minute is None:
            return None
        now = time.monotonic()
        self._left = min(self._left + (now - self._at) * self.tokens_per_minute / 60, self.tokens_per_minute)
        self._at = now
        if n_tokens > self._left:
            return Reply(status=429, body={"error": {"message": "Rate limit reached"}}, headers=self._headers())
        self._left -= n_tokens
        return None

    def _hit(self, text: str, n_tokens: int) -> int:
        """Tokens of the longest prefix that was sent before, in blocks of 64 characters."""
        blocks = [hash(text[:end]) for end in range(64, len(text), 64)]
        n = next((i for i, block in enumerate(blocks) if block not in self._seen), len(blocks))
        self._seen.update(blocks)
        return n * 64 * n_tokens // max(len(text), 1)

    def _faulty(self, kind: str) -> Reply:
        half = choice(delta={"content": "4"})
        stop = choice(delta={}, finish_reason="stop")
        return {
            "429": Reply(status=429, body={"error": {"message": "slow down"}}, headers={"retry-after-ms": "1"}),
            "503": Reply(status=503, body="<html><title>503 Service Unavailable</title></html>"),
            "cut": Reply(chunks=[half], cut=True),
            "eof": Reply(chunks=[half], done=False),
            "sse_error": Reply(chunks=[half, {"error": {"message": "Overloaded", "code": 503}}]),
            "html": Reply(body="<html><title>Welcome</title></html>"),
            "no_choices": Reply(body={"choices": []}),
            "bad_json": Reply(chunks=["{nope"]),
            "error_200": Reply(body={"error": {"message": "try again", "code": 500}}),
            "reasoning_only": Reply(
                chunks=[
                    choice(delta={"reasoning_content": "hm", "content": None}),
                    choice(finish_reason="length", delta={}),
                ]
            ),
            "filter": Reply(chunks=[half, choice(finish_reason="content_filter", delta={}), stop][:2]),
        }[kind]


class FaultServer:
    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.n_requests = 0
        self.pages: dict[str, Any] = {}
        self.oracle: Oracle | None = None
        """Answers instead of the script, where it is set."""
        self.in_flight = self.most_in_flight = 0
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
        app = web.Application(client_max_size=1 << 28)
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
        sent = await request.json()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.oracle is not None:
                self.n_requests += 1
                reply = await self.oracle.reply(sent)
                reply = reply if sent.get("stream") else whole(reply)
            else:
                self.requests.append(sent)
                self.headers.append(request.headers.copy())
                reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
            return await self._say(request, reply)
        except ConnectionResetError:  # the client was killed: nobody reads this
            return web.Response()
        finally:
            self.in_flight -= 1

    async def _say(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        if reply.chunks is None:
            if isinstance(reply.body, str):
                kind = "text/html" if "<" in reply.body else "text/plain"
                return web.Response(status=reply.status, text=reply.body, headers=reply.headers, content_type=kind)
            return web.json_response(reply.body, status=reply.status, headers=reply.headers)
        response = web.StreamResponse(headers=reply.headers | {"content-type": "text/event-stream"})
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


def whole(reply: Reply) -> Reply:
    """A streamed reply for a request that asked for no stream."""
    if reply.chunks is None or reply.cut or not reply.done or not all(isinstance(c, dict) for c in reply.chunks):
        return reply
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    body: dict[str, Any] = {"model": "m-served", "choices": [{"index": 0, "message": message, "finish_reason": None}]}
    for chunk in reply.chunks:
        if chunk.get("usage"):
            body["usage"] = chunk["usage"]
        if chunk.get("error"):
            return Reply(status=500, body=chunk)
        for item in chunk.get("choices", ()):
            for name, text in item["delta"].items():
                message[name] = (message.get(name) or "") + (text or "") if name != "role" else text
            body["choices"][0]["finish_reason"] = item.get("finish_reason")
    return Reply(body=body, headers=reply.headers)


def choice(**fields: Any) -> dict[str, Any]:
    return {"model": "m-served", "choices": [{"index": 0, **fields}]}
