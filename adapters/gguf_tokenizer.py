"""The tokenizer and chat template inside a GGUF file, without loading the model.

Only the header's key-value section is read (a few milliseconds; the tensors stay on disk). Byte-level BPE vocabularies
whose splitting rule is known here are rebuilt with `tokenizers`; others are refused by name.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from longreach.adapters.chat_template import ChatTemplate
from longreach.adapters.gguf_metadata import INSTALL, gguf_path, read_metadata
from longreach.adapters.hf_tokenizer import HfTokenizer
from longreach.harness.errors import ConfigError, MissingExtra

_CONTROL, _USER_DEFINED = 3, 4  # token types that are matched in the text before splitting

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
SPLITTERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r"), (r"\p{N}", _GPT2)),
    **dict.fromkeys(("gpt-2", "gpt2", "olmo"), (_GPT2,)),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3"), (_LLAMA3,)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), (_QWEN2,)),
}
"""Name of the splitting rule in the file (`tokenizer.ggml.pre`) -> its patterns, applied one after another."""
_IGNORE_MERGES = frozenset({"llama-bpe", "llama3", "llama-v3"})


@lru_cache(maxsize=4)
def _header(path: Path) -> Mapping[str, Any]:
    return read_metadata(path, vocabulary=True)


def _bpe(path: Path) -> Any:
    """A `tokenizers` tokenizer with the file's vocabulary."""
    try:
        from tokenizers import AddedToken, Regex, Tokenizer
        from tokenizers.models import BPE
        from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
    except ImportError as error:
        raise MissingExtra(f"GGUF tokenizers need the package 'tokenizers'; run: {INSTALL}") from error
    header = _header(path)
    model, rule = header.get("tokenizer.ggml.model"), header.get("tokenizer.ggml.pre", "default")
    way_out = "count with the model's server instead (--tokenizer server:URL), or give its tokenizer.json (hf:PATH)"
    if model != "gpt2":
        raise ConfigError(
            f"{path.name} has a tokenizer of type {model!r}; only byte-level BPE ('gpt2') is rebuilt here: {way_out}"
        )
    if rule not in SPLITTERS:
        raise ConfigError(
            f"{path.name} splits text by the rule {rule!r}, which is not one of {', '.join(sorted(SPLITTERS))}: {way_out}"
        )
    tokens: list[str] = header["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in header["tokenizer.ggml.merges"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(BPE(vocabulary, merges, ignore_merges=rule in _IGNORE_MERGES))
    splits = [Split(Regex(pattern), "isolated") for pattern in SPLITTERS[rule]]
    tokenizer.pre_tokenizer = Sequence([*splits, ByteLevel(add_prefix_space=False, use_regex=False)])
    kinds: list[int] = header.get("tokenizer.ggml.token_type") or [0] * len(tokens)
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind in (_CONTROL, _USER_DEFINED)]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    return tokenizer


def _template(path: Path, kwargs: Mapping[str, Any] | None) -> ChatTemplate | None:
    header = _header(path)
    source = header.get("tokenizer.chat_template")
    if not source:
        return None
    tokens = header.get("tokenizer.ggml.tokens", [])
    specials = {}
    for name, key in (("bos_token", "bos"), ("eos_token", "eos"), ("unk_token", "unknown"), ("pad_token", "padding")):
        number = header.get(f"tokenizer.ggml.{key}_token_id")
        specials[name] = tokens[number] if number is not None and number < len(tokens) else ""
    return ChatTemplate(source, specials, kwargs, add_bos=bool(header.get("tokenizer.ggml.add_bos_token", False)))


def open_tokenizer(rest: str, chat_template_kwargs: Mapping[str, Any] | None = None) -> HfTokenizer:
    """`gguf:PATH.gguf`, or `gguf:smollm2` for the embedded default model."""
    path = gguf_path(rest)
    tokenizer = _bpe(path)
    tokens = "\n".join(_header(path)["tokenizer.ggml.tokens"])
    digest = hashlib.sha256(tokens.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return HfTokenizer(f"gguf:{path.stem}@{digest}", tokenizer, _template(path, chat_template_kwargs))
