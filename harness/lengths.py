"""Numbers as people write them: `4k`, `1M`, lists of lengths and depths, and lengths for printing."""

import re
from collections.abc import Iterable

from longreach.harness.errors import ConfigError

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmM]?)")
LONGEST = 1 << 24
"""Tokens: 16M. Texts for more do not fit into the memory of most machines, and a slip of the unit should not fill it."""
_UNITS = {"": 1, "k": 1024, "m": 1024 * 1024}


def parse_length(value: str | int) -> int:
    """Tokens: `k` = 1024, `M` = 1048576, `4000` is 4000.

    >>> parse_length("4k"), parse_length("1M"), parse_length("1.5k"), parse_length(4000)
    (4096, 1048576, 1536, 4000)
    """
    match = _LENGTH.fullmatch(str(value).strip().replace(",", "").replace("_", ""))
    if match is None or isinstance(value, bool):
        raise ConfigError(f"{value!r} is not a length; write a number of tokens such as 4000, 4k or 1M")
    tokens = float(match.group(1)) * _UNITS[match.group(2).lower()]
    if tokens > LONGEST:
        raise ConfigError(
            f"length {value!r} is above {format_length(LONGEST)} tokens, the longest there is; k is 1024 and M is 1024k"
        )
    if tokens < 1 or tokens != int(tokens):
        raise ConfigError(f"length {value!r} is not a whole number of tokens, at least 1")
    return int(tokens)


def split(value: str | float | Iterable[str | int | float]) -> list[str]:
    """The items of `a,b,c`, or of a list, as trimmed strings without empty ones."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, Iterable) else [value]
    return [text for part in parts if (text := str(part).strip())]


def parse_lengths(value: str | int | Iterable[str | int]) -> tuple[int, ...]:
    """Ascending lengths without repeats from `4k,8k` or a list.

    >>> parse_lengths("8k, 4k,4096")
    (4096, 8192)
    """
    found = tuple(sorted({parse_length(part) for part in split(value)}))
    if not found:
        raise ConfigError("the list of lengths is empty; write for example 4k,8k,16k")
    return found


def parse_depths(value: str | float | Iterable[str | float]) -> tuple[float, ...]:
    """Ascending depths in [0, 1] without repeats from `0,0.5,1` or a list."""
    found = set()
    for part in split(value):
        try:
            depth = float(part)
        except ValueError:
            depth = -1.0
        if not 0.0 <= depth <= 1.0:
            raise ConfigError(f"{part!r} is not a depth; write fractions from 0 (first) to 1 (last), such as 0,0.5,1")
        found.add(depth)
    if not found:
        raise ConfigError("the list of depths is empty; write for example 0,0.25,0.5,0.75,1")
    return tuple(sorted(found))


def format_length(tokens: int) -> str:
    """`4k` or `1M` where that is exact, else the number of tokens.

    >>> format_length(4096), format_length(1048576), format_length(4000)
    ('4k', '1M', '4000')
    """
    for unit, size in (("M", _UNITS["m"]), ("k", _UNITS["k"])):
        if tokens >= size and tokens % size == 0:
            return f"{tokens // size}{unit}"
    return str(tokens)


def format_threshold(value: float) -> str:
    """At least two digits, and as many as it has.

    >>> format_threshold(0.9), format_threshold(0.999)
    ('0.90', '0.999')
    """
    return max(f"{value:.2f}", f"{value:.6g}", key=len)
