"""Counts by the server itself: llama.cpp's `/tokenize` and `/apply-template`, or vLLM's `/tokenize`."""

import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np

from longreach.harness.errors import ConfigError
from longreach.harness.sample import Message
from longreach.harness.tokenizer import Spans, join_contents

TIMEOUT_S = 120.0
CHUNK = 262_144
"""Characters sent at once for spans."""


class ServerTokenizer:
    """One server's tokenizer and chat template over HTTP.

    Args:
        base_url: with or without the final `/v1`.
        model: name that vLLM wants; llama.cpp needs none.
        chat_template_kwargs: more arguments for the server's template.
    """

    is_estimate = False

    def __init__(
        self,
        base_url: str,
        model: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._base_url = base_url.rstrip("/").removesuffix("/v1")
        self._model = model
        self._api_key_env = api_key_env
        self._kwargs = dict(chat_template_kwargs or {})
        self.name = f"server:{self._base_url}"

    def count(self, text: str) -> int:
        return int(self._vllm(text)["count"]) if self._is_vllm else len(self._tokens(text))

    def spans(self, text: str) -> Spans:
        starts, ends = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        done = 0
        while done < len(text):
            cut = _blank_before(text, done + CHUNK, done)
            pieces = self._pieces(text[done:cut])
            sizes = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
            first, last = _to_characters(text[done:cut], b"".join(pieces), sizes, self.name)
            starts.append(first + done)
            ends.append(last + done)
            done = cut
        return np.concatenate(starts), np.concatenate(ends)

    def render(self, messages: Sequence[Message], answer_prefix: str = "") -> str:
        if not self.knows_template:
            return join_contents(messages, answer_prefix)
        turns = [{"role": message.role, "content": message.content} for message in messages]
        if self._is_vllm:
            extra = {"chat_template_kwargs": self._kwargs} if self._kwargs else {}
            ids = self._post(
                "/tokenize", {**self._name_of_model, "messages": turns, "add_generation_prompt": True, **extra}
            )
            text = self._post("/detokenize", {**self._name_of_model, "tokens": ids["tokens"]})["prompt"]
        else:
            extra = {"chat_template_kwargs": self._kwargs} if self._kwargs else {}
            text = self._post("/apply-template", {"messages": turns, **extra})["prompt"]
        return str(text) + answer_prefix

    @cached_property
    def knows_template(self) -> bool:
        """True if the server renders messages for us."""
        probe = [{"role": "user", "content": "a"}]
        if self._is_vllm:
            return "tokens" in self._post("/tokenize", {**self._name_of_model, "messages": probe})
        try:
            return "prompt" in self._post("/apply-template", {"messages": probe})
        except ConfigError:
            return False

    @cached_property
    def _is_vllm(self) -> bool:
        """vLLM wants `prompt` and gives `count`; llama.cpp wants `content`."""
        body = {**self._name_of_model, "content": "a", "prompt": "a", "add_special": False, "add_special_tokens": False}
        return "count" in self._post("/tokenize", body)

    @property
    def _name_of_model(self) -> dict[str, str]:
        return {"model": self._model} if self._model else {}

    def _vllm(self, text: str) -> dict[str, Any]:
        body = {"prompt": text, "add_special_tokens": False, "return_token_strs": True}
        return self._post("/tokenize", {**self._name_of_model, **body})

    def _tokens(self, text: str, pieces: bool = False) -> list[Any]:
        body = {"content": text, "add_special": False, "parse_special": True, "with_pieces": pieces}
        tokens: list[Any] = self._post("/tokenize", body)["tokens"]
        return tokens

    def _pieces(self, text: str) -> list[bytes]:
        """The bytes of each token of `text`."""
        if self._is_vllm:
            table = _byte_level_table()
            return [_vocabulary_bytes(piece, table) for piece in self._vllm(text).get("token_strs") or ()]
        pieces = (token["piece"] for token in self._tokens(text, pieces=True))
        return [piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces]

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(self._api_key_env):
            headers["Authorization"] = f"Bearer {key}"
        url = self._base_url + path
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"'server:{self._base_url}' is no address; give one like server:http://127.0.0.1:8080")
        try:
            with urlopen(Request(url, data=data, headers=headers), timeout=TIMEOUT_S) as reply:
                answer: dict[str, Any] = json.loads(reply.read())
        except HTTPError as error:
            raise ConfigError(
                f"{url} answered HTTP {error.code}; this server cannot count tokens for us: "
                f"name a tokenizer with --tokenizer hf:PATH, gguf:PATH or words"
            ) from error
        except (URLError, OSError, ValueError) as error:
            raise ConfigError(
                f"{url} gave no answer ({getattr(error, 'reason', error)}); start the server, or name a tokenizer with "
                f"--tokenizer hf:PATH, gguf:PATH or words"
            ) from error
        return answer


def _blank_before(text: str, high: int, low: int) -> int:
    """The last blank between two words before `high`, so that no token reaches over the cut."""
    if high >= len(text):
        return len(text)
    at = text.rfind(" ", low + 1, high)
    while at > low and not (text[at - 1].isalnum() and text[at + 1 : at + 2].isalpha()):
        at = text.rfind(" ", low + 1, at)
    return at if at > low else high


def _to_characters(text: str, data: bytes, sizes: "np.ndarray[Any, np.dtype[np.int64]]", name: str) -> Spans:
    """Spans in characters from each token's number of bytes."""
    if data != text.encode("utf-8", "replace"):
        raise ConfigError(
            f"the pieces that {name} gives do not add up to the text, so prompts cannot be built with it; "
            f"name a tokenizer with --tokenizer hf:PATH or gguf:PATH"
        )
    ends = np.cumsum(sizes)
    keep = sizes > 0
    starts = ends - sizes
    raw = np.frombuffer(data, dtype=np.uint8)
    character = np.cumsum((raw & 0xC0) != 0x80, dtype=np.int64) - 1
    first = np.where(keep, character[np.minimum(starts, max(raw.size - 1, 0))], 0)
    last = np.where(keep, character[np.maximum(ends - 1, 0)] + 1, 0)
    return np.maximum.accumulate(first), np.maximum.accumulate(last)


def _byte_level_table() -> dict[str, int]:
    """Vocabulary character -> byte, of the byte-level alphabet that GPT-2 introduced."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in plain}
    for number, byte in enumerate(byte for byte in range(256) if byte not in plain):
        table[chr(256 + number)] = byte
    return table


def _vocabulary_bytes(piece: str, table: Mapping[str, int]) -> bytes:
    """Bytes of a vocabulary entry: byte-level, or SentencePiece with its low line for a blank."""
    if "\u2581" not in piece and all(character in table for character in piece):
        return bytes(table[character] for character in piece)
    return piece.replace("\u2581", " ").encode()


def open_tokenizer(
    rest: str,
    model: str | None = None,
    api_key_env: str = "OPENAI_API_KEY",
    chat_template_kwargs: Mapping[str, Any] | None = None,
) -> ServerTokenizer:
    """`server:BASE_URL`; nothing is asked before the first count."""
    return ServerTokenizer(rest, model, api_key_env, chat_template_kwargs)
