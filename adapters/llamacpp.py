"""llama.cpp in this process: any GGUF file, or `smollm2`, the small model that a package brings along.

One request at a time, on one thread unless told otherwise (two threads beside any other busy process are slower than
one), without a prompt cache: an answer and its time to first token do not depend on what was asked before.
"""

import hashlib
import importlib.metadata
import importlib.util
import secrets
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longreach.adapters.background import in_background
from longreach.adapters.gguf_metadata import FILE_TYPES, INSTALL, gguf_path, read_metadata
from longreach.adapters.openai_errors import is_overflow, message_of
from longreach.adapters.openai_stream import Collector
from longreach.adapters.options import read_length, read_mapping, read_number
from longreach.harness.errors import ContextOverflow, MissingExtra, ModelError, ModelUnusable
from longreach.harness.model import Price, Request, Response
from longreach.harness.registry import open_tokenizer
from longreach.harness.tokenizer import Tokenizer, join_contents

DEFAULT_WINDOW = 8192  # more costs memory that nobody asked for
PART = 512  # tokens of prompt between two looks at whether to stop


class LlamaCpp:
    """A GGUF file. Opening reads its head only; the weights are loaded by `probe` or the first request."""

    concurrency = 1
    simulated = False
    price = Price()

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        n_ctx: int | None,
        n_threads: int,
        n_gpu_layers: int,
        chat_template_kwargs: Mapping[str, Any],
    ) -> None:
        self._name = name
        self._path = path
        self._chat_template_kwargs = dict(chat_template_kwargs)
        self._metadata = read_metadata(path)
        self._native = self._of_architecture("context_length")
        self._n_ctx = n_ctx or min(self._native or DEFAULT_WINDOW, DEFAULT_WINDOW)
        self._n_threads = n_threads
        self._n_gpu_layers = n_gpu_layers
        self._tokenizer: Tokenizer | None = None
        self._sha256: str | None = None
        self._server: Any = None
        self._starting = threading.Lock()

    @property
    def name(self) -> str:
        return self._name

    @property
    def tokenizer(self) -> Tokenizer | None:
        if self._tokenizer is None:
            self._tokenizer = open_tokenizer(f"gguf:{self._path}", chat_template_kwargs=self._chat_template_kwargs)
        return self._tokenizer

    @property
    def window(self) -> int | None:
        return self._n_ctx

    @property
    def facts(self) -> Mapping[str, Any]:
        file_type = self._metadata.get("general.file_type", -1)
        rope = {key: self._of_architecture(f"rope.{key}") for key in ("freq_base", "dimension_count")}
        rope |= {
            f"scaling_{key}": self._of_architecture(f"rope.scaling.{key}")
            for key in ("type", "factor", "original_context_length")
        }
        facts = {
            "kind": "in-process",
            "engine": "llama.cpp",
            "engine_version": f"xllamacpp {importlib.metadata.version('xllamacpp')}",
            "file": self._path.name,
            "sha256": self._sha256,
            "model_name": self._metadata.get("general.name"),
            "architecture": self._metadata.get("general.architecture"),
            "license": self._metadata.get("general.license"),
            "quantisation": FILE_TYPES.get(file_type),
            "window": self._n_ctx,
            "native_window": self._native,
            "rope": {key: value for key, value in rope.items() if value is not None},
            "kv_cache": "F16",
            "n_threads": self._n_threads,
            "n_gpu_layers": self._n_gpu_layers,
            "prompt_cache": False,
        }
        return {key: value for key, value in facts.items() if value is not None}

    async def probe(self) -> None:
        """Load the weights and hash the file.

        Raises:
            ModelUnusable: llama.cpp cannot load it.
        """
        await in_background(lambda _: self._start())

    async def generate(self, request: Request) -> Response:
        return await in_background(lambda stop: self._ask(request, stop))

    async def close(self) -> None:
        self._server = None

    def _of_architecture(self, key: str) -> Any:
        return self._metadata.get(f"{self._metadata.get('general.architecture')}.{key}")

    def _start(self) -> Any:
        """The server, started if it is not yet."""
        import xllamacpp

        with self._starting:
            if self._sha256 is None:
                with self._path.open("rb") as file:
                    self._sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            if self._server is None:
                params = xllamacpp.CommonParams()
                params.verbosity = 0
                params.model.path = str(self._path)
                params.n_ctx, params.n_parallel = self._n_ctx, 1
                params.n_batch = params.n_ubatch = PART
                params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._n_threads
                params.n_gpu_layers = self._n_gpu_layers
                params.fit_params = False  # else the window may be made smaller without a word
                params.cache_prompt, params.cache_ram_mib = False, 0
                params.offline, params.ui = True, False
                # It also listens on a port of this machine, which we do not use: nobody else shall either.
                params.api_keys = [secrets.token_hex(16)]
                try:
                    self._server = xllamacpp.Server(params)
                except RuntimeError as error:
                    raise ModelUnusable(
                        f"llama.cpp cannot load {self._path} with a window of {self._n_ctx:,} tokens ({error}); "
                        f"is the file whole, and is there memory for it?"
                    ) from error
            return self._server

    def _ask(self, request: Request, stop: threading.Event) -> Response:
        server = self._start()
        reply = Collector()
        failures: list[Any] = []
        started = time.perf_counter()

        def take(chunk: Any) -> bool:
            """Called with each chunk; true ends the answer."""
            if isinstance(chunk, Mapping) and chunk.get("error"):
                failures.append(chunk["error"])
            else:
                reply.feed(chunk, time.perf_counter() - started)
            return stop.is_set()

        handle = server.handle_chat_completions if self._chat else server.handle_completions
        handle(self._body(request), take)
        latency_s = time.perf_counter() - started
        if stop.is_set():
            raise ModelError(f"{self._name}: stopped", transient=True)
        if failures:
            kind = ContextOverflow if is_overflow(None, failures[0]) else ModelError
            raise kind(f"{self._name}: {message_of(failures[0])}")
        response = reply.response(latency_s, streamed=True, adapted={})
        if response.finish == "length" and (response.n_output_tokens or 0) < request.max_new_tokens:
            raise ContextOverflow(
                f"{self._name}: {response.n_prompt_tokens:,} prompt tokens left room for {response.n_output_tokens} of "
                f"{request.max_new_tokens} in a window of {self._n_ctx:,}"
            )
        return response

    @property
    def _chat(self) -> bool:
        return "tokenizer.chat_template" in self._metadata

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "max_tokens": request.max_new_tokens,
            "temperature": request.temperature,
            "top_p": 1.0 if request.top_p is None else request.top_p,
            "top_k": 0,  # llama.cpp's own defaults (40, and min_p 0.05) are nobody's choice
            "min_p": 0.0,
            "seed": request.seed or 0,
            "stop": list(request.stop),
            "cache_prompt": False,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if not self._chat:
            return body | {"prompt": join_contents(request.messages, request.answer_prefix)}
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        if request.answer_prefix:
            messages.append({"role": "assistant", "content": request.answer_prefix})
        if self._chat_template_kwargs:
            body["chat_template_kwargs"] = self._chat_template_kwargs
        return body | {"messages": messages}


def open_model(
    rest: str,
    *,
    n_ctx: int | str | None = None,
    n_threads: int | str = 1,
    n_gpu_layers: int | str = 0,
    chat_template_kwargs: Mapping[str, Any] | str | None = None,
) -> LlamaCpp:
    """The path of a GGUF file, or `smollm2`.

    Args:
        n_ctx: window in tokens; default the model's own, at most 8k.
        n_threads: threads that compute.
        n_gpu_layers: layers on the GPU, where this build of llama.cpp has one.
        chat_template_kwargs: arguments of the chat template, such as thinking on or off.

    Raises:
        MissingExtra: llama.cpp or the model's package is not installed; the message holds the install line.
        ConfigError: no such file, or not a GGUF file.
    """
    where = f"model 'llamacpp:{rest}', --model-args"
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingExtra(f"model 'llamacpp:{rest}' needs llama.cpp; run: {INSTALL}")
    return LlamaCpp(
        f"llamacpp:{rest}",
        gguf_path(rest),
        n_ctx=None if n_ctx is None else read_length(n_ctx, f"{where} n_ctx"),
        n_threads=int(read_number(n_threads, f"{where} n_threads", low=1)),
        n_gpu_layers=int(read_number(n_gpu_layers, f"{where} n_gpu_layers")),
        chat_template_kwargs=read_mapping(chat_template_kwargs, f"{where} chat_template_kwargs"),
    )
