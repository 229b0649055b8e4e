"""Rows of a published set: a local file or folder, or a data set of the hub at a pinned revision; checked, with digest.

    data/longbench.json                     JSONL, a JSON list, CSV or Parquet; a folder: all such files in it, by name
    hf:NAME[@REVISION][/CONFIG][:SPLIT]     the library `datasets` (extra `data`), no code of the set is run

`pin_rows` adds what was found (`file:PATH#DIGEST`, `hf:NAME@COMMIT...#DIGEST`), so that a run is only ever gone on with
on the same rows. Rows are held once per process. Lone surrogates become U+FFFD, and strings that a tokenizer would take
for control tokens are spaced apart, as in every haystack; `notes` says how many.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from longreach.harness.data import tidied
from longreach.harness.errors import DataError
from longreach.harness.hub_rows import HubRows, digest_of, fetch_rows, parse_rows
from longreach.harness.row_files import KINDS, Broken, Found, iter_rows, sha_of_file

Types = Mapping[str, type | tuple[type, ...]]
"""Column -> type of its values: str, int, float, bool, list or dict. In a CSV all but str are written as JSON."""
Check = Callable[[Mapping[str, Any]], str | None]
"""What is wrong with a row, as the end of a sentence (`has the answer 'E', which is none of A, B, C, D`), or None."""
_DIGEST = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row."""

    data: Mapping[str, Any]
    """The required columns, and those optional ones that it has."""
    index: int
    """Number of the row in the set, from 0; rows that were left out count."""
    where: str
    """File and line, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of one set, without those that were left out."""

    by_index: Mapping[int, Row]
    """In the order of the set."""
    n_all: int
    """Rows in the set, those that were left out too."""
    digest: str
    """16 hex digits of SHA-256: of the file, of the names and digests of a folder's files, of the rows of the hub."""
    source: str
    """Path, or `hf:NAME@COMMIT...`."""
    license: str
    excluded: tuple[str, ...]
    """Where the rows stood that were left out."""
    notes: tuple[str, ...]
    """What was changed in the texts, one whole phrase each."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows in the order of the set."""
        return tuple(self.by_index.values())

    def row(self, index: int) -> Row:
        """The row with that number.

        Raises:
            DataError: it was left out, or there is none.
        """
        if index not in self.by_index:
            raise DataError(f"{self.source} has no row {index + 1:,}, or it is excluded; it has {self.n_all:,} rows")
        return self.by_index[index]


def pin_rows(spec: str) -> str:
    """The spec with the digest of what is there now; for the hub also with the commit and the split.

    Raises:
        DataError: nothing there, it cannot be read, or it is not what was pinned.
    """
    if spec.startswith("hf:"):
        asked = parse_rows(spec)
        found, sha = _fetched(str(replace(asked, digest="")))
        _check_pin(str(found.spec), sha, asked.digest)
        return f"{found.spec}#{sha}"
    path, pinned = _local(spec)
    sha = _digest_of_path(path)
    _check_pin(str(path), sha, pinned)
    return f"file:{path}#{sha}"


def read_rows(
    spec: str,
    columns: Types,
    *,
    optional: Types | None = None,
    exclude: Iterable[str | int] = (),
    key: str | None = None,
    check: Check | None = None,
    file: str | None = None,
) -> Rows:
    """The rows of a set, checked; read once per process.

    Args:
        spec: path, `file:PATH#DIGEST` or `hf:NAME[@REVISION][/CONFIG][:SPLIT][#DIGEST]`.
        columns: what each row must have.
        optional: what it may have besides; other columns are dropped.
        exclude: rows to leave out: a number (from 1), the value of the column `key`, or the row's digest (16 hex digits
            of the SHA-256 of its JSON, keys sorted, no blanks).
        key: column that names a row.
        check: a look at the values of a row.
        file: of a folder, only the files of this name, ending left out.

    Raises:
        DataError: nothing there, not what was pinned, a bad row (the first is named by file and line), a row to leave
            out that is not there. MissingExtra: a library for the format is not installed.
    """
    return _read(spec, tuple(columns.items()), tuple((optional or {}).items()), tuple(exclude), key, check, file)


@lru_cache(maxsize=64)
def _read(
    spec: str,
    columns: tuple[tuple[str, Any], ...],
    optional: tuple[tuple[str, Any], ...],
    exclude: tuple[str | int, ...],
    key: str | None,
    check: Check | None,
    file: str | None,
) -> Rows:
    source, sha, license, found = _open(spec, file)
    unused = {str(name) for name in exclude}
    by_digest = any(_DIGEST.fullmatch(name) for name in unused)
    kept: dict[int, Row] = {}
    excluded: list[str] = []
    bad: list[str] = []
    n_all = n_tidied = 0
    for n_all, (where, value) in enumerate(found, 1):
        names = {str(n_all)}
        if key is not None and isinstance(value, Mapping):
            names.add(str(value.get(key)))
        if by_digest and isinstance(value, Mapping):
            names.add(digest_of_row(value))
        if names & {str(name) for name in exclude}:
            unused -= names
            excluded.append(where)
            continue
        row = value if isinstance(value, Broken) else _typed(value, columns, optional)
        problem = row.why if isinstance(row, Broken) else check(row) if check is not None else None
        if problem is not None or isinstance(row, Broken):
            bad.append(f"{where} {problem}")
            continue
        data, n = _tidied(row)
        n_tidied += n
        kept[n_all - 1] = Row(data=data, index=n_all - 1, where=where)
    if bad:
        more = f" (and {len(bad) - 1:,} more bad rows)" if len(bad) > 1 else ""
        raise DataError(f"{bad[0]}{more}; mend the data, or leave bad rows out by their numbers: exclude=[...]")
    if unused:
        raise DataError(f"exclude names {', '.join(sorted(unused))}, which is no row of {source}; take it out")
    if not kept:
        raise DataError(f"{source} holds no rows; give a file with some")
    notes = (f"{n_tidied:,} lone surrogates and special-token strings spaced apart or replaced",) if n_tidied else ()
    return Rows(
        by_index=kept,
        n_all=n_all,
        digest=sha,
        source=source,
        license=license,
        excluded=tuple(excluded),
        notes=notes,
    )


def digest_of_row(row: Mapping[str, Any]) -> str:
    """16 hex digits of the SHA-256 of a row as JSON, keys sorted, no blanks."""
    line = json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.sha256(line.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _open(spec: str, file: str | None) -> tuple[str, str, str, Iterator[Found]]:
    """Source, digest, licence and rows of a spec, each row with file and line."""
    if spec.startswith("hf:"):
        asked = parse_rows(spec)
        hub, sha = _fetched(str(replace(asked, digest="")))
        _check_pin(str(hub.spec), sha, asked.digest)
        rows = ((f"row {number:,} of {hub.spec}", row) for number, row in enumerate(hub.rows, 1))
        return str(hub.spec), sha, hub.license, rows
    path, pinned = _local(spec)
    sha = _digest_of_path(path)
    _check_pin(str(path), sha, pinned)
    return str(path), sha, "as the file's owner says", _rows_of(path, file)


def _check_pin(source: str, sha: str, pinned: str) -> None:
    if pinned and sha != pinned:
        raise DataError(
            f"{source} has changed since it was pinned (digest {sha}, pinned {pinned}); put the old data back, or start a "
            f"new run folder"
        )


def _local(spec: str) -> tuple[Path, str]:
    """Path and pinned digest of `PATH` or `file:PATH#DIGEST`."""
    pinned = ""
    if spec.startswith("file:"):
        spec = spec.removeprefix("file:")
        name, _, last = spec.rpartition("#")
        if name and _DIGEST.fullmatch(last):
            spec, pinned = name, last
    path = Path(spec).expanduser()
    if not path.exists():
        raise DataError(
            f"there is no file or folder {str(path)!r}; give a {', '.join(KINDS)} file, a folder of them, or "
            f"hf:NAME[@REVISION][/CONFIG][:SPLIT]"
        )
    return path, pinned


def _files(path: Path) -> tuple[Path, ...]:
    if not path.is_dir():
        return (path,)
    files = tuple(sorted(file for file in path.rglob("*") if file.is_file() and file.suffix.lower() in KINDS))
    if not files:
        raise DataError(f"the folder {path} holds no {', '.join(KINDS)} files; give one with some")
    return files


def _digest_of_path(path: Path) -> str:
    if not path.is_dir():
        return sha_of_file(path)[:16]
    lines = [f"{file.relative_to(path).as_posix()}\0{sha_of_file(file)}\n" for file in _files(path)]
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _rows_of(path: Path, name: str | None) -> Iterator[Found]:
    files = _files(path)
    if path.is_dir() and name is not None:
        files = tuple(file for file in files if file.stem == name)
        if not files:
            raise DataError(
                f"the folder {path} has no {name} ({', '.join(KINDS)}); give the folder or file that holds it"
            )
    for file in files:
        for where, row in iter_rows(file):
            yield f"{where} of {file}", row


@lru_cache(maxsize=4)
def _fetched(spec: str) -> tuple[HubRows, str]:
    found = fetch_rows(parse_rows(spec))
    return found, digest_of(found.rows)


def _typed(row: Mapping[str, Any], columns: Iterable[tuple[str, Any]], optional: Iterable[tuple[str, Any]]) -> Any:
    """The wanted columns of a row in their types, or Broken."""
    found = {}
    for name, kind in columns:
        if name not in row:
            return Broken(f"has no column {name!r}; it has: {', '.join(map(str, row))}")
        found[name] = _as(row[name], kind)
        if not _is(found[name], kind):
            return Broken(f"has {name!r} of type {type(found[name]).__name__}, not {_name(kind)}")
    for name, kind in optional:
        if row.get(name) is not None and row[name] != "":
            found[name] = _as(row[name], kind)
            if not _is(found[name], kind):
                return Broken(f"has {name!r} of type {type(found[name]).__name__}, not {_name(kind)}")
    return found


def _as(value: Any, kind: Any) -> Any:
    """A cell of a CSV in its type, where it can be read so."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if isinstance(value, str) and str not in kinds:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _is(value: Any, kind: Any) -> bool:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds) or (float in kinds and isinstance(value, int))


def _name(kind: Any) -> str:
    return " or ".join(item.__name__ for item in (kind if isinstance(kind, tuple) else (kind,)))


def _tidied(value: Any) -> tuple[Any, int]:
    """`value` with all its texts fit to be sent, and how many places that changed."""
    if isinstance(value, str):
        return tidied(value)
    if isinstance(value, Mapping):
        pairs = {name: _tidied(item) for name, item in value.items()}
        return {name: item for name, (item, _) in pairs.items()}, sum(n for _, n in pairs.values())
    if isinstance(value, list):
        found = [_tidied(item) for item in value]
        return [item for item, _ in found], sum(n for _, n in found)
    return value, 0
