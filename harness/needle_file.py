"""The user's own needles: CSV, TSV, JSON, JSONL or YAML, one row per needle.

Columns or keys: `needle`, `question`, `answer` (several accepted ones split by `|`, or a list), and optionally `id`,
`kind` (number: any written form counts; exact: nothing but the answer; fuzzy: nearly the answer; else: whole words),
`language`, `distractors` (wrong answers, split like answers: naming one beside the right one earns nothing).
Values are text as written: 007 stays 007 and yes stays yes in every format. Strings that tokenizers take for control
tokens are spaced apart, as in haystacks.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from longreach.harness.data import neutralise, read_text_file
from longreach.harness.errors import DataError
from longreach.harness.numbers import parse_number
from longreach.harness.scoring import contains, normalise, number

COLUMNS = ("needle", "question", "answer", "id", "kind", "language", "distractors")
FORMATS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedleRow:
    """One needle of a user's file."""

    needle: str
    question: str
    answer: tuple[str, ...]
    """Accepted answers; any is enough."""
    id: str
    """The user's, or the row's number from 1."""
    kind: str = ""
    language: str = ""
    distractors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader of the results should know about this row."""


def read_needles(spec: str) -> tuple[NeedleRow, ...]:
    """The rows of a pinned needle file.

    Args:
        spec: "file:PATH#DIGEST" as `data.pin` gives it, or a bare path, which is not checked for changes.

    Raises:
        DataError: unreadable, changed since it was pinned, of no known format, or a row that cannot be used (named by
            file and line).
    """
    path, pinned = _split(spec)
    text, digest = read_text_file(path)
    if pinned and digest != pinned:
        raise DataError(
            f"needle file {path} has changed since it was pinned (digest {digest}, pinned {pinned}); "
            f"put the old file back, or start a new run folder"
        )
    return parse_needles(text, path)


def pin_needles(path_or_spec: str) -> str:
    """The spec of a needle file: `file:PATH#DIGEST`, by its content as it is now.

    Raises:
        DataError: no such file, a folder, unreadable, or empty.
    """
    path = _split(path_or_spec)[0].expanduser()
    if not path.exists():
        raise DataError(f"there is no needle file {str(path)!r}; give a .csv, .tsv, .json, .jsonl or .yaml file")
    if path.is_dir():
        raise DataError(f"needle file {path} is a folder; name the one file in it that holds the needles")
    text, digest = read_text_file(path)
    if not text.strip("\ufeff \t\r\n"):
        raise DataError(f"needle file {path} is empty; give rows with needle, question and answer")
    return f"file:{path}#{digest}"


def _split(spec: str) -> tuple[Path, str]:
    path, mark, digest = spec.removeprefix("file:").rpartition("#")
    if mark and re.fullmatch(r"[0-9a-f]{16}", digest):
        return Path(path), digest
    return Path(spec.removeprefix("file:")), ""


def parse_needles(text: str, path: Path) -> tuple[NeedleRow, ...]:
    """The rows of a needle file's text; `path` gives format and name for messages."""
    text = text.removeprefix("\ufeff")
    suffix = path.suffix.lower()
    if suffix in FORMATS:
        found = _delimited(text, path, FORMATS[suffix])
    elif suffix in (".jsonl", ".ndjson"):
        found = _json_lines(text, path)
    elif suffix == ".json":
        found = _json(text, path)
    elif suffix in (".yaml", ".yml"):
        found = _yaml(text, path)
    else:
        raise DataError(f"needle file {path} ends in {suffix!r}; known endings: .csv .tsv .json .jsonl .yaml")
    rows = tuple(_row(entry, f"{path}, line {line}", place) for place, (line, entry) in enumerate(found, 1))
    if not rows:
        raise DataError(f"needle file {path} holds no needle; give rows with needle, question and answer")
    _check_unique(rows, path)
    return rows


Entries = Iterator[tuple[int, Any]]
"""Line number from 1, and what stands there."""


def _delimited(text: str, path: Path, delimiter: str) -> Entries:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    line = 1
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = [cell.strip().lower() for cell in cells]
                _check_header(header, path)
            elif len(cells) > len(header):
                raise DataError(
                    f"{path}, line {start}: {len(cells)} cells under {len(header)} column names; put cells that hold "
                    f"a {'comma' if delimiter == ',' else 'tab'} in double quotes"
                )
            else:
                yield start, dict(zip(header, cells, strict=False))
    except csv.Error as error:
        raise DataError(f"{path}, line {line}: {error}; check the double quotes there") from error


def _check_header(header: list[str], path: Path) -> None:
    missing = [name for name in COLUMNS[:3] if name not in header]
    if missing:
        raise DataError(
            f"{path}, line 1: no column {' and no column '.join(map(repr, missing))} among {', '.join(header)}; "
            f"the first line names the columns: {', '.join(COLUMNS)}"
        )


# Numbers keep the characters that they were written with: an answer 007 or 1.50 is text.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def _json_lines(text: str, path: Path) -> Entries:
    for line, content in enumerate(text.split("\n"), 1):
        if content.strip():
            try:
                yield line, _DECODER.decode(content)
            except ValueError as error:
                raise DataError(f"{path}, line {line}: not JSON ({error}); one object a line") from error


def _json(text: str, path: Path) -> Entries:
    """Entries of a list, one by one, so that each is known by its line."""
    position = _after_blank(text, 0)
    if text[position : position + 1] == "{":  # {"needles": [...]}
        match = re.compile(r'\{\s*"needles"\s*:\s*').match(text, position)
        position = match.end() if match else position
    if text[position : position + 1] != "[":
        raise DataError(f"{path}, line 1: a JSON needle file is a list of objects")
    position = _after_blank(text, position + 1)
    while text[position : position + 1] != "]":
        line = text.count("\n", 0, position) + 1
        try:
            entry, position = _DECODER.raw_decode(text, position)
        except ValueError as error:
            raise DataError(f"{path}, line {line}: not JSON ({error})") from error
        yield line, entry
        position = _after_blank(text, position)
        if text[position : position + 1] == ",":
            position = _after_blank(text, position + 1)
        elif text[position : position + 1] != "]":
            line = text.count("\n", 0, position) + 1
            raise DataError(f"{path}, line {line}: a comma or a closing bracket is missing here")


def _after_blank(text: str, position: int) -> int:
    while text[position : position + 1].isspace():
        position += 1
    return position


def _yaml(text: str, path: Path) -> Entries:
    try:
        # BaseLoader is the safe loader without guesses: it makes text, lists and mappings, and nothing else.
        node = yaml.compose(text, Loader=yaml.BaseLoader)
        data = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise DataError(f"{path}, line {line}: not YAML ({getattr(error, 'problem', error)})") from error
    if isinstance(node, yaml.MappingNode) and isinstance(data, dict) and list(data) == ["needles"]:
        node, data = node.value[0][1], data["needles"]
    if not isinstance(node, yaml.SequenceNode) or not isinstance(data, list):
        raise DataError(f"{path}, line 1: a YAML needle file is a list of mappings, each beginning with '- needle:'")
    for child, entry in zip(node.value, data, strict=True):
        yield child.start_mark.line + 1, entry


def _row(entry: Any, where: str, place: int) -> NeedleRow:
    if not isinstance(entry, Mapping):
        raise DataError(f"{where}: a needle is a mapping with needle, question and answer, not {str(entry)[:60]!r}")
    cells = {str(key).strip().lower(): value for key, value in entry.items()}
    notes = tuple(f"column {key!r} is not used" for key in cells if key not in COLUMNS)
    needle, question = _text(cells, "needle", where), _text(cells, "question", where)
    answer = _several(cells, "answer", where)
    if not answer:
        raise DataError(f"{where}: the cell 'answer' is empty; an empty answer would match anything")
    distractors = _several(cells, "distractors", where)
    shared = {normalise(item) for item in answer} & {normalise(item) for item in distractors}
    if shared:
        raise DataError(f"{where}: {min(shared)!r} is both an answer and a distractor; remove one of the two")
    told = next((item for item in answer if contains(question, (item,))), None)
    if told is not None and not any(contains(question, (item,)) for item in distractors):
        raise DataError(
            f"{where}: the question holds its answer {told!r}, so that no needle is needed; take it out of the question, "
            f"or name the other choices that it offers as distractors"
        )
    if not any(_holds(needle, item) for item in answer):
        notes += (f"no accepted answer stands in needle {place}: it has to be inferred",)
    return NeedleRow(
        needle=needle,
        question=question,
        answer=answer,
        id=str(cells.get("id") or place).strip(),
        kind=str(cells.get("kind") or "").strip().lower(),
        language=str(cells.get("language") or "").strip().lower(),
        distractors=distractors,
        notes=notes,
    )


def _holds(needle: str, answer: str) -> bool:
    """True if the answer stands in the needle, a number in any written form."""
    return contains(needle, (answer,)) or (parse_number(answer) is not None and number(needle, (answer,)))


def _text(cells: Mapping[str, Any], name: str, where: str) -> str:
    value = cells.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: the cell {name!r} is empty or not text; each row needs needle, question and answer")
    return neutralise(value.strip())


def _several(cells: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = cells.get(name)
    if value is None:
        return ()
    items = value if isinstance(value, list) else str(value).split("|")
    if isinstance(value, (bool, Mapping)) or not all(isinstance(item, str) for item in items):
        raise DataError(f"{where}: {name!r} is a text, several split by '|', or a list of texts; put it in quotes")
    kept = tuple(dict.fromkeys(neutralise(item.strip()) for item in items))
    if name == "answer" and any(not normalise(item) for item in kept):
        raise DataError(f"{where}: one of the answers is empty; an empty answer would match anything")
    return tuple(item for item in kept if item)


def _check_unique(rows: tuple[NeedleRow, ...], path: Path) -> None:
    seen: dict[str, str] = {}
    for row in rows:
        if row.id in seen:
            raise DataError(f"{path}: two needles have the id {row.id!r}; ids name needles in results")
        seen[row.id] = row.needle
