"""The words of RULER's tasks: the lists of the package `wonderwords` 3.0.1, by index and never as six million pairs.

RULER draws from whatever version is installed; its own counts (912 adjectives, 6,782 nouns, 8,166 words) are those of
3.0.1, so that another version is refused. A pair is an adjective and a noun drawn apart: the same words as RULER's
sorted list of all pairs, without writing the list.
"""

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from longreach.harness.errors import DataError, MissingExtra

_INSTALL = "pip install 'wonderwords==3.0.1'"
_DIGESTS = {"noun": "8d88b3ebc2e2969e", "adjective": "66814d46b7e292c8", "verb": "9fbf5e4e69b8869a"}
"""First 16 hex digits of the SHA-256 of each list in wonderwords 3.0.1."""


@cache
def word_list(kind: str) -> tuple[str, ...]:
    """The list `noun`, `adjective` or `verb`, without repeats, in its own order.

    Raises:
        MissingExtra: the package is not installed. DataError: it is another version.
    """
    try:
        found = distribution("wonderwords")
    except PackageNotFoundError as error:
        raise MissingExtra(f"RULER's words need the package wonderwords 3.0.1; run: {_INSTALL}") from error
    path = Path(str(found.locate_file(f"wonderwords/assets/{kind}list.txt")))
    data = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(data).hexdigest()[:16] != _DIGESTS[kind]:
        raise DataError(f"{path} of wonderwords {found.version} is not the list that RULER used; run: {_INSTALL}")
    return tuple(dict.fromkeys(line.strip() for line in data.decode().splitlines() if line.strip()))


@cache
def vocabulary() -> tuple[str, ...]:
    """All different nouns, adjectives and verbs, sorted."""
    return tuple(sorted({*word_list("noun"), *word_list("adjective"), *word_list("verb")}))
