"""transformers in this process: a folder or a hub id, on one device.

The prompt is rendered by the model's own chat template and encoded without further special tokens, so that there is one
begin-of-text token and not two. Opening loads nothing; the config is read when the window is asked for, the weights by
`probe` or the first request.
"""

import importlib.metadata
import importlib.util
import threading
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from longreach.adapters.background import in_background
from longreach.adapters.openai_stream import ThinkSplitter
from longreach.adapters.options import read_length
from longreach.harness.errors import ConfigError, ContextOverflow, MissingExtra, ModelError, ModelUnusable
from longreach.harness.model import Finish, Price, Request, Response
from longreach.harness.registry import open_tokenizer
from longreach.harness.tokenizer import Tokenizer, join_contents

INSTALL = "pip install 'longreach[hf]'"
DTYPES = ("auto", "float32", "float16", "bfloat16")


class Transformers:
    """A causal language model."""

    concurrency = 1
    simulated = False
    price = Price()

    def __init__(self, name: str, *, device: str | None, dtype: str, n_ctx: int | None) -> None:
        self._source = name
        self._device = device
        self._dtype = dtype
        self._n_ctx = n_ctx
        self._loaded: tuple[Any, Any] | None = None
        self._busy = threading.Lock()

    @property
    def name(self) -> str:
        return f"hf:{self._source}"

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        return open_tokenizer(f"hf:{self._source}")

    @property
    def window(self) -> int | None:
        return self._n_ctx or self._windows[1]

    @property
    def facts(self) -> Mapping[str, Any]:
        config = self._config
        rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
        facts: dict[str, Any] = {
            "kind": "in-process",
            "engine": "transformers",
            "engine_version": importlib.metadata.version("transformers"),
            "torch_version": importlib.metadata.version("torch"),
            "revision": getattr(config, "_commit_hash", None),
            "architecture": getattr(config, "model_type", None),
            "window": self.window,
            "native_window": self._windows[0],
            "rope": dict(rope) if isinstance(rope, Mapping) else None,
            "quantisation": _quantisation(config),
        }
        if self._loaded is not None:
            model, _ = self._loaded
            facts["dtype"] = str(model.dtype).removeprefix("torch.")
            facts["device"] = str(model.device)
            facts["attention"] = getattr(model.config, "_attn_implementation", None)
        return {key: value for key, value in facts.items() if value is not None}

    async def probe(self) -> None:
        """Load the weights.

        Raises:
            ModelUnusable: there is no such model here, or it does not fit into memory.
        """
        await in_background(lambda _: self._load())

    async def generate(self, request: Request) -> Response:
        return await in_background(lambda stop: self._ask(request, stop))

    async def close(self) -> None:
        self._loaded = None

    @cached_property
    def _config(self) -> Any:
        import transformers

        try:
            config = transformers.AutoConfig.from_pretrained(self._source)
        except (OSError, ValueError) as error:
            raise _not_there(self._source, error) from error
        return config.get_text_config()

    @cached_property
    def _windows(self) -> tuple[int | None, int | None]:
        """Native window, and the window with what the config says of scaling."""
        config = self._config
        stated = getattr(config, "max_position_embeddings", None)
        rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
        rope = rope if isinstance(rope, Mapping) else {}
        native = rope.get("original_max_position_embeddings") or stated
        if not isinstance(native, int) or not isinstance(stated, int):
            return None, None
        return native, max(stated, int(native * float(rope.get("factor") or 1.0)))

    def _load(self) -> tuple[Any, Any]:
        import torch
        import transformers

        if self._loaded is None:
            device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
            name = "dtype" if int(transformers.__version__.split(".")[0]) >= 5 else "torch_dtype"
            dtype = self._dtype if self._dtype == "auto" else getattr(torch, self._dtype)
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(self._source)
                model = transformers.AutoModelForCausalLM.from_pretrained(self._source, **{name: dtype})
                self._loaded = model.to(device).eval(), tokenizer
            except (OSError, ValueError) as error:
                raise _not_there(self._source, error) from error
            except RuntimeError as error:
                raise ModelUnusable(f"{self.name} cannot be loaded on {device}: {_first_line(error)}") from error
        return self._loaded

    def _ask(self, request: Request, stop: threading.Event) -> Response:
        with self._busy:
            model, tokenizer = self._load()
            ids = encode(tokenizer, request)
            if self.window is not None and len(ids) + request.max_new_tokens > self.window:
                raise ContextOverflow(
                    f"{self.name}: {len(ids):,} prompt tokens and {request.max_new_tokens:,} for the answer exceed the "
                    f"window of {self.window:,}; a longer one can be named with --model-args n_ctx=N"
                )
            clock = _Clock()
            try:
                new = _generate(model, tokenizer, ids, request, clock, stop)
            except RuntimeError as error:
                if "memory" not in str(error).lower():
                    raise
                raise ModelError(
                    f"{self.name}: out of memory with {len(ids):,} prompt tokens on {model.device} ({_first_line(error)})"
                ) from None
            latency_s = clock.now_s()
        if stop.is_set():
            raise ModelError(f"{self.name}: stopped", transient=True)
        text = tokenizer.decode(new, skip_special_tokens=True)
        ends = [end for end in map(text.find, request.stop) if end >= 0]
        at_limit = len(new) >= request.max_new_tokens and not ends
        split = ThinkSplitter()
        split.feed(text[: min(ends)] if ends else text)
        finish: Finish = "length" if at_limit and new[-1] not in _ends(model) else "stop"
        return Response(
            text=split.answer,
            reasoning=split.reasoning or None,
            finish=finish,
            n_prompt_tokens=len(ids),
            n_output_tokens=len(new),
            n_cached_tokens=0,
            ttft_s=clock.first_s,
            ttft_answer_s=clock.first_s if split.answer and not split.reasoning else None,
            latency_s=latency_s,
            raw={"first_ids": ids[:8], "last_ids": ids[-8:]},
        )


class _Clock:
    """A streamer (transformers) that only notes when the first token came."""

    def __init__(self) -> None:
        self.first_s: float | None = None
        self._started = time.perf_counter()
        self._prompt_seen = False

    def now_s(self) -> float:
        return time.perf_counter() - self._started

    def put(self, value: object) -> None:
        if not self._prompt_seen:
            self._prompt_seen = True
        elif self.first_s is None:
            self.first_s = self.now_s()

    def end(self) -> None:
        """Nothing to flush."""


def encode(tokenizer: Any, request: Request) -> list[int]:
    """Token ids of the prompt, with at most one begin-of-text token."""
    if getattr(tokenizer, "chat_template", None):
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        ids = tokenizer(text + request.answer_prefix, add_special_tokens=False)["input_ids"]
    else:
        ids = tokenizer(join_contents(request.messages, request.answer_prefix))["input_ids"]
    begin = tokenizer.bos_token_id
    return list(ids[1:] if begin is not None and list(ids[:2]) == [begin, begin] else ids)


def _generate(
    model: Any, tokenizer: Any, ids: list[int], request: Request, clock: _Clock, stop: threading.Event
) -> list[int]:
    """New token ids. Generate asks for the logits of the last position only, so that memory does not grow with them."""
    import torch
    import transformers

    class Stopped(transformers.StoppingCriteria):  # type: ignore[misc]  # transformers is optional, so it has no types
        def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
            return torch.full((input_ids.shape[0],), stop.is_set(), dtype=torch.bool, device=input_ids.device)

    options: dict[str, Any] = {"do_sample": request.temperature > 0.0}
    if options["do_sample"]:
        options |= {"temperature": request.temperature, "top_p": request.top_p or 1.0, "top_k": 0}
    else:
        options |= {"temperature": None, "top_p": None, "top_k": None}
    if request.stop:
        options |= {"stop_strings": list(request.stop), "tokenizer": tokenizer}
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else min(_ends(model), default=0)
    prompt = torch.tensor([ids], device=model.device)
    with torch.inference_mode(), torch.random.fork_rng(enabled=options["do_sample"]):
        if options["do_sample"]:
            torch.manual_seed(request.seed or 0)
        result = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=request.max_new_tokens,
            pad_token_id=pad,
            streamer=clock,
            stopping_criteria=transformers.StoppingCriteriaList([Stopped()]),
            **options,
        )
    new: list[int] = result[0, len(ids) :].tolist()
    return new


def _ends(model: Any) -> set[int]:
    ends = model.generation_config.eos_token_id
    return set(ends) if isinstance(ends, list) else {ends} - {None}


def _quantisation(config: Any) -> str | None:
    found = getattr(config, "quantization_config", None)
    method = found.get("quant_method") if isinstance(found, Mapping) else getattr(found, "quant_method", None)
    return str(method) if method is not None else None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _not_there(source: str, error: Exception) -> ModelUnusable:
    return ModelUnusable(
        f"hf:{source} cannot be loaded ({_first_line(error)}); name a folder with config.json and weights, or a hub id "
        f"that can be downloaded or is in the local cache"
    )


def open_model(
    rest: str, *, device: str | None = None, dtype: str = "auto", n_ctx: int | str | None = None
) -> Transformers:
    """A folder with a model, or a hub id.

    Args:
        device: as torch names it; default cuda where there is one, else cpu.
        dtype: auto (as stored), float32, float16 or bfloat16.
        n_ctx: window in tokens; default what the config says, scaling included.

    Raises:
        MissingExtra: torch or transformers is not installed.
        ConfigError: an option that makes no sense.
    """
    if not rest:
        raise ConfigError("name the model, as in hf:path/to/folder or hf:HuggingFaceTB/SmolLM2-135M-Instruct")
    if missing := [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]:
        raise MissingExtra(f"model 'hf:{rest}' needs {' and '.join(missing)}; run: {INSTALL}")
    if dtype not in DTYPES:
        raise ConfigError(f"model 'hf:{rest}', --model-args dtype: {dtype!r} is none of {', '.join(DTYPES)}")
    folder = Path(rest).expanduser()
    return Transformers(
        str(folder) if folder.is_dir() else rest,
        device=device,
        dtype=dtype,
        n_ctx=None if n_ctx is None else read_length(n_ctx, f"model 'hf:{rest}', --model-args n_ctx"),
    )
