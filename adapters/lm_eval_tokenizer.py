"""Which tokenizer counts the lengths of our tasks inside lm-eval.

In this order: the one that is named (model arguments or --metadata, which lm-eval hands over as one), the model's own
folder or hub id, the one of the export, the server's own, and at last the fallback, whose lengths are estimates.
"""

from collections.abc import Mapping
from typing import Any

from longreach.harness.errors import ConfigError
from longreach.harness.registry import open_tokenizer
from longreach.harness.tokenizer import Tokenizer

_SCHEMES = ("hf", "tiktoken", "gguf", "server")
_ENDINGS = ("/chat/completions", "/completions")


def choose_tokenizer(args: Mapping[str, Any], exported: str | None, lm: Any) -> tuple[Tokenizer, str, str]:
    """The tokenizer, its SPEC, and in words why it is that one.

    Args:
        args: model arguments and --metadata.
        exported: SPEC that the export or the caller named.
        lm: the backend, if it can be had.

    Raises:
        ConfigError: one that is named cannot be opened.
    """
    named = args.get("tokenizer")
    if isinstance(named, str) and named:
        spec = named if named in ("bytes", "words") or named.partition(":")[0] in _SCHEMES else f"hf:{named}"
        return open_tokenizer(spec), spec, "named by --model_args or --metadata tokenizer"
    if exported is not None:
        return open_tokenizer(exported), exported, "named when the tasks were made"
    source = args.get("pretrained") or getattr(getattr(lm, "tokenizer", None), "name_or_path", None)
    if isinstance(source, str) and source:
        return open_tokenizer(f"hf:{source}"), f"hf:{source}", "the model's own"
    if isinstance(args.get("base_url"), str):
        spec = f"server:{_root(args['base_url'])}"
        model = args.get("model")
        try:
            found = open_tokenizer(spec, model=str(model) if model else None)
            found.count("a")
        except ConfigError:
            return open_tokenizer("words"), "words", "the server cannot count for us"
        return found, spec, "the server's own"
    return open_tokenizer("words"), "words", "no tokenizer is known"


def _root(url: str) -> str:
    """The address without the endpoint, which lm-eval's base_url holds."""
    for ending in _ENDINGS:
        url = url.rstrip("/").removesuffix(ending)
    return url
