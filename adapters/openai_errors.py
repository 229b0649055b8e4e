"""What a chat-completions server says when something goes wrong, turned into our errors.

Servers disagree about everything but the status code, so that each rule here names who needs it. The limit that an
overflow message states is never read: one server is known to state a wrong one.
"""

import email.utils
import math
import re
import time
from collections.abc import Collection, Mapping
from typing import Any

from longreach.adapters.openai_rates import rates_of
from longreach.harness.errors import ContentFiltered, ContextOverflow, ModelError, ModelUnusable, PromptTooLarge

_OVERFLOW = (
    "context_length_exceeded",  # OpenAI
    "exceed_context_size_error",  # llama.cpp
    "maximum context length",  # OpenAI, vLLM
    "context length",  # SGLang, Ollama, LM Studio
    "context window",
    "available context size",  # llama.cpp
    "context size has been exceeded",  # llama.cpp, while it writes
    "max_new_tokens` must be",  # TGI
    "max_tokens must be at least 1",  # vLLM, when the prompt alone fills the window
    "prompt is too long",  # Anthropic
    "input is too long",
    "input length",
    "maximum prompt length",  # xAI
    "exceeds the maximum number of tokens",  # Google
    "exceeded model token limit",  # Moonshot
    "input_too_large",
)
_FILTERED = (
    "content_filter",
    "content_policy",
    "content management policy",
    "responsibleaipolicy",
    "moderation",
    "flagged",
)
_NO_QUOTA = ("insufficient_quota", "exceeded your current quota", "billing_hard_limit", "insufficient credits")
_REFUSED_PARAMETER = re.compile(
    r"unsupported|not supported|n't supported|does not support|unknown|unrecogni[sz]ed|unexpected|extra inputs|extra fields|"
    r"not permitted|not allowed|invalid|deprecated|instead|must be",
    re.IGNORECASE,
)
_KEYS = re.compile(r"(?i)\b(sk-[\w*.-]{6,}|bearer\s+\S+)")
_TRANSIENT = {408, 409, 425, 429}


def redact(text: str, secrets: Collection[str]) -> str:
    """`text` with every secret, and whatever looks like a key, replaced by `***`."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    return _KEYS.sub("***", text)


def retry_after_s(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, or `retry-after` as seconds or as an HTTP date.

    None if it does not ask, or asks for nothing that makes sense (junk, negative, a date that has passed).
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(value).timestamp() - (time.time() if now is None else now)
            except (TypeError, ValueError):
                continue
        if math.isfinite(seconds) and seconds >= 0.0:
            return seconds
    return None


def message_of(body: object) -> str:
    """The human sentence in an error body, whatever its shape; an HTML page gives its title. At most 400 characters."""
    while isinstance(body, Mapping):
        body = next((body[key] for key in ("error", "message", "detail", "msg") if body.get(key)), "")
    if isinstance(body, list):
        return "; ".join(message_of(item) for item in body)[:400]
    text = str(body or "")
    if "<html" in text.lower() or text.lstrip().lower().startswith("<!doctype"):
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        text = f"a web page{f' titled {title[1].strip()!r}' if title else ''}"
    return " ".join(text.split())[:400]


def _says(body: object, words: Collection[str]) -> bool:
    text = str(body).lower()
    return any(word in text for word in words)


def is_overflow(status: int | None, body: object) -> bool:
    """True if the server says that prompt and answer do not fit the window. `status` None: an error inside a stream."""
    if status in (None, 400, 413, 422):
        return _says(body, _OVERFLOW)
    return status == 500 and _says(body, ("context size has been exceeded",))


def rejected_parameter(status: int | None, body: object, sent: Collection[str]) -> str | None:
    """Which of the `sent` parameters a 400 or 422 refuses, or None if it is about something else."""
    if status not in (400, 422):
        return None
    error = body.get("error", body) if isinstance(body, Mapping) else body
    param = error.get("param") if isinstance(error, Mapping) else None
    if isinstance(param, str) and param.split(".")[0] in sent:
        return param.split(".")[0]
    text = str(body)
    if not _REFUSED_PARAMETER.search(text):
        return None
    named = {name: match.start() for name in sent if (match := re.search(rf"(?<![\w]){name}(?![\w])", text))}
    return min(named, key=lambda name: named[name]) if named else None


def error_from(
    status: int | None, body: object, headers: Mapping[str, str], *, host: str, answered: bool, secrets: Collection[str]
) -> ModelError:
    """The error that an HTTP status (None: an error inside a stream) and its body stand for.

    Args:
        answered: this endpoint has answered before, so that its configuration cannot be all wrong.
    """
    said = redact(message_of(body), secrets) or "no reason given"
    what = f"{host} says{f' {status}' if status is not None else ' in mid-stream'}: {said}"
    code = _code(body)
    if status is None and code is not None and code >= 400:
        status = code
    details: dict[str, Any] = {"status": status, "rates": rates_of(headers)}
    if is_overflow(status, body):
        return ContextOverflow(what, **details)
    if status in (None, 400, 403, 422, 451) and _says(body, _FILTERED):
        return ContentFiltered(what, **details)
    if status == 413 or (status == 429 and _says(body, ("request too large",))):
        return PromptTooLarge(f"{what}; that is a limit on one request, not the model's window", **details)
    if status == 402 or (status in (403, 429) and _says(body, _NO_QUOTA)):
        return ModelUnusable(f"{what}; this account has no quota left: add credit or use another key", **details)
    if status is None or status in _TRANSIENT or status >= 500:
        return ModelError(what, transient=True, retry_after_s=retry_after_s(headers), **details)
    if status in (401, 403):
        return ModelUnusable(f"{what}; check the key in OPENAI_API_KEY and what it may use", **details)
    if status in (404, 405):
        return ModelUnusable(
            f"{what}; check the model's name and that --base-url ends where the API begins (/v1)", **details
        )
    if answered:
        return ModelError(f"{what}; other requests were answered, so only this one is given up", **details)
    return ModelUnusable(f"{what}; no request has been answered yet, so the configuration is at fault", **details)


def _code(body: object) -> int | None:
    """The HTTP status that some servers put into the error object."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    value = error.get("code", error.get("status")) if isinstance(error, Mapping) else None
    return int(str(value)) if str(value).isdigit() else None
