"""Values of `--model-args`, which arrive as text, turned into what an opener needs."""

import json
import re
from collections.abc import Mapping
from typing import Any

from longreach.harness.errors import ConfigError
from longreach.harness.registry import open_tokenizer
from longreach.harness.tokenizer import Tokenizer

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmM]?)")
_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}


def read_length(value: object, where: str) -> int:
    """Tokens: `64k` is 65,536, `1M` is 1,048,576, `4000` is 4,000.

    Raises:
        ConfigError: not a length, or below 1; `where` says which option or file it came from.
    """
    match = _LENGTH.fullmatch(str(value).strip())
    tokens = float(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[match[2].lower()] if match else 0.0
    if tokens < 1 or tokens != int(tokens) or isinstance(value, bool):
        raise ConfigError(f"{where}: {value!r} is not a length in tokens; write it like 4000, 64k or 1M")
    return int(tokens)


def read_number(value: object, where: str, *, low: float = 0.0, high: float = float("inf")) -> float:
    """A finite number in [low, high].

    Raises:
        ConfigError: not a number, or outside.
    """
    try:
        number = float("nan") if isinstance(value, bool) else float(str(value))
    except ValueError:
        number = float("nan")
    if not low <= number <= high or number == float("inf"):
        bounds = f"from {low:g} to {high:g}" if high != float("inf") else f"of at least {low:g}"
        raise ConfigError(f"{where}: {value!r} is not a number {bounds}")
    return number


def read_flag(value: object, where: str) -> bool:
    """True or false, also as text.

    Raises:
        ConfigError: neither.
    """
    text = str(value).strip().lower()
    if text not in _TRUE | _FALSE:
        raise ConfigError(f"{where}: {value!r} is neither true nor false")
    return text in _TRUE


def read_mapping(value: object, where: str) -> dict[str, Any]:
    """A mapping, or a JSON object as text; None and empty text are the empty mapping.

    Raises:
        ConfigError: something else.
    """
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ConfigError(f"{where}: not a JSON object ({error})") from error
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: a JSON object is needed, not {value!r}")
    return {str(key): item for key, item in value.items()}


def read_tokenizer(value: Tokenizer | str | None) -> Tokenizer | None:
    """A tokenizer as it is, or the one that a SPEC names."""
    return open_tokenizer(value) if isinstance(value, str) else value
