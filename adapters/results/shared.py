"""Reading foreign result files: JSON, JSON lines and CSV with one clear line for what is broken."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from longreach.adapters.bridge import SCHEMA
from longreach.harness.errors import DataError
from longreach.harness.imported import ImportedTask
from longreach.harness.task import Capability, is_label


def files_below(paths: Sequence[Path], *patterns: str) -> list[Path]:
    """Files that were named, and those of the patterns in the folders that were named; sorted, each once.

    Raises:
        DataError: a path that does not exist, or nothing found.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            for pattern in patterns:
                found |= dict.fromkeys(sorted(file for file in path.rglob(pattern) if file.is_file()))
        elif path.is_file():
            found[path] = None
        else:
            raise DataError(f"there is no file or folder {path}; name what the other tool wrote")
    if not found:
        named = ", ".join(map(str, paths))
        raise DataError(f"{named} holds no {' or '.join(patterns)}; name the folder that the other tool wrote")
    return list(found)


def read_json(path: Path) -> Any:
    """One JSON document.

    Raises:
        DataError: unreadable or no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as JSON: {_short(error)}") from error


def read_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Number and object of each JSON line; blank lines are skipped.

    Raises:
        DataError: unreadable, or a line that is no JSON object; it is named.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    data = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise DataError(
                        f"{path}, line {number} is not JSON: {_short(error)}; copy the file again"
                    ) from error
                if not isinstance(data, Mapping):
                    raise DataError(f"{path}, line {number} is not a JSON object")
                yield number, data
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {_short(error)}") from error


def read_table(path: Path) -> list[list[str]]:
    """The rows of a CSV file.

    Raises:
        DataError: unreadable.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as CSV: {_short(error)}") from error


def texts(value: object) -> tuple[str, ...]:
    """A text, or a list of them, as a tuple; anything else is written out."""
    if value is None:
        return ()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(str(item) for item in value)
    return (str(value),)


def as_text(value: object) -> str:
    """A reply as text; null is the empty reply."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def whole(value: object) -> int | None:
    """A whole number above 0, from a number, its digits or `32k`; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip().lower().replace(",", "")
        factor = {"k": 1024, "m": 1024 * 1024}.get(text[-1:], 1)
        text = text[:-1] if factor > 1 else text
        value = int(text) * factor if text.isdecimal() else None
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None
    return value if isinstance(value, int) and value > 0 else None


def is_own(doc: Mapping[str, Any]) -> bool:
    """True for what `bridge.doc_of` writes: a sample of one of our own tasks that ran elsewhere."""
    return doc.get("longreach") == SCHEMA and isinstance(doc.get("task_id"), str)


class OwnDoc(BaseModel):
    """The fields of such a doc; a log may come from anywhere, so that each is checked."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    label: str
    task: str
    task_id: str
    version: int
    params: dict[str, Any]
    capability: Capability
    family: str
    chance: float = Field(ge=0, le=1)
    length: int = Field(ge=1)
    depth: float | None = Field(ge=0, le=1)
    index: int = Field(ge=0)
    seed: int
    is_beside: bool = False
    tokenizer: str
    tokenizer_spec: str | None = None
    target: list[str] = []
    placed: list[float] = []
    prompt_sha256: str | None = None
    n_tokens: int | None = Field(default=None, ge=1)
    groups: dict[str, str] = {}

    @field_validator("label")
    @classmethod
    def _label(cls, value: str) -> str:
        if not is_label(value):
            raise ValueError("no printable text, or a '|' in it")
        return value

    def imported(self) -> ImportedTask:
        """The task of the sample."""
        return ImportedTask(
            label=self.label,
            capability=self.capability,
            family=self.family,
            chance=self.chance,
            version=self.version,
            source="own",
            own={"task": self.task, "params": self.params, "id": self.task_id},
            is_beside=self.is_beside,
        )


def read_own(doc: Mapping[str, Any]) -> OwnDoc | str:
    """The fields of a sample of our own task, or in words which of them makes no sense."""
    try:
        return OwnDoc.model_validate(doc)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"a damaged sample of a longreach task: {'.'.join(map(str, first['loc']))}: {first['msg']}"


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:160]
