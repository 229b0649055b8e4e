"""OpenAI's tokenizers through tiktoken: an encoding or model name, or a rank file; no chat template."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longreach.harness.errors import ConfigError, DataError, UnknownName
from longreach.harness.sample import Message
from longreach.harness.tokenizer import Spans, join_contents

if TYPE_CHECKING:
    import tiktoken

_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_RANK_FILES = {
    100_256: ("cl100k_base", _CL100K),
    199_998: ("o200k_base", _O200K),
    50_280: ("p50k_base", _GPT2),
    50_256: ("r50k_base", _GPT2),
}
"""Number of ranks in a file -> the public encoding that it belongs to, and that encoding's splitting rule."""


class TiktokenTokenizer:
    """Counts as tiktoken's `encode_ordinary` does; text that spells a special token is ordinary text."""

    knows_template = False
    is_estimate = False

    def __init__(self, rest: str) -> None:
        self._rest = rest

    @cached_property
    def name(self) -> str:
        return f"tiktoken:{self._encoding.name}"

    @cached_property
    def fingerprint(self) -> str:
        """Encoding and library; the library checks its vocabularies by hash, and the name of a file's has one."""
        import tiktoken

        return f"{self.name} {self._encoding.n_vocab} {self._encoding._pat_str} tiktoken {tiktoken.__version__}"

    @cached_property
    def _encoding(self) -> "tiktoken.Encoding":
        return _load(self._rest)

    @cached_property
    def _token_bytes(self) -> NDArray[np.int64]:
        """Bytes of each token id; 0 where there is no such id."""
        ranks: dict[bytes, int] = self._encoding._mergeable_ranks
        sizes = np.zeros(max(ranks.values()) + 1, dtype=np.int64)
        sizes[np.fromiter(ranks.values(), dtype=np.int64)] = np.fromiter(map(len, ranks), dtype=np.int64)
        return sizes

    def count(self, text: str) -> int:
        return int(self._ids(text).size)

    def spans(self, text: str) -> Spans:
        ends = np.cumsum(self._token_bytes[self._ids(text)])
        starts = np.append(0, ends[:-1]) if ends.size else ends
        return byte_spans_to_characters(text, starts, ends)

    def render(self, messages: Sequence[Message], answer_prefix: str = "") -> str:
        return join_contents(messages, answer_prefix)

    def _ids(self, text: str) -> NDArray[Any]:
        try:
            ids: NDArray[Any] = self._encoding.encode_to_numpy(text, disallowed_special=())
        except UnicodeEncodeError:
            ids = self._encoding.encode_to_numpy(text.encode("utf-8", "replace").decode(), disallowed_special=())
        except BaseException as error:
            # Endless white space overflows the regex stack: a ValueError or a PanicException, which is no Exception.
            if not isinstance(error, ValueError) and type(error).__name__ != "PanicException":
                raise
            raise DataError(
                "tiktoken cannot encode this text, which holds a run of several hundred thousand blanks; shorten it"
            ) from error
        return ids


def byte_spans_to_characters(text: str, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Spans:
    """Spans in UTF-8 bytes as spans in characters; a token that splits a character reports the whole character."""
    if text.isascii() or not starts.size:
        return starts, ends
    data = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)
    character = np.cumsum((data & 0xC0) != 0x80, dtype=np.int64) - 1
    return character[starts], character[ends - 1] + 1


@lru_cache(maxsize=4)
def _load(rest: str) -> "tiktoken.Encoding":
    import tiktoken

    path = Path(rest).expanduser()
    if path.is_file():
        return _from_file(path)
    names = tiktoken.list_encoding_names()
    try:
        if rest in names:
            return tiktoken.get_encoding(rest)
        return tiktoken.encoding_for_model(rest)
    except KeyError as error:
        raise UnknownName(
            f"tiktoken knows no encoding, model or rank file {rest!r}; encodings: {', '.join(names)}"
        ) from error
    except (OSError, ValueError) as error:  # requests' errors are OSErrors; a damaged cache is a ValueError
        raise ConfigError(
            f"the vocabulary of 'tiktoken:{rest}' is not on this machine and cannot be downloaded "
            f"({type(error).__name__}): set TIKTOKEN_CACHE_DIR to a folder that holds it, or name another tokenizer with "
            f"--tokenizer hf:PATH or gguf:PATH, or count by a fixed rule with --tokenizer words"
        ) from error


def _from_file(path: Path) -> "tiktoken.Encoding":
    import tiktoken

    data = path.read_bytes()
    try:
        pairs = (line.split() for line in data.splitlines() if line)
        ranks = {base64.b64decode(token, validate=True): int(rank) for token, rank in pairs}
    except ValueError as error:
        raise ConfigError(f"{path} is not a tiktoken rank file (a base64 token and its rank on each line)") from error
    if len(ranks) not in _RANK_FILES:
        raise ConfigError(
            f"{path} holds {len(ranks):,} ranks, which belong to no known encoding; "
            f"give its tokenizer.json with --tokenizer hf:PATH"
        )
    known, pattern = _RANK_FILES[len(ranks)]
    name = f"{known}@{hashlib.sha256(data).hexdigest()[:8]}"
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def open_tokenizer(rest: str) -> TiktokenTokenizer:
    """`tiktoken:NAME_OR_FILE`; the vocabulary is loaded at once, so that a missing one is said before anything runs."""
    tokenizer = TiktokenTokenizer(rest or "cl100k_base")
    _ = tokenizer.name
    return tokenizer
