"""Rows of Hugging Face data sets: `hf:NAME[@REVISION][/CONFIG][:SPLIT]`, by the library `datasets`, no code of the set run.

`datasets` keeps what it has read in its own cache, and reads it from there without the network. Which commit a spec
without one meant is remembered in ours, so that the same command works offline.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longreach.harness.documents import file_digest
from longreach.harness.errors import DataError, MissingExtra
from longreach.harness.files import replacing
from longreach.harness.hub import SPLITS, cache_folder, look_up

_SPEC = re.compile(
    r"hf:(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w.-]+))?(?:/(?P<config>[\w.-]+))?(?::(?P<split>[\w.-]+))?"
    r"(?:#(?P<digest>[0-9a-f]{16}))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsSpec:
    """One split of one data set."""

    name: str
    revision: str = ""
    config: str = ""
    split: str = ""
    digest: str = ""
    """16 hex digits of the SHA-256 of the rows, once pinned."""

    def __str__(self) -> str:
        marks = (("@", self.revision), ("/", self.config), (":", self.split), ("#", self.digest))
        return f"hf:{self.name}" + "".join(mark + part for mark, part in marks if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRows:
    """What a spec names, pinned to a commit and a split."""

    spec: RowsSpec
    license: str
    rows: tuple[Mapping[str, Any], ...]


def parse_rows(spec: str) -> RowsSpec:
    """The parts of `hf:NAME[@REVISION][/CONFIG][:SPLIT][#DIGEST]`.

    Raises:
        DataError: it is not of that form.
    """
    found = _SPEC.fullmatch(spec)
    if found is None:
        raise DataError(
            f"{spec!r} is not hf:NAME[@REVISION][/CONFIG][:SPLIT]; for example hf:zai-org/LongBench-v2:train"
        )
    return RowsSpec(**{name: part or "" for name, part in found.groupdict().items()})


def fetch_rows(spec: RowsSpec) -> HubRows:
    """The rows of a spec, from the hub or from what the library has kept.

    Raises:
        DataError: no such set, or no network and nothing kept. MissingExtra: no `datasets`.
    """
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra(f"{spec} needs the library datasets; run: pip install 'longreach[data]'") from error
    revision, license = _revision(spec)
    try:
        config, split = spec.config or None, spec.split
        if not split:
            splits = datasets.get_dataset_split_names(spec.name, config, revision=revision)
            split = next((name for name in SPLITS if name in splits), splits[0])
        rows = tuple(dict(row) for row in datasets.load_dataset(spec.name, config, revision=revision, split=split))
    except Exception as error:  # the library raises errors of several others; the way out is the same
        raise DataError(
            f"{spec.name!r} at {revision} cannot be read ({type(error).__name__}: {error}); check name, configuration and "
            f"network, or give a local copy of its files"
        ) from error
    found = HubRows(spec=replace(spec, revision=revision, split=split), license=license, rows=rows)
    _remember(spec, found)
    return found


def _revision(spec: RowsSpec) -> tuple[str, str]:
    """Commit and licence, asked of the hub, else remembered."""
    try:
        return look_up(spec.name, spec.revision, str(replace(spec, revision="COMMIT")))
    except DataError:
        if not (path := _note(spec)).exists():
            raise
        kept = json.loads(path.read_text(encoding="utf-8"))
        return str(kept["revision"]), str(kept["license"])


def _note(spec: RowsSpec) -> Path:
    asked = str(replace(spec, digest=""))
    return cache_folder() / f"rows-{file_digest(asked.encode())}.json"


def _remember(spec: RowsSpec, found: HubRows) -> None:
    path = _note(spec)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        json.dump({"spec": str(spec), "revision": found.spec.revision, "license": found.license}, file)


def digest_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """16 hex digits of the SHA-256 of rows as JSON lines with sorted keys."""
    sha = hashlib.sha256()
    for row in rows:
        line = json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
        sha.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return sha.hexdigest()[:16]
