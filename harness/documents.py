"""Files as texts: plain text, PDF, HTML, a column of JSON, JSONL, CSV or Parquet, chat logs. What was done is noted.

The digest is that of the bytes on disk, so that a pinned file is known again whatever is read out of it.
"""

import csv
import hashlib
import io
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from longreach.harness.errors import DataError, MissingExtra

CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
"""Control characters that no text needs."""


Text = tuple[str, tuple[str, ...]]
"""A text and notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The text of one file, uncleaned."""

    text: str
    digest: str
    """16 hex digits of the SHA-256 of the file."""
    notes: tuple[str, ...] = ()


def file_digest(data: bytes) -> str:
    """16 hex digits of the SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()[:16]


def read_bytes(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}; check the path and its permissions"
        ) from error


def decode(path: Path, data: bytes) -> str:
    """The text of a file's bytes: UTF-8, or UTF-16 with a byte-order mark.

    Raises:
        DataError: binary, or of another encoding.
    """
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not {encoding.upper()} text (byte {error.start:,} is 0x{data[error.start]:02x}); "
            f"convert it, for example with: iconv -f latin1 -t utf-8"
        ) from error
    n_control = len(CONTROL.findall(text))
    if n_control > max(16, len(text) // 20):
        raise DataError(f"{path} looks binary ({n_control:,} control characters); give a plain text file")
    return text


def read_document(path: Path, column: str = "") -> Document:
    """The text of one file by the ending of its name; plain text for endings that mean nothing here.

    Args:
        column: of JSON, JSONL, CSV or Parquet, the key whose texts are read, a blank line between two rows.

    Raises:
        DataError: unreadable, binary, without such a column. MissingExtra: a library for the format is not installed.
    """
    data = read_bytes(path)
    suffix = path.suffix.lower()
    if column:
        if suffix not in _ROWS:
            raise DataError(
                f"{path} has no columns to take {column!r} from; columns are read from {', '.join(_ROWS)} files"
            )
        rows = _ROWS[suffix](path, data)
        found: Text = texts_of(rows, column, str(path)), (f"column {column!r} of {len(rows):,} rows",)
    elif suffix in _FORMATS:
        found = _FORMATS[suffix](path, data)
    else:
        found = decode(path, data), ()
    return Document(text=found[0], digest=file_digest(data), notes=found[1])


def texts_of(rows: Iterable[Mapping[str, Any]], column: str, source: str) -> str:
    """The texts of one column, a blank line between two rows.

    Raises:
        DataError: a row without it, or one that is no text.
    """
    texts = []
    for number, row in enumerate(rows, 1):
        if column not in row:
            raise DataError(f"row {number:,} of {source} has no {column!r}; it has: {', '.join(map(str, row))}")
        value = row[column]
        if isinstance(value, list):
            value = transcript(value) if _is_chat(value) else None
        if not isinstance(value, str):
            raise DataError(
                f"{column!r} in row {number:,} of {source} is no text; name a column of texts or of messages"
            )
        texts.append(value.strip())
    return "\n\n".join(texts)


def transcript(messages: Sequence[Mapping[str, Any]]) -> str:
    """A conversation as `User: ...` and `Assistant: ...`, a line break between two turns."""
    turns = []
    for message in messages:
        content = message.get("content", message.get("value", ""))
        if isinstance(content, list):  # parts, of which only texts are read
            content = "\n".join(part.get("text", "") for part in content if isinstance(part, Mapping))
        role = str(message.get("role", message.get("from", "")))
        turns.append(f"{role.capitalize()}: {str(content or '').strip()}")
    return "\n".join(turns)


def _is_chat(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(item, Mapping) and (item.keys() >= {"role", "content"} or item.keys() >= {"from", "value"})
            for item in value
        )
    )


def _json_rows(path: Path, data: bytes) -> list[Mapping[str, Any]]:
    try:
        rows = json.loads(decode(path, data))
    except json.JSONDecodeError as error:
        raise DataError(f"{path} is not JSON (line {error.lineno}: {error.msg}); mend it, or name it .txt") from error
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise DataError(f"{path} is no list of objects; give a JSON list, or JSONL with one object a line")
    return rows


def _json_lines(path: Path, data: bytes) -> list[Mapping[str, Any]]:
    rows = []
    for number, line in enumerate(decode(path, data).splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise DataError(f"line {number:,} of {path} is not JSON ({error.msg}); mend it, or name it .txt") from error
        if not isinstance(rows[-1], Mapping):
            raise DataError(f"line {number:,} of {path} is no object; give one JSON object a line")
    return rows


def _csv_rows(path: Path, data: bytes) -> list[Mapping[str, Any]]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    return list(csv.DictReader(io.StringIO(decode(path, data).removeprefix("\ufeff"), newline=""), delimiter=delimiter))


def _parquet_rows(path: Path, data: bytes) -> list[Mapping[str, Any]]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra(f"{path} needs pyarrow; run: pip install 'longreach[parquet]'") from error
    rows: list[Mapping[str, Any]] = parquet.read_table(io.BytesIO(data)).to_pylist()
    return rows


_ROWS: Mapping[str, Callable[[Path, bytes], list[Mapping[str, Any]]]] = {
    ".json": _json_rows,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".csv": _csv_rows,
    ".tsv": _csv_rows,
    ".parquet": _parquet_rows,
}


def read_rows(path: Path) -> list[Mapping[str, Any]]:
    """The rows of a JSON, JSONL, CSV or Parquet file."""
    return _ROWS[path.suffix.lower()](path, read_bytes(path))


def has_rows(path: Path) -> bool:
    """True if `read_rows` knows the ending of the file's name."""
    return path.suffix.lower() in _ROWS


def _chat_or_text(path: Path, data: bytes) -> Text:
    """Chat logs as transcripts; any other JSON as the text that it is."""
    text = decode(path, data)
    try:
        rows = _ROWS[path.suffix.lower()](path, data)
    except DataError:
        return text, ()
    if _is_chat(rows):
        return transcript(rows), (f"chat log of {len(rows):,} turns",)
    for key in ("messages", "conversations"):
        if rows and all(_is_chat(row.get(key)) for row in rows):
            return "\n\n".join(transcript(row[key]) for row in rows), (f"chat log of {len(rows):,} conversations",)
    return text, ()


def _pdf(path: Path, data: bytes) -> Text:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise MissingExtra(f"{path} is a PDF; run: pip install 'longreach[pdf]'") from error
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # what it says about a broken file is said by our own line
    try:
        pages = [_reflowed(page.extract_text()) for page in PdfReader(io.BytesIO(data)).pages]
    except (PyPdfError, ValueError, KeyError, TypeError) as error:  # broken files fail inside pypdf in all these ways
        raise DataError(f"{path} cannot be read as PDF ({error}); save it anew, or give its text") from error
    finally:
        logger.setLevel(level)
    n_empty = sum(not page for page in pages)
    if n_empty == len(pages):
        raise DataError(
            f"{path} holds no text on its {len(pages):,} pages (scanned?); run text recognition on it first"
        )
    notes = [f"{len(pages):,} PDF page{'' if len(pages) == 1 else 's'}, lines joined to paragraphs"]
    if n_empty:
        notes.append(f"{n_empty:,} PDF page{'' if n_empty == 1 else 's'} without text")
    return "\n\n".join(page for page in pages if page), tuple(notes)


def _reflowed(page: str) -> str:
    """Lines of a page joined to paragraphs; a word parted at a line's end is whole again."""
    lines = "\n".join(line.strip() for line in page.splitlines())
    whole = re.sub(r"(?<=[^\W\d_])[-\u00ad]\n(?=[^\W\d_A-Z])", "", lines)
    return re.sub(r"(?<!\n)\n(?!\n)", " ", re.sub(r"\n{2,}", "\n\n", whole)).strip()


_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "head", "iframe", "object"})
_BLOCKS = """address article aside blockquote br dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li
main nav ol p pre section table td th tr ul"""
_BREAKS = frozenset(_BLOCKS.split())


class _Visible(HTMLParser):
    """Collects what a reader sees."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body":
            self._hidden.clear()  # a head that was never closed
        elif tag in _UNSEEN:
            self._hidden.append(tag)
        elif tag in _BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        elif tag in _BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(re.sub(r"\s+", " ", data))


def _html(path: Path, data: bytes) -> Text:
    parser = _Visible()
    parser.feed(decode(path, data))
    parser.close()
    lines = (re.sub(r" {2,}", " ", line).strip() for line in "".join(parser.parts).split("\n"))
    return "\n\n".join(line for line in lines if line), ("visible text of an HTML page",)


_FORMATS: Mapping[str, Callable[[Path, bytes], Text]] = {
    ".pdf": _pdf,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".json": _chat_or_text,
    ".jsonl": _chat_or_text,
    ".ndjson": _chat_or_text,
    ".parquet": lambda path, data: _needs_column(path),
}


def _needs_column(path: Path) -> Text:
    raise DataError(f"{path} is a table; name the column of its texts: {path}::COLUMN")
