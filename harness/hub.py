"""Texts of Hugging Face data sets: `hf:NAME[@REVISION][/CONFIG]::COLUMN`, pinned to a commit and to the text's digest.

What was read is kept in the user's cache, so that a run can be repeated without the network. A folder of JSONL, JSON,
CSV or Parquet files can stand in the place of NAME. Of the splits the first of test, validation, train is read, up to
MOST_CHARACTERS. The library `datasets` (extra `data`) is needed for what is not in the cache.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longreach.harness.documents import file_digest, has_rows, read_rows, texts_of
from longreach.harness.errors import DataError, MissingExtra
from longreach.harness.files import replacing

MOST_CHARACTERS = 24_000_000
"""Characters that are read of a data set: enough for three prompts of 1M tokens of English."""
SPLITS = ("test", "validation", "train")
HUB_PRESETS: Mapping[str, str] = {"pg19": "hf:emozilla/pg19::text"}
"""Named data sets; the revision is resolved when they are pinned. PG-19: Rae et al. 2020, books before 1919."""

_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSpec:
    """One column of one data set."""

    name: str
    revision: str
    config: str
    column: str
    digest: str = ""
    """16 hex digits of the SHA-256 of the text, once pinned."""

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        config = f"/{self.config}" if self.config else ""
        return f"hf:{self.name}{revision}{config}::{self.column}" + (f"#{self.digest}" if self.digest else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubText:
    """The text of a column."""

    text: str
    license: str
    revision: str
    notes: tuple[str, ...]


def parse_hub(spec: str) -> HubSpec:
    """The parts of `hf:NAME[@REVISION][/CONFIG]::COLUMN[#DIGEST]`.

    Raises:
        DataError: no name or no column.
    """
    body, _, digest = spec.removeprefix("hf:").partition("#")
    left, mark, column = body.rpartition("::")
    name, at, rest = left.partition("@")
    revision, _, config = rest.partition("/")
    if not at and not Path(name).expanduser().is_dir() and name.count("/") == 2:
        name, _, config = name.rpartition("/")
    if not mark or not name or not column:
        raise DataError(f"{spec!r} is not hf:NAME[@REVISION][/CONFIG]::COLUMN; for example hf:emozilla/pg19::text")
    return HubSpec(name=name, revision=revision, config=config, column=column, digest=digest)


def pin_hub(spec: str) -> str:
    """The spec with its commit and the digest of its text.

    Raises:
        DataError: no such data set or column, or no network and nothing in the cache. MissingExtra: no `datasets`.
    """
    parsed = parse_hub(spec)
    folder = Path(parsed.name).expanduser()
    found = _read_folder(folder, parsed) if folder.is_dir() else _fetched(parsed)
    pinned = HubSpec(
        name=parsed.name,
        revision=found.revision,
        config=parsed.config,
        column=parsed.column,
        digest=file_digest(found.text.encode("utf-8", "surrogatepass")),
    )
    if not folder.is_dir():
        _keep(pinned, found)
    return str(pinned)


def read_hub(spec: str) -> HubText:
    """The text of a pinned spec, from the cache where it is there.

    Raises:
        DataError: not pinned, or the text is not what was pinned.
    """
    parsed = parse_hub(spec)
    if not parsed.digest:
        raise DataError(f"{spec!r} is not pinned; give it with --corpus, which looks up its revision and digest")
    folder = Path(parsed.name).expanduser()
    found = _read_folder(folder, parsed) if folder.is_dir() else _kept(parsed) or _fetched(parsed)
    digest = file_digest(found.text.encode("utf-8", "surrogatepass"))
    if digest != parsed.digest:
        raise DataError(
            f"{parsed.name} is not what was pinned (digest {digest}, pinned {parsed.digest}); "
            f"put the old text back, or start a new run folder"
        )
    return found


def _read_folder(folder: Path, spec: HubSpec) -> HubText:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and has_rows(path))
    if not files:
        raise DataError(f"the folder {folder} holds no JSONL, JSON, CSV or Parquet files; give one with some")
    text = "\n\n".join(texts_of(read_rows(path), spec.column, str(path)) for path in files)
    return HubText(
        text=text,
        license="as the files' owner says",
        revision="",
        notes=(f"column {spec.column!r} of {len(files):,} file{'' if len(files) == 1 else 's'}",),
    )


def _fetched(spec: HubSpec) -> HubText:
    """The text from the hub, or from the cache of `datasets`."""
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra(f"{spec} needs the library datasets; run: pip install 'longreach[data]'") from error
    revision, license = look_up(spec.name, spec.revision, f"hf:{spec.name}@COMMIT::{spec.column}")
    try:
        splits = datasets.get_dataset_split_names(spec.name, spec.config or None, revision=revision)
        split = next((name for name in SPLITS if name in splits), splits[0])
        rows = datasets.load_dataset(spec.name, spec.config or None, revision=revision, split=split, streaming=True)
        text = texts_of(_first(rows, spec.column), spec.column, spec.name)
    except DataError:
        raise
    except Exception as error:  # as above
        raise DataError(
            f"{spec.name!r} at {revision} cannot be read ({type(error).__name__}: {error}); check name, configuration and "
            f"network, or give a local folder of its files: hf:FOLDER::{spec.column}"
        ) from error
    return HubText(text=text, license=license, revision=revision, notes=(f"split {split!r}, column {spec.column!r}",))


def look_up(name: str, revision: str, mend: str) -> tuple[str, str]:
    """Commit and licence of a data set; a commit that is given is taken as it is when the hub cannot be asked.

    Args:
        mend: a spec with a commit, for the message.

    Raises:
        DataError: the hub cannot be asked, and no commit is given.
    """
    try:
        from huggingface_hub import HfApi

        facts = HfApi().dataset_info(name, revision=revision or None)
        return str(facts.sha), _license(facts)
    except Exception as error:  # the hub's client raises errors of several libraries; the way out is the same
        if not _COMMIT.fullmatch(revision):
            raise DataError(
                f"the revision of {name!r} cannot be looked up ({type(error).__name__}: {error}); go online once, "
                f"or name a commit: {mend}"
            ) from error
        return revision, "as its data card says"


def _license(facts: Any) -> str:
    card = getattr(facts, "card_data", None)
    return str((card.get("license") if card is not None else None) or "as its data card says")


def _first(rows: Iterable[Mapping[str, Any]], column: str) -> Iterator[Mapping[str, Any]]:
    """Rows until their texts are MOST_CHARACTERS long."""
    n_characters = 0
    for row in rows:
        yield row
        n_characters += len(str(row.get(column, "")))
        if n_characters >= MOST_CHARACTERS:
            return


def cache_folder() -> Path:
    """Where what was read of the hub is kept."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "longreach" / "hub"


def _cache_file(spec: HubSpec) -> Path:
    return cache_folder() / f"{file_digest(str(spec).encode())}.json"


def _keep(spec: HubSpec, found: HubText) -> None:
    path = _cache_file(spec)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        json.dump({"spec": str(spec), "license": found.license, "notes": list(found.notes), "text": found.text}, file)


def _kept(spec: HubSpec) -> HubText | None:
    path = _cache_file(spec)
    if not path.exists():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    return HubText(text=kept["text"], license=kept["license"], revision=spec.revision, notes=tuple(kept["notes"]))
