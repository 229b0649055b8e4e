"""results.csv and the DataFrame: one row per sample, its last state, in an order that does not depend on the run."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from longreach.harness.files import replacing
from longreach.harness.record import COUNTED, Record

if TYPE_CHECKING:
    import pandas as pd

NAME = "results.csv"
COLUMNS = (
    "task",
    "length",
    "depth",
    "position_ratio",
    "iteration",
    "predicted",
    "target",
    "score",
    "correct",
    "outcome",
    "prompt_tokens",
    "output_tokens",
    "cached_tokens",
    "ttft_s",
    "latency_s",
    "cost_usd",
)
"""Columns of results.csv. `score` is the strict one; blank = does not apply or is not known."""
FRAME_COLUMNS = (*COLUMNS, "capability", "family")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\\r(?!\\n)")
"""What a terminal acts on instead of showing it: escape sequences, carriage returns, changes of writing direction."""


def ordered(records: Iterable[Record], labels: Sequence[str]) -> list[Record]:
    """Records by task (in the battery's order), length, depth and index."""
    rank = {label: number for number, label in enumerate(labels)}

    def place(record: Record) -> tuple[Any, ...]:
        depth = -1.0 if record.depth is None else record.depth
        return rank.get(record.task, len(rank)), record.task, record.length, depth, record.index, record.key

    return sorted(records, key=place)


def row(record: Record) -> dict[str, Any]:
    """The values of one record by column."""
    return {
        "task": record.task,
        "length": record.length,
        "depth": record.depth,
        "position_ratio": record.placed[0] if record.placed and record.depth is not None else None,
        "iteration": record.index,
        "predicted": record.text,
        "target": ", ".join(record.target),
        "score": record.score,
        "correct": record.score == 1.0 if record.outcome in COUNTED else None,
        "outcome": record.outcome,
        "prompt_tokens": record.n_prompt_tokens if record.n_prompt_tokens is not None else record.n_tokens,
        "output_tokens": record.n_output_tokens,
        "cached_tokens": record.n_cached_tokens,
        "ttft_s": record.ttft_s,
        "latency_s": record.latency_s,
        "cost_usd": record.cost_usd,
        "capability": record.capability,
        "family": record.family,
    }


def _cell(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula gets a quote in front; control characters are spelt out."""
    if not isinstance(value, str):
        return value
    text = _UNSEEN.sub(_spelt, value)
    return f"'{text}" if value.startswith(_FORMULA) else text


def _spelt(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


class _Lines:
    """Ends rows with a newline alone. The csv module quotes a lone carriage return only if rows end with one."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        self._file.write(text.removesuffix("\r\n") + "\n")


def write_csv(folder: Path, records: Iterable[Record]) -> Path:
    """Replaces results.csv as a whole."""
    path = folder / NAME
    with replacing(path, newline="") as file:
        writer = csv.writer(_Lines(file))
        writer.writerow(COLUMNS)
        for record in records:
            values: Mapping[str, Any] = row(record)
            writer.writerow([_cell(values[name]) for name in COLUMNS])
    return path


def frame(records: Iterable[Record]) -> "pd.DataFrame":
    """One row per record, columns as in FRAME_COLUMNS; texts as they are, unquoted."""
    import pandas as pd

    return pd.DataFrame([row(record) for record in records], columns=list(FRAME_COLUMNS))
