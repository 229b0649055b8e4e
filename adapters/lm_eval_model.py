"""Any backend of lm-eval (hf, vllm, sglang, local-completions, local-chat-completions, ...) with its own --model-args.

lm-eval cuts prompts that exceed its `max_length` from the left and scores the rest. So the window is always set here, and a
longer prompt is refused before the backend sees it. One request a call: one that fails does not take others with it. lm-eval
hands back text alone: no counts, no finish reason, no time to the first token.
"""

import ast
import importlib.metadata
import importlib.util
import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from longreach.adapters.background import in_background
from longreach.adapters.lm_eval_tasks import INSTALL
from longreach.adapters.openai_errors import error_from
from longreach.adapters.openai_stream import ThinkSplitter
from longreach.adapters.options import read_flag, read_length, read_tokenizer
from longreach.harness.errors import ConfigError, ContextOverflow, MissingExtra, ModelError, ModelUnusable
from longreach.harness.model import Price, Request, Response
from longreach.harness.registry import open_tokenizer
from longreach.harness.tokenizer import Tokenizer, join_contents

_OWN_WINDOW = ("max_length", "max_model_len", "context_length")
"""Arguments by which a backend is told its window: hf and the API models, vllm, sglang."""
_SECRETS = ("auth_token", "header")


class LmEvalModel:
    """One backend.

    Args:
        backend: its name in lm-eval's registry.
        args: its arguments.
        chat: render messages with the backend's chat template; None = if it has one.
        by_likelihood: answer closed questions with the option that has the highest log-likelihood.
    """

    concurrency = 1
    simulated = False
    price = Price()

    def __init__(
        self,
        backend: str,
        args: Mapping[str, Any],
        *,
        tokenizer: Tokenizer | None,
        window: int | None,
        chat: bool | None,
        by_likelihood: bool,
    ) -> None:
        self._backend = backend
        self._args = dict(args)
        self._given = tokenizer
        self._n_ctx = window
        self._chat = chat
        self._by_likelihood = by_likelihood
        self._answered = False
        self._busy = threading.Lock()

    @property
    def name(self) -> str:
        source = self._args.get("pretrained") or self._args.get("model")
        return f"lm-eval:{self._backend}" + (f":{source}" if source else "")

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        if self._given is not None:
            return self._given
        source = self._args.get("tokenizer") or self._args.get("pretrained")
        return open_tokenizer(f"hf:{source}") if isinstance(source, str) and not self._is_untokenized else None

    @property
    def window(self) -> int | None:
        if self._n_ctx is None and not self._is_api:
            self._n_ctx = int(self._lm.max_length)
        return self._n_ctx

    @property
    def facts(self) -> Mapping[str, Any]:
        return {
            "kind": "lm-eval",
            "engine": f"lm-eval {self._backend}",
            "engine_version": importlib.metadata.version("lm_eval"),
            "window": self._n_ctx,
            "usage": "lm-eval reports no token counts and no finish reason",
            "answers": "by log-likelihood where a question is closed" if self._by_likelihood else "generated",
        }

    async def probe(self) -> None:
        """Load the backend.

        Raises:
            ModelUnusable: it cannot be loaded. ConfigError: it needs a window.
        """
        await in_background(lambda _: self._lm)

    async def generate(self, request: Request) -> Response:
        return await in_background(lambda _: self._ask(request))

    async def close(self) -> None:
        self.__dict__.pop("_lm", None)

    @cached_property
    def _class(self) -> Any:
        os.environ.setdefault("TQDM_DISABLE", "1")  # one bar a request says nothing
        logging.getLogger("lm_eval").setLevel(logging.ERROR)  # what goes wrong comes back as an error
        from lm_eval.api.registry import get_model

        try:
            return get_model(self._backend)
        except (KeyError, ValueError) as error:
            from lm_eval.api.registry import model_registry

            known = ", ".join(sorted(model_registry.keys()))
            raise ConfigError(f"lm-eval has no model {self._backend!r}; one of: {known}") from error
        except ImportError as error:
            raise MissingExtra(
                f"model 'lm-eval:{self._backend}' needs a library that is not installed ({_line(error)}); "
                f"{_install_line(self._backend)}"
            ) from error

    @cached_property
    def _is_api(self) -> bool:
        from lm_eval.models.api_models import TemplateAPI

        return issubclass(self._class, TemplateAPI)

    @property
    def _is_hf(self) -> bool:
        """lm-eval's class for transformers or one built on it; by its name, as its module needs torch."""
        return any(base.__name__ == "HFLM" for base in self._class.__mro__)

    @cached_property
    def _is_untokenized(self) -> bool:
        """Requests are sent as text or turns, which nobody cuts on the way."""
        from lm_eval.models.openai_completions import LocalChatCompletion

        plain = issubclass(self._class, LocalChatCompletion) if self._is_api else False
        return self._is_api and not self._args.get("tokenized_requests", not plain)

    @cached_property
    def _lm(self) -> Any:
        args = dict(self._args)
        if self._is_api:
            if self._n_ctx is None and not self._is_untokenized:
                raise ConfigError(
                    f"{self.name}: lm-eval cuts prompts above 2,048 tokens unless it is told the window; name it with "
                    f"--model-args max_length=N"
                )
            args |= {"max_length": (self._n_ctx or 1 << 30) + 1, "num_concurrent": 1}  # api_models.py takes 1 off
            args.setdefault("max_retries", 1)  # we try again ourselves
        elif self._n_ctx is not None and not any(name in args for name in _OWN_WINDOW):
            args["max_length"] = self._n_ctx
        if self._is_hf and "device" not in args and not _has_cuda():
            args["device"] = "cpu"  # huggingface.py takes cuda unasked
        try:
            return self._class.create_from_arg_obj(args, {"batch_size": 1})
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise ModelUnusable(
                f"{self.name} cannot be loaded by lm-eval ({type(error).__name__}: {_line(error)}); check --model-args"
            ) from error

    def _ask(self, request: Request) -> Response:
        with self._busy:
            lm = self._lm
            context = self._context(lm, request)
            self._check_fits(lm, context, request)
            started = time.perf_counter()
            if self._by_likelihood and request.options:
                values = self._loglikelihoods(lm, context, request.options)
                best = max(range(len(values)), key=values.__getitem__)
                text, more = request.options[best], {"loglikelihoods": values}
            else:
                text, more = self._generated(lm, context, request), {}
            latency_s = time.perf_counter() - started
        split = ThinkSplitter()
        split.feed(text)
        return Response(
            text=split.answer,
            reasoning=split.reasoning or None,
            finish=None,
            latency_s=latency_s,
            raw={"usage": "not available", **more},
        )

    def _context(self, lm: Any, request: Request) -> Any:
        """The prompt as the backend takes it: text, or turns in its own form."""
        if not (self._has_template(lm) if self._chat is None else self._chat):
            return join_contents(request.messages, request.answer_prefix)
        turns = [{"role": message.role, "content": message.content} for message in request.messages]
        text = lm.apply_chat_template(turns, add_generation_prompt=True)
        if not request.answer_prefix:
            return text
        if isinstance(text, str):
            return text + request.answer_prefix
        raise ModelError(f"{self.name} cannot go on from a given start of its answer; use openai: with prefill=true")

    def _has_template(self, lm: Any) -> bool:
        if self._is_api:
            from lm_eval.models.openai_completions import LocalChatCompletion

            return isinstance(lm, LocalChatCompletion)
        return bool(getattr(getattr(lm, "tokenizer", None), "chat_template", None))

    def _check_fits(self, lm: Any, context: Any, request: Request) -> None:
        """By the backend's own count where it has one, else by ours."""
        if self.window is None:
            return
        counts = isinstance(context, str) and getattr(lm, "tokenizer", None) is not None and hasattr(lm, "tok_encode")
        n = len(lm.tok_encode(context)) if counts else request.n_tokens
        if n is not None and n + request.max_new_tokens > self.window:
            raise ContextOverflow(
                f"{self.name}: {n:,} prompt tokens and {request.max_new_tokens:,} for the answer exceed the window of "
                f"{self.window:,}; lm-eval would cut the prompt. A larger window is named with --model-args max_length=N"
            )

    def _generated(self, lm: Any, context: Any, request: Request) -> str:
        options: dict[str, Any] = {"until": list(request.stop), "max_gen_toks": request.max_new_tokens}
        options |= {"do_sample": request.temperature > 0.0, "temperature": request.temperature}
        if request.top_p is not None:
            options["top_p"] = request.top_p
        (text,) = self._call(lm.generate_until, [self._instance("generate_until", (context, options), 0)])
        return str(text)

    def _loglikelihoods(self, lm: Any, context: Any, options: Sequence[str]) -> list[float]:
        """Natural logarithm of each option's probability after the prompt, a blank between them."""
        if not isinstance(context, str):
            raise ModelUnusable(
                f"{self.name} gives no log-likelihoods of answers in a chat; leave out choices=loglikelihood, or use a "
                f"backend such as local-completions"
            )
        blank = "" if context[-1:].isspace() else " "
        asked = [self._instance("loglikelihood", (context, blank + option), at) for at, option in enumerate(options)]
        return [float(value) for value, _ in self._call(lm.loglikelihood, asked)]

    def _instance(self, kind: str, arguments: tuple[Any, ...], number: int) -> Any:
        from lm_eval.api.instance import Instance

        return Instance(request_type=kind, doc={}, arguments=arguments, idx=number)

    def _call(self, method: Any, instances: list[Any]) -> Sequence[Any]:
        """One call of the backend; whatever goes wrong in it is this sample's.

        Raises:
            ContextOverflow, ModelError: as far as the message tells; libraries raise what they like.
        """
        try:
            found: Sequence[Any] = method(instances, disable_tqdm=True)
        except NotImplementedError as error:
            raise ModelUnusable(f"{self.name}: {_line(error)}") from error
        except Exception as error:
            raise self._problem(error) from error
        self._answered = True
        return found

    def _problem(self, error: Exception) -> ModelError:
        reply = getattr(error, "response", None)
        if reply is not None:  # requests.HTTPError
            return error_from(
                int(reply.status_code),
                _body(reply),
                dict(reply.headers),
                host=self.name,
                answered=self._answered,
                secrets=[str(self._args[name]) for name in _SECRETS if self._args.get(name)],
            )
        is_broken = isinstance(error, OSError | TimeoutError)
        return ModelError(f"{self.name}: {type(error).__name__}: {_line(error)}", transient=is_broken)


def _has_cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _install_line(backend: str) -> str:
    """What installs the libraries of a backend: an extra of lm-eval where one bears its name."""
    extra = backend.partition("-")[0]
    if extra in (importlib.metadata.metadata("lm_eval").get_all("Provides-Extra") or ()):
        return f"run: pip install 'lm-eval[{extra}]'"
    return "lm-eval's own page of this backend names what it needs"


def _body(reply: Any) -> object:
    """JSON of an HTTP reply if it is that, else its text."""
    try:
        return reply.json()
    except ValueError:
        return reply.text


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _value(text: object) -> Any:
    """`8` and `true` as lm-eval reads them; everything else stays text."""
    if not isinstance(text, str):
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        number = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return number if isinstance(number, int | float) or number is None else text


def open_model(
    rest: str,
    *,
    tokenizer: Tokenizer | str | None = None,
    max_length: int | str | None = None,
    chat: bool | str | None = None,
    choices: str = "generate",
    base_url: str | None = None,
    **args: Any,
) -> LmEvalModel:
    """A backend of lm-eval; every further option goes to it unchanged.

    Args:
        rest: its name in lm-eval, such as hf, vllm, local-completions; hf:PATH is short for pretrained=PATH.
        tokenizer: SPEC, or a tokenizer, that counts lengths; text without a scheme goes to the backend too.
        max_length: window in tokens; default what the backend knows of its model.
        chat: render with the chat template; default if the backend has one.
        choices: generate, or loglikelihood: closed questions are answered with the most likely option.
        base_url: address with its endpoint, as lm-eval wants it; one that ends in /v1 gets the endpoint.

    Raises:
        MissingExtra: lm-eval is not installed. ConfigError: an option that makes no sense.
    """
    if not rest:
        raise ConfigError("name a backend of lm-eval, as in lm-eval:hf --model-args pretrained=PATH")
    if importlib.util.find_spec("lm_eval") is None:
        raise MissingExtra(f"model 'lm-eval:{rest}' needs lm-eval 0.4.13 or newer; run: {INSTALL}")
    where = f"model 'lm-eval:{rest}', --model-args"
    if choices not in ("generate", "loglikelihood"):
        raise ConfigError(f"{where} choices: {choices!r} is neither generate nor loglikelihood")
    found = {name: _value(value) for name, value in args.items()}
    rest, _, source = rest.partition(":")
    if source:
        found.setdefault("model" if base_url is not None or "completions" in rest else "pretrained", source)
    if base_url is not None:
        ending = "/chat/completions" if "chat" in rest else "/completions"
        found["base_url"] = base_url.rstrip("/") + (ending if base_url.rstrip("/").endswith("/v1") else "")
    counter = None
    if isinstance(tokenizer, str) and ":" not in tokenizer and tokenizer not in ("words", "bytes"):
        found["tokenizer"] = tokenizer
    else:
        counter = read_tokenizer(tokenizer)
    return LmEvalModel(
        rest,
        found,
        tokenizer=counter,
        window=None if max_length is None else read_length(max_length, f"{where} max_length"),
        chat=None if chat is None else read_flag(chat, f"{where} chat"),
        by_likelihood=choices == "loglikelihood",
    )
