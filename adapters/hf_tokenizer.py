"""Hugging Face tokenizers: a tokenizer.json, a folder with one, or a hub id; with the chat template beside it."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longreach.adapters.chat_template import ChatTemplate
from longreach.harness.errors import ConfigError, MissingExtra
from longreach.harness.sample import Message
from longreach.harness.tokenizer import Spans, join_contents

if TYPE_CHECKING:
    from tokenizers import Tokenizer as RustTokenizer

CHUNK = 65_536
"""Characters encoded at once: two thirds of the time and a fifth of the memory of one piece."""
_OVERLAP = 200
_SAFE_CUT = re.compile(r"(?<=[^\W\d_][.!?]) (?=[^\W\d_])")
_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


class HfTokenizer:
    """Counts as a `tokenizers` tokenizer does, adding no special tokens of its own.

    With a chat template, control tokens written in the text count as such (`render` writes them); without one, all
    text is ordinary.
    """

    is_estimate = False

    def __init__(self, name: str, tokenizer: "RustTokenizer", template: ChatTemplate | None) -> None:
        self.name = name
        self._template = template
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = template is None
        self._tokenizer = tokenizer

    @property
    def knows_template(self) -> bool:
        return self._template is not None

    @property
    def fingerprint(self) -> str:
        """Vocabulary (its hash is in the name) and library, and whether control tokens in a text count as such."""
        import tokenizers

        return f"{self.name} {self._template is None} tokenizers {tokenizers.__version__}"

    def count(self, text: str) -> int:
        return sum(len(self._encode(piece)) for _, piece in self._chunks(text))

    def spans(self, text: str) -> Spans:
        arrays = [np.zeros((0, 2), dtype=np.int64)]
        for at, piece in self._chunks(text):
            arrays.append(np.array(self._encode(piece).offsets, dtype=np.int64).reshape(-1, 2) + at)
        whole = np.concatenate(arrays)
        return whole[:, 0].copy(), whole[:, 1].copy()

    def render(self, messages: Sequence[Message], answer_prefix: str = "") -> str:
        if self._template is None:
            return join_contents(messages, answer_prefix)
        return self._template.render(messages, answer_prefix)

    def _encode(self, text: str) -> Any:
        try:
            return self._tokenizer.encode(text, add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):  # lone surrogates
            return self._tokenizer.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False)

    def _chunks(self, text: str) -> Iterator[tuple[int, str]]:
        """The text in pieces that encode to the same tokens apart as together."""
        done = 0
        while len(text) - done > CHUNK:
            cut = self._safe_cut(text, done + CHUNK, done + 2 * CHUNK)
            if cut is None:
                break
            yield done, text[done:cut]
            done = cut
        if done < len(text):
            yield done, text[done:]

    def _safe_cut(self, text: str, low: int, high: int) -> int | None:
        """A blank after a sentence where the tokens on both sides are the same with and without the cut."""
        for tries, match in enumerate(_SAFE_CUT.finditer(text, low, min(high, len(text)))):
            at = match.start()
            left, right = text[at - _OVERLAP : at], text[at : at + _OVERLAP]
            if self._encode(left).ids + self._encode(right).ids == self._encode(left + right).ids:
                return at
            if tries == 8:
                break
        return None


@lru_cache(maxsize=4)
def _load_rust(path: Path) -> tuple["RustTokenizer", str]:
    """The tokenizer of a tokenizer.json, and 8 hex digits of its SHA-256."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtra(
            "Hugging Face tokenizers need the package 'tokenizers'; run: pip install 'longreach[embedded]'"
        ) from error
    data = path.read_bytes()
    try:
        tokenizer = Tokenizer.from_buffer(data)
    except Exception as error:  # tokenizers raises bare Exception
        raise ConfigError(f"{path} is not a tokenizer.json that 'tokenizers' can read: {error}") from error
    # Trimmed offsets would hide the white space that belongs to a token, and no specials may be added.
    tokenizer.post_processor = None
    return tokenizer, hashlib.sha256(data).hexdigest()[:8]


def _from_hub(name: str) -> Path:
    """Folder of a hub id's tokenizer files in the local cache, downloaded if need be (HF_HUB_OFFLINE is respected)."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtra(
            f"'hf:{name}' is no path, and hub ids need the package 'huggingface_hub'; run: pip install huggingface_hub"
        ) from error
    try:
        return Path(snapshot_download(name, allow_patterns=list(_FILES)))
    except (OSError, ValueError) as error:
        offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE") else ""
        raise ConfigError(
            f"the tokenizer 'hf:{name}' is neither a path nor to be had from the hub{offline} "
            f"({type(error).__name__}); give the path of a tokenizer.json, or use --tokenizer words"
        ) from error


def _find(rest: str) -> tuple[Path, str]:
    """tokenizer.json and a readable name."""
    if not rest:
        raise ConfigError("--tokenizer hf: needs a path or a hub id, for example hf:./my-model/tokenizer.json")
    path = Path(rest).expanduser()
    if path.is_file():
        return path, path.resolve().parent.name if path.name == "tokenizer.json" else path.stem
    if path.exists() or rest.startswith((".", "/", "~")):
        folder, name = path, path.resolve().name
    else:
        folder, name = _from_hub(rest), rest
    file = folder / "tokenizer.json"
    if not file.is_file():
        raise ConfigError(f"there is no tokenizer.json in {folder}; give a path or hub id that has one")
    return file, name


def _template(folder: Path, kwargs: Mapping[str, Any] | None) -> ChatTemplate | None:
    """The chat template beside a tokenizer.json, if there is one."""
    config_file, template_file = folder / "tokenizer_config.json", folder / "chat_template.jinja"
    config: dict[str, Any] = {}
    try:
        if config_file.is_file():
            config = json.loads(config_file.read_text(encoding="utf-8"))
        source = template_file.read_text(encoding="utf-8") if template_file.is_file() else config.get("chat_template")
    except ValueError as error:
        raise ConfigError(f"{config_file} is not JSON: {error}") from error
    if isinstance(source, list):  # several named templates
        source = next((item["template"] for item in source if item.get("name") == "default"), None)
    if not source:
        return None
    specials = {}
    for key in ("bos_token", "eos_token", "unk_token", "pad_token"):
        value = config.get(key)
        specials[key] = value.get("content", "") if isinstance(value, dict) else value or ""
    return ChatTemplate(source, specials, kwargs)


def open_tokenizer(rest: str, chat_template_kwargs: Mapping[str, Any] | None = None) -> HfTokenizer:
    """`hf:PATH_OR_ID`."""
    file, label = _find(rest)
    rust, digest = _load_rust(file)
    return HfTokenizer(f"hf:{label}@{digest}", rust, _template(file.parent, chat_template_kwargs))
