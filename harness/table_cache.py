"""Tables that take long to count, kept on disk: counts of texts under a tokenizer, found again by the hash of both.

A file is an npz without pickled objects; its name is the hash of what it was made from, which it also holds. A file that
is damaged, foreign or of another version is made anew, never trusted. Writers write beside and rename, so that two of them
do no harm. The folder is LONGREACH_CACHE, else `longreach` in XDG_CACHE_HOME or ~/.cache; LONGREACH_CACHE=off, or a folder
that cannot be written, means that nothing is kept. It never grows beyond MOST_BYTES: what was not used for longest goes.
"""

import hashlib
import os
import secrets
import zipfile
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longreach.harness.tokenizer import Tokenizer, innermost

Arrays = dict[str, NDArray[Any]]

VERSION = 1
"""Raised when the meaning of a table changes."""
MOST_BYTES = 1 << 30
_KEY = "key"
_UNREADABLE = (
    *(OSError, EOFError, ValueError, TypeError, KeyError, SyntaxError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)
"""What numpy raises for a file that is missing, damaged, or no npz of plain arrays."""
_PROBE = (
    "It's 3:45 p.m.; the price (in $) rose by 1,234.56 to 9876543210!\n\n\tdef main(x_1=None):\r\n    return {'a': [x_1]}\n"
    "ZZQV qpzlmw 3f2b8c1e-77aa-4d0f-9b1c-0e5d6a7f8b90 <|x|> 你好，世界。 Привет, мир! São Paulo — naïve café… "
    "مرحبا नमस्ते สวัสดี 한국어 😀👩‍👩‍👧  \n \n"
)


def folder() -> Path | None:
    """Where tables are kept; None if they are not."""
    given = os.environ.get("LONGREACH_CACHE")
    if given is not None:
        return None if given.strip().lower() in ("", "off", "0", "no", "false") else Path(given).expanduser() / "tables"
    home = os.environ.get("XDG_CACHE_HOME") or ""
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "longreach" / "tables"


def fingerprint(tokenizer: Tokenizer) -> str | None:
    """What the counts of a tokenizer depend on, in one string; None for one that does not say (a server's, a plug-in's).

    A tokenizer says so by a `fingerprint` of its own: name with the hash of its vocabulary, and the library's version. How
    it cuts a probing text comes to that.
    """
    inner = innermost(tokenizer)
    told = getattr(inner, "fingerprint", None)
    if not told:
        return None
    starts, ends = inner.spans(_PROBE)
    probe = hashlib.blake2b(starts.astype("<i8").tobytes() + ends.astype("<i8").tobytes(), digest_size=16).hexdigest()
    return f"{type(inner).__qualname__} {told} {probe}"


def cached(
    kind: str,
    tokenizer: Tokenizer | None,
    content: Iterable[str | bytes],
    make: Callable[[], Arrays],
    fits: Callable[[Arrays], bool],
) -> Arrays:
    """`make()`, or what it once gave for the same `content` and tokenizer.

    Args:
        kind: what the arrays are, a word; it begins the file's name.
        tokenizer: None where nothing is counted.
        content: all that the arrays depend on beside the tokenizer.
        fits: true if loaded arrays have the names, types and sizes that they must have.
    """
    place = folder()
    told = "" if tokenizer is None else fingerprint(tokenizer) if place is not None else None
    if place is None or told is None:
        return make()
    hashed = hashlib.blake2b(f"{VERSION} {_release()} {kind} {told}".encode(), digest_size=32)
    for part in content:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(data))
        hashed.update(data)
    key = hashed.hexdigest()
    path = place / f"{kind}-{key[:32]}.npz"
    found = _load(path, key)
    if found is not None and fits(found):
        return found
    made = make()
    _save(path, key, made)
    return made


def cached_text(
    kind: str, content: str, make: Callable[[], tuple[str, tuple[str, ...]]]
) -> tuple[str, tuple[str, ...]]:
    """A text and some facts about it, as `make()` gives them, or gave them for the same `content`."""

    def arrays() -> Arrays:
        text, facts = make()
        return {"text": np.frombuffer(text.encode(), dtype=np.uint8), "facts": np.array(facts)}

    def fits(found: Arrays) -> bool:
        return set(found) == {"text", "facts"} and found["text"].dtype == np.uint8 and found["facts"].dtype.kind == "U"

    found = cached(kind, None, (content,), arrays, fits)
    return str(found["text"].data, "utf-8"), tuple(found["facts"].tolist())


@cache
def _release() -> str:
    """Tables of another release were perhaps made by other rules."""
    return version("longreach")


def _load(path: Path, key: str) -> Arrays | None:
    """The arrays of a file; None if it is not there, or not what its name says."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
        os.utime(path)  # used just now
    except _UNREADABLE:
        return None
    held = found.pop(_KEY, None)
    return found if held is not None and held.dtype.kind == "U" and held.shape == () and str(held) == key else None


def _save(path: Path, key: str, arrays: Arrays) -> None:
    """Writes a file whole or not at all; where that cannot be, nothing is kept and the next one counts again."""
    whole: dict[str, Any] = {_KEY: np.array(key), **arrays}
    draft = path.with_name(f".{path.stem}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("xb") as file:
            np.savez(file, **whole)
        draft.replace(path)
        _prune(path.parent)
    except OSError:
        draft.unlink(missing_ok=True) if draft.parent.is_dir() else None


def _prune(place: Path) -> None:
    """Removes the tables that were not used for longest until the rest is below MOST_BYTES."""
    known = []
    for path in (*place.glob("*.npz"), *place.glob(".*.part")):
        try:
            facts = path.stat()
        except FileNotFoundError:  # another process pruned it
            continue
        known.append((facts.st_mtime, facts.st_size, path))
    total = sum(size for _, size, _ in known)
    for _, size, path in sorted(known):
        if total <= MOST_BYTES:
            break
        path.unlink(missing_ok=True)
        total -= size
