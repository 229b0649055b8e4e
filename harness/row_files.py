"""Files of rows, one row at a time: JSONL, a JSON list, CSV or Parquet. A row that cannot be read says why.

Files of half a gigabyte are common (LongBench v2): nothing here holds the whole of one.
"""

import codecs
import csv
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from longreach.harness.errors import DataError, MissingExtra

CHUNK = 1 << 20
"""Characters that are read of a JSON list at once, at least."""
_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Broken:
    """What stands in the place of a row that cannot be read."""

    why: str


Found = tuple[str, Mapping[str, Any] | Broken]
"""Where a row stands in its file (`line 7`, `row 7`), and the row."""


def sha_of_file(path: Path) -> str:
    """SHA-256 of a file, 64 hex digits; read again only if its size or its time of change is another.

    Raises:
        DataError: it cannot be read.
    """
    try:
        facts = path.stat()
        return _sha(path, facts.st_size, facts.st_mtime_ns)
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}; check the path and its permissions"
        ) from error


@lru_cache(maxsize=256)
def _sha(path: Path, size: int, changed_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def iter_rows(path: Path) -> Iterator[Found]:
    """The rows of a file, by the ending of its name.

    Raises:
        DataError: no such kind of file, or one that is broken as a whole. MissingExtra: Parquet without pyarrow.
    """
    if path.suffix.lower() not in KINDS:
        raise DataError(f"{path} is no file of rows; give one that ends in {', '.join(KINDS)}, or a folder of those")
    return KINDS[path.suffix.lower()](path)


def _object(text: str) -> Mapping[str, Any] | Broken:
    try:
        value = json.loads(text)
    except RecursionError:
        return Broken("is nested too deeply")
    except ValueError as error:
        return Broken(f"is not JSON ({getattr(error, 'msg', error)})")
    return value if isinstance(value, dict) else Broken("is no JSON object")


def _lines(path: Path) -> Iterator[Found]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if not line.strip():
                continue
            try:
                yield f"line {number:,}", _object(line.decode())
            except UnicodeDecodeError as error:
                yield (
                    f"line {number:,}",
                    Broken(f"is not UTF-8 text (byte {error.start:,} is 0x{line[error.start]:02x})"),
                )


class _Buffer:
    """Decoded text of a file, read as it is needed."""

    def __init__(self, path: Path) -> None:
        self.path, self.text, self.at, self.line, self.is_whole = path, "", 0, 1, False
        self._file = path.open("rb")
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode

    def close(self) -> None:
        self._file.close()

    def more(self) -> None:
        """Drops what was taken and reads on, at least as much as there is."""
        self.text, self.at = self.text[self.at :], 0
        data = self._file.read(max(CHUNK, len(self.text)))
        self.is_whole = not data
        try:
            self.text += self._decode(data, self.is_whole)
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path} is not UTF-8 text after line {self.line:,}; convert it") from error

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in _SPACE:
                self.line += self.text[self.at] == "\n"
                self.at += 1
            if self.at < len(self.text) or self.is_whole:
                return self.text[self.at : self.at + 1]
            self.more()

    def take(self) -> Any:
        """The next JSON value.

        Raises:
            ValueError, RecursionError: there is none.
        """
        while True:
            try:
                value, end = json.JSONDecoder().raw_decode(self.text, self.at)
            except ValueError:
                if self.is_whole:
                    raise
                self.more()
                continue
            self.line += self.text.count("\n", self.at, end)
            self.at = end
            return value


def _items(path: Path) -> Iterator[Found]:
    """The objects of a JSON list; a file of JSON lines that is named .json is read too."""
    buffer = _Buffer(path)
    try:
        first = buffer.peek()
        if first == "{":
            yield from _lines(path)
            return
        if first != "[":
            raise DataError(f"{path} is no list of objects; give a JSON list, or JSONL with one object a line")
        buffer.at += 1
        number = 0
        while (sign := buffer.peek()) != "]":
            number += 1
            where = f"row {number:,} (line {buffer.line:,})"
            if sign != "{":
                raise DataError(f"{where} of {path} is no object; give a JSON list of objects")
            try:
                yield where, buffer.take()
            except (ValueError, RecursionError) as error:
                why = getattr(error, "msg", "nested too deeply")
                raise DataError(f"{where} of {path} is not JSON ({why}); mend the file") from error
            if buffer.peek() == ",":
                buffer.at += 1
            elif buffer.peek() != "]":
                raise DataError(f"{path} ends or breaks off after {where}; get the whole file")
    finally:
        buffer.close()


def _table(path: Path) -> Iterator[Found]:
    before = csv.field_size_limit(sys.maxsize)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
            line = 2
            for row in reader:
                where, line = f"line {line:,}", reader.line_num + 1
                if None in row or None in row.values():
                    yield where, Broken("has more or fewer cells than the header")
                else:
                    yield where, row
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a table ({error}); save it as UTF-8 CSV") from error
    finally:
        csv.field_size_limit(before)


def _parquet(path: Path) -> Iterator[Found]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtra(f"{path} needs pyarrow; run: pip install 'longreach[parquet]'") from error
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=16):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number:,}", row
    except (ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet ({error}); get the file anew") from error


KINDS: Mapping[str, Callable[[Path], Iterator[Found]]] = {
    ".jsonl": _lines,
    ".ndjson": _lines,
    ".json": _items,
    ".csv": _table,
    ".tsv": _table,
    ".parquet": _parquet,
}
"""Ending of a file's name -> its rows."""
