"""Server-sent events of a chat or text completion, put together to one Response.

Kept apart from the network: `Collector.feed` takes one decoded chunk (or a whole unstreamed reply) and the time it came.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from longreach.harness.errors import ModelError
from longreach.harness.model import Finish, Response

DONE = object()
"""What `events` gives for the closing `[DONE]`."""
_THINK = {"<think>": "</think>", "<thinking>": "</thinking>", "<reasoning>": "</reasoning>"}
_FINISH: Mapping[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filter",
    "safety": "filter",
    "refusal": "filter",
}
_ABORTED = {"error", "abort", "cancelled"}


async def events(lines: AsyncIterator[str]) -> AsyncIterator[Any]:
    """Decoded `data:` fields of a stream, one JSON value each; comments and other fields are passed over.

    Raises:
        ModelError: (transient) a field that is not JSON.
    """
    async for line in lines:
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data.startswith("[DONE]"):
            yield DONE
        elif data:
            try:
                yield json.loads(data)
            except ValueError as error:
                raise ModelError(f"broken stream: an event is not JSON ({error})", transient=True) from error


class ThinkSplitter:
    """Takes reasoning in `<think>` tags off the front of an answer that arrives in pieces.

    A tag that is never closed makes all of it reasoning. A closing tag without an opening one (the template wrote that)
    makes what stood before it reasoning.
    """

    def __init__(self) -> None:
        self.reasoning = ""
        self.answer = ""
        self._close: str | None = None
        self._decided = False
        self._closed = False

    def feed(self, piece: str) -> None:
        """Add the next piece of content."""
        if self._close is not None:
            self.reasoning += piece
            self._end_reasoning(len(self.reasoning) - len(piece))
            return
        before = len(self.answer)
        self.answer += piece.lstrip() if self._closed and not self.answer else piece
        if not self._decided:
            self._open()
        elif not self._closed and "</think>" in self.answer[max(0, before - 8) :]:
            self.reasoning, _, rest = self.answer.partition("</think>")
            self.answer, self._closed = rest.lstrip(), True

    def _open(self) -> None:
        start = self.answer.lstrip()
        tag = next((tag for tag in _THINK if start.startswith(tag)), None)
        if tag is not None:
            self._close, self._decided = _THINK[tag], True
            self.reasoning, self.answer = start[len(tag) :], ""
            self._end_reasoning(0)
        elif not any(tag.startswith(start) for tag in _THINK):
            self._decided = True
            whole, self.answer = self.answer, ""
            self.feed(whole)

    def _end_reasoning(self, before: int) -> None:
        close = self._close or ""
        end = self.reasoning.find(close, max(0, before - len(close)))
        if end >= 0:
            self.answer = self.reasoning[end + len(close) :].lstrip()
            self.reasoning = self.reasoning[:end]
            self._close, self._closed = None, True


class Collector:
    """Reply so far. Times are seconds since sending."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self.ttft_s: float | None = None
        self.ttft_answer_s: float | None = None
        self.rates: Mapping[str, float] = {}
        """What the headers said about the endpoint's limits."""
        self._content = ThinkSplitter()
        self._reasoning = ""
        self._refusal = ""
        self._usage: Mapping[str, Any] = {}
        self._raw: dict[str, Any] = {}

    def feed(self, chunk: Any, at_s: float) -> bool:
        """Add a chunk; True if it brought text of any kind.

        Raises:
            ModelError: (transient) the chunk is not an object, or the server broke off.
        """
        if not isinstance(chunk, Mapping):
            raise ModelError(f"broken stream: an event is {type(chunk).__name__}, not an object", transient=True)
        if isinstance(chunk.get("usage"), Mapping):  # comes with empty choices in the last chunk
            self._usage = chunk["usage"]
        for name in ("model", "system_fingerprint"):
            if isinstance(chunk.get(name), str):
                self._raw[name] = _without_folder(chunk[name])
        choices = chunk.get("choices") or []
        choice = next((item for item in choices if isinstance(item, Mapping) and not item.get("index")), None)
        if choice is None:
            return False
        came = self._take(choice)
        if came and self.ttft_s is None:
            self.ttft_s = at_s
        if not self._content.answer.strip():
            self.ttft_answer_s = None
        elif self.ttft_answer_s is None:
            self.ttft_answer_s = at_s
        if choice.get("finish_reason") is not None:
            self.finish_reason = str(choice["finish_reason"])
            if self.finish_reason in _ABORTED:
                raise ModelError(f"the server broke off ({self.finish_reason})", transient=True)
        return came

    def _take(self, choice: Mapping[str, Any]) -> bool:
        delta = choice.get("delta") or choice.get("message") or {}
        content, thought = _parts(delta.get("content") or choice.get("text"))
        thought = str(delta.get("reasoning_content") or delta.get("reasoning") or "") + thought
        refusal = str(delta.get("refusal") or "")
        self._reasoning += thought
        self._refusal += refusal
        if content:
            self._content.feed(content)
        return bool(content or thought or refusal)

    def response(self, latency_s: float, *, streamed: bool, adapted: Mapping[str, str]) -> Response:
        """The whole reply.

        Raises:
            ModelError: (transient) the reply ended without a finish reason: some of it may be missing.
        """
        if self.finish_reason is None:
            raise ModelError("broken stream: the reply ended without a finish reason", transient=True)
        raw = dict(self._raw, finish_reason=self.finish_reason)
        if adapted:
            raw["adapted"] = dict(adapted)
        if self.rates:
            raw["rates"] = dict(self.rates)
        if self._refusal:
            raw["refusal"] = self._refusal[:400]
        reasoning = self._reasoning + self._content.reasoning
        return Response(
            text=self._content.answer,
            reasoning=reasoning or None,
            finish="filter" if self._refusal else _FINISH.get(self.finish_reason, "stop"),
            n_prompt_tokens=_count(self._usage, "prompt_tokens"),
            n_output_tokens=_count(self._usage, "completion_tokens"),
            n_reasoning_tokens=_count(self._usage, "reasoning_tokens", "completion_tokens_details"),
            n_cached_tokens=_count(self._usage, "cached_tokens", "prompt_tokens_details"),
            ttft_s=self.ttft_s if streamed else None,
            ttft_answer_s=self.ttft_answer_s if streamed else None,
            latency_s=latency_s,
            raw=raw,
        )


MOST_COUNTED = 2**53 - 1
"""Above it a JSON number is no longer exact, and no prompt is so long."""


def _without_folder(name: str) -> str:
    """llama.cpp calls a model by the path of its file, which is nobody's business; a name such as org/model stays."""
    is_path = name.startswith(("/", "~", "./", "../", "\\\\")) or (name[1:2] == ":" and name[2:3] in ("\\", "/"))
    return name.replace("\\", "/").rpartition("/")[2] if is_path else name


def _parts(content: object) -> tuple[str, str]:
    """Text and reasoning of a content that may be a list of parts."""
    if not isinstance(content, list):
        return str(content or ""), ""
    text = thought = ""
    for part in content:
        if isinstance(part, Mapping) and "thinking" in part:
            thought += _parts(part["thinking"])[0]
        elif isinstance(part, Mapping):
            text += str(part.get("text") or "")
    return text, thought


def _count(usage: Mapping[str, Any], name: str, within: str | None = None) -> int | None:
    """A number of tokens; None (unknown) is not 0, and a server's -1 or 10**30 is unknown too."""
    inner = usage.get(within) if within is not None else usage
    value = inner.get(name) if isinstance(inner, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNTED else None
