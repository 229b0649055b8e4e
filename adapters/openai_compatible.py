"""Any server that speaks chat/completions (vLLM, SGLang, llama.cpp, Ollama, hosted), or /v1/completions for base models.

One try per request; trying again is the scheduler's. Parameters that a server refuses are adapted once, remembered for
the endpoint, and told in the facts. The clock starts when a request is sent and stops when its last token has come.
"""

import asyncio
import dataclasses
import json
import os
import time
import weakref
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from longreach.adapters.batch_files import batch_line, batch_reply
from longreach.adapters.openai_address import without_login
from longreach.adapters.openai_body import body_bytes
from longreach.adapters.openai_errors import error_from, message_of, redact, rejected_parameter
from longreach.adapters.openai_probe import probe_endpoint
from longreach.adapters.openai_rates import rates_of
from longreach.adapters.openai_stream import DONE, Collector, events
from longreach.adapters.options import read_flag, read_length, read_mapping, read_number, read_tokenizer
from longreach.adapters.prices import list_price
from longreach.harness.errors import ConfigError, ModelError, ModelUnusable
from longreach.harness.model import Price, Request, Response
from longreach.harness.tokenizer import Tokenizer, join_contents

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_S = 10.0
DRAIN_S = 0.5  # after [DONE] a connection that is to be used again is read to its end
_SECRET = ("auth", "key", "token", "secret", "cookie")
_LIMITS = ("max_tokens", "max_completion_tokens")


class OpenAIModel:
    """A model behind an endpoint."""

    simulated = False

    def __init__(
        self,
        name: str,
        *,
        chat: bool,
        base_url: str,
        api_key: str | None,
        tokenizer: Tokenizer | None,
        headers: Mapping[str, str],
        extra_body: Mapping[str, Any],
        window: int | None,
        timeout_s: float,
        stall_s: float,
        prefill_tokens_per_s: float,
        prefill: bool,
        concurrency: int,
    ) -> None:
        self._model = name
        self._chat = chat
        self._base_url = base_url
        self._host = urlsplit(base_url).netloc
        self._api_key = api_key
        self._headers = headers
        self._extra_body = extra_body
        self._timeout_s = timeout_s
        self._stall_s = stall_s
        self._prefill_tokens_per_s = prefill_tokens_per_s
        self._prefill = prefill
        self._secrets = [value for key, value in headers.items() if any(word in key.lower() for word in _SECRET)]
        self._secrets += [secret.removeprefix("Basic ") for secret in self._secrets]
        self._secrets += [secret for secret in (api_key,) if secret and secret != "EMPTY"]
        self._limit_field = _LIMITS[1] if "api.openai.com" in self._host else _LIMITS[0]
        self._adapted: dict[str, str] = {}
        self._found: Mapping[str, Any] = {}
        # llama.cpp's server closes a connection after a stream without saying so, and the next request on it fails. A new
        # one costs nothing near by; over TLS, where it does, servers keep what they promise.
        self._closes = base_url.startswith("http://")
        self._price: Price | None = None
        self._reached = False  # some HTTP reply has come
        self._answered = False  # some request has succeeded
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = weakref.WeakKeyDictionary()
        self.tokenizer = tokenizer
        self.window = window
        self.concurrency = concurrency

    @property
    def name(self) -> str:
        return f"{'openai' if self._chat else 'openai-completions'}:{self._model}"

    @property
    def price(self) -> Price:
        """The list price, at a provider's own address."""
        if self._price is None:
            self._price = list_price(self._model, self._base_url)
        return self._price

    @property
    def facts(self) -> Mapping[str, Any]:
        facts: dict[str, Any] = {"kind": "endpoint", "host": self._host, "api": "chat" if self._chat else "completions"}
        facts.update(self._found)
        if self._adapted:
            facts["adapted"] = dict(self._adapted)
        return facts

    async def probe(self) -> None:
        """Ask the endpoint about itself and fill `facts` and `window`; called once, before the first request.

        Raises:
            ModelUnusable: unreachable, wrong key, or the model is not among those that it lists.
        """
        import openai

        try:
            found = await probe_endpoint(self._client(), self._model, host=self._host)
        except openai.APIStatusError as error:
            self._reached = True
            if error.status_code in (401, 403):
                raise self._status_error(error) from None
            return  # no list here: the first request will tell
        except openai.APIConnectionError as error:
            raise self._connection_error(error) from None
        self._reached = True
        self._found = found.facts
        self.window = self.window or found.window
        self.concurrency = min(self.concurrency, found.slots or self.concurrency)

    async def generate(self, request: Request) -> Response:
        import openai

        while True:
            body = self._body(request)
            try:
                return await self._send(request, body)
            except openai.APIStatusError as error:
                self._reached = True
                failure = self._status_error(error)
                if type(failure) not in (ModelError, ModelUnusable) or not self._adapt(error, body):
                    raise failure from None
            except openai.APIConnectionError as error:
                raise self._connection_error(error) from None

    def batch_line(self, request: Request) -> Mapping[str, Any]:
        """The request as one line of a batch file, under its key."""
        return batch_line(str(request.key), self._body(request), chat=self._chat)

    def batch_reply(self, line: Mapping[str, Any]) -> Response | ModelError:
        """What one line of a batch's output or error file says."""
        return batch_reply(line, host=self._host, secrets=self._secrets)

    async def close(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        self._clients.clear()  # those of other loops die with them
        if client is not None:
            await client.close()

    async def _send(self, request: Request, body: Mapping[str, Any]) -> Response:
        """One try. Errors of `openai` for what comes before the reply, ModelError for what goes wrong within it."""
        import httpx2

        path = "/chat/completions" if self._chat else "/completions"
        loop = asyncio.get_running_loop()
        reply = Collector()
        stream = bool(body.get("stream"))
        content = body_bytes(body)
        started = time.perf_counter()
        last_s = 0.0
        try:
            async with asyncio.timeout(self._first_token_s(request, stream=stream)) as deadline:
                raw = await self._client().post(path, cast_to=httpx2.Response, content=content, stream=stream)
                self._reached = True
                reply.rates = rates_of(raw.headers)
                if not stream or "event-stream" not in raw.headers.get("content-type", ""):
                    text = (await raw.aread()).decode("utf-8", "replace")
                    last_s = time.perf_counter() - started
                    self._feed(reply, self._whole(text, raw.headers), last_s)
                    return self._done(reply, request, last_s, streamed=False)
                try:
                    async for event in events(raw.aiter_lines()):
                        if event is DONE and self._closes:
                            break
                        if event is DONE:
                            deadline.reschedule(loop.time() + DRAIN_S)
                            continue
                        at_s = time.perf_counter() - started
                        if self._feed(reply, event, at_s):
                            deadline.reschedule(loop.time() + self._stall_s)
                            last_s = at_s
                finally:
                    await raw.aclose()
        except TimeoutError as error:
            if reply.finish_reason is None:
                raise self._timeout_error(reply, time.perf_counter() - started) from error
        except (httpx2.RequestError, httpx2.StreamError) as error:
            if reply.finish_reason is None:
                raise ModelError(f"{self._host}: broken stream ({type(error).__name__})", transient=True) from None
        return self._done(reply, request, last_s or time.perf_counter() - started, streamed=True)

    def _done(self, reply: Collector, request: Request, latency_s: float, *, streamed: bool) -> Response:
        response = reply.response(latency_s, streamed=streamed, adapted=self._adapted)
        self._answered = True
        if "stop" in self._adapted:
            response = _cut_at(response, request.stop)
        return response

    def _feed(self, reply: Collector, chunk: Any, at_s: float) -> bool:
        if isinstance(chunk, Mapping) and chunk.get("error"):
            raise error_from(None, chunk["error"], {}, host=self._host, answered=self._answered, secrets=self._secrets)
        return reply.feed(chunk, at_s)

    def _whole(self, text: str, headers: Mapping[str, str]) -> Any:
        """The JSON of a reply that is no stream."""
        try:
            return json.loads(text)
        except ValueError:
            said = f"{self._host} answered with {headers.get('content-type', 'no content type')}, not JSON: "
            said += redact(message_of(text), self._secrets) or "(empty)"
        if self._answered:
            raise ModelError(said, transient=True)
        raise ModelUnusable(f"{said}; check that --base-url ends where the API begins (/v1)")

    def _body(self, request: Request) -> dict[str, Any]:
        """All that is sent, adapted to what the endpoint has refused so far."""
        body: dict[str, Any] = {"model": self._model}
        if self._chat:
            body["messages"] = [{"role": message.role, "content": message.content} for message in request.messages]
            if request.answer_prefix:
                if not self._prefill:
                    raise ModelError(
                        f"{self.name} is asked to go on from a given start of its answer; say --model-args prefill=true "
                        f"if this server continues a last assistant message"
                    )
                body["messages"].append({"role": "assistant", "content": request.answer_prefix})
        elif self.tokenizer is not None:
            body["prompt"] = self.tokenizer.render(request.messages, request.answer_prefix)
        else:
            body["prompt"] = join_contents(request.messages, request.answer_prefix)
        body[self._limit_field] = request.max_new_tokens
        optional = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "stop": list(request.stop) or None,
            "seed": request.seed,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if "stream" in self._adapted:
            del optional["stream_options"]
        body.update((key, value) for key, value in optional.items() if value is not None and key not in self._adapted)
        body.update(self._extra_body)
        return body

    def _adapt(self, error: Any, body: Mapping[str, Any]) -> bool:
        """Remember a parameter that was refused; False if there is nothing more to be done about this error."""
        mine = {"temperature", "top_p", "stop", "seed", "stream", "stream_options", *_LIMITS} - set(self._extra_body)
        name = rejected_parameter(error.status_code, error.body, sorted(mine & set(body)))
        if name is None:
            return False
        if name not in _LIMITS:
            self._adapted[name] = "left out"
            return True
        other = _LIMITS[1 - _LIMITS.index(name)]
        if other in self._adapted:
            return False
        self._limit_field = other
        self._adapted[name] = f"sent as {other}"
        return True

    def _status_error(self, error: Any) -> ModelError:
        return error_from(
            error.status_code,
            error.body,
            error.response.headers,
            host=self._host,
            answered=self._answered,
            secrets=self._secrets,
        )

    def _connection_error(self, error: Any) -> ModelError:
        reason = redact(str(error.__cause__ or error), self._secrets)
        if self._reached:
            return ModelError(f"{self._host}: the connection failed ({reason})", transient=True)
        return ModelUnusable(
            f"{self._host} cannot be reached ({reason}); is the server running, and is --base-url right?"
        )

    def _timeout_error(self, reply: Collector, after_s: float) -> ModelError:
        if reply.ttft_s is None:
            return ModelError(
                f"{self._host}: time-out, no token within {after_s:.0f} s; raise it with --model-args timeout_s=N",
                transient=True,
            )
        return ModelError(f"{self._host}: time-out, the stream stood still for {self._stall_s:.0f} s", transient=True)

    def _first_token_s(self, request: Request, *, stream: bool) -> float:
        """Seconds until the first token must be there: reading the prompt, then reasoning that may be hidden."""
        n_prompt = request.n_tokens or sum(len(message.content) for message in request.messages) // 3
        tokens_per_s = 20.0 if stream else 5.0  # slow but alive; without a stream all of the answer is waited for
        return self._timeout_s + n_prompt / self._prefill_tokens_per_s + request.max_new_tokens / tokens_per_s

    def _client(self) -> Any:
        """The client of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            if self._api_key is None:
                raise ModelUnusable(f"{self._host} needs a key; put it into the environment as OPENAI_API_KEY")
            import httpx2
            import openai

            headers = dict(self._headers)
            if self._closes:
                headers["Connection"] = "close"
            self._clients[loop] = openai.AsyncOpenAI(
                base_url=self._base_url,
                api_key=self._api_key,
                max_retries=0,
                timeout=httpx2.Timeout(None, connect=CONNECT_S),
                default_headers=headers,
                http_client=openai.DefaultAioHttpClient(timeout=httpx2.Timeout(None, connect=CONNECT_S)),
            )
        return self._clients[loop]


def _cut_at(response: Response, stop: tuple[str, ...]) -> Response:
    """What the server should have stopped at, where it took no `stop`."""
    ends = [end for end in map(response.text.find, stop) if end >= 0]
    return dataclasses.replace(response, text=response.text[: min(ends)], finish="stop") if ends else response


def _open(
    rest: str,
    *,
    chat: bool,
    base_url: str | None = None,
    api_key_env: str = "OPENAI_API_KEY",
    tokenizer: Tokenizer | str | None = None,
    headers: Mapping[str, str] | str | None = None,
    extra_body: Mapping[str, Any] | str | None = None,
    chat_template_kwargs: Mapping[str, Any] | str | None = None,
    window: int | str | None = None,
    timeout_s: float | str = 60.0,
    stall_s: float | str = 60.0,
    prefill_tokens_per_s: float | str = 50.0,
    prefill: bool | str = False,
    concurrency: int | str = 8,
) -> OpenAIModel:
    if not rest:
        raise ConfigError("name the model as the server knows it, as in openai:gpt-x or openai:meta-llama/Llama-3.1-8B")
    url = str(base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigError(f"--base-url {url!r} is not a web address; it looks like http://localhost:8000/v1")
    url, login = without_login(url)
    sent = {key: str(value) for key, value in read_mapping(headers, "--header").items()}
    body = read_mapping(extra_body, "--extra-body")
    if template := read_mapping(chat_template_kwargs, "--chat-template-kwargs"):
        body["chat_template_kwargs"] = template
    where = f"model 'openai:{rest}', --model-args"
    return OpenAIModel(
        rest,
        chat=chat,
        base_url=url,
        api_key=os.environ.get(api_key_env) or (None if "api.openai.com" in url else "EMPTY"),
        tokenizer=read_tokenizer(tokenizer),
        headers=login | sent,
        extra_body=body,
        window=None if window is None else read_length(window, f"{where} window"),
        timeout_s=read_number(timeout_s, f"{where} timeout_s", low=0.001),
        stall_s=read_number(stall_s, f"{where} stall_s", low=0.001),
        prefill_tokens_per_s=read_number(prefill_tokens_per_s, f"{where} prefill_tokens_per_s", low=0.001),
        prefill=read_flag(prefill, f"{where} prefill"),
        concurrency=int(read_number(concurrency, f"{where} concurrency", low=1)),
    )


def open_model(rest: str, **options: Any) -> OpenAIModel:
    """A chat model: `rest` is its name at the server.

    Args:
        base_url: where the API begins (with /v1); else OPENAI_BASE_URL, else OpenAI's own.
        api_key_env: variable that holds the key; no key is needed anywhere but at OpenAI's.
        tokenizer: counts as the model does, with its chat template.
        headers, extra_body, chat_template_kwargs: sent along; mappings or JSON text.
        window: tokens of prompt and answer; else what the endpoint states.
        timeout_s, prefill_tokens_per_s: the first token must come within timeout_s + prompt / rate + answer / 20.
        stall_s: longest silence between tokens.
        prefill: the server continues a last assistant message, so that an answer prefix can be sent as one.
        concurrency: requests at once; not more than the slots that the server states.

    Raises:
        ConfigError: an option that makes no sense.
    """
    return _open(rest, chat=True, **options)


def open_completions_model(rest: str, **options: Any) -> OpenAIModel:
    """A base model through /v1/completions, options as for `open_model`; without a chat template contents are joined."""
    return _open(rest, chat=False, **options)


open_model.__wrapped__ = open_completions_model.__wrapped__ = _open  # type: ignore[attr-defined] # names their options
