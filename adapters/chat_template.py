"""Chat templates (Jinja, as Hugging Face and GGUF files carry them), rendered in a sandbox, the same on every day."""

import datetime
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from longreach.harness.errors import ConfigError
from longreach.harness.sample import Message

if TYPE_CHECKING:
    from jinja2 import Template

FIXED_DAY = datetime.date(2024, 7, 26)
"""What a template gets that asks for today's date: the same prompt must have the same bytes tomorrow."""


class ChatTemplate:
    """One template with its special tokens and the user's arguments.

    Args:
        source: Jinja text.
        specials: `bos_token`, `eos_token` and the like, as the template names them.
        kwargs: more arguments (`--chat-template-kwargs`), for example `enable_thinking`.
        add_bos: the server puts a begin-of-text token in front even if the template writes none.
    """

    def __init__(
        self, source: str, specials: Mapping[str, str], kwargs: Mapping[str, Any] | None = None, add_bos: bool = False
    ) -> None:
        self._source = source
        self._specials = dict(specials)
        self._kwargs = dict(kwargs or {})
        self._add_bos = add_bos

    def render(self, messages: Sequence[Message], answer_prefix: str = "") -> str:
        """The text that the model reads, up to the point where it answers; begin-of-text at most once.

        Raises:
            ConfigError: the template is broken, or refuses these messages.
        """
        import jinja2

        turns = [{"role": message.role, "content": message.content} for message in messages]
        arguments = {**self._specials, "messages": turns, "add_generation_prompt": True, "tools": None, **self._kwargs}
        try:
            text = _compile(self._source).render(**arguments)
        except jinja2.TemplateError as error:
            raise ConfigError(
                f"the model's chat template refuses the messages ({error}); "
                f"change --system or --chat-template-kwargs, or name another tokenizer with --tokenizer"
            ) from error
        return self._one_bos(text) + answer_prefix

    def _one_bos(self, text: str) -> str:
        bos = self._specials.get("bos_token", "")
        if not bos:
            return text
        while text.startswith(bos + bos):
            text = text[len(bos) :]
        return bos + text if self._add_bos and not text.startswith(bos) else text


@lru_cache(maxsize=16)
def _compile(source: str) -> "Template":
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def tojson(value: object, indent: int | None = None, ensure_ascii: bool = False) -> str:
        return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = FIXED_DAY.strftime
    try:
        return environment.from_string(source)
    except TemplateError as error:
        raise ConfigError(f"the model's chat template is broken: {error}") from error
