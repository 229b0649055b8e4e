"""MRCR: tables of replies beside OpenAI's or Google's columns (JSON lines or CSV), graded by the reference rule.

A row holds `answer`, the marker (`random_string_to_prepend`) and a reply (`response`, `output` or `prediction`); a `score` column
is used where the marker is missing. Lengths are the upper edges of the published bins (powers of two, o200k tokens).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from longreach.adapters.results.shared import as_text, files_below, read_lines, read_table, whole
from longreach.harness.errors import DataError, LongreachError
from longreach.harness.imported import ImportedRun, ImportedSample, ImportedTask, as_score
from longreach.harness.registry import open_tokenizer
from longreach.harness.scoring import COMPARED, sequence_ratio
from longreach.harness.tokenizer import Tokenizer, WordsTokenizer

REPLIES = ("response", "output", "prediction", "model_response", "raw_response")
LENGTHS = ("context_len", "n_tokens", "length", "bin")
_SHORTEST_BIN = 8192


def read(paths: Sequence[Path]) -> ImportedRun:
    """All tables below the paths.

    Raises:
        DataError: nothing there, or a file that cannot be read.
    """
    files = files_below(paths, "*.jsonl", "*.csv")
    samples: list[ImportedSample] = []
    strange: list[str] = []
    models: dict[str, None] = {}
    counter = _Counter()
    for path in files:
        for number, row in _rows(path):
            found = _sample(row, len(samples), counter)
            if isinstance(found, str):
                strange.append(f"{path.name}, row {number}: {found}")
                continue
            samples.append(found)
            models |= {str(row["model"]): None} if row.get("model") else {}
    if not samples:
        raise DataError(f"none of the {len(files)} files holds replies to MRCR: {'; '.join(strange[:3])}")
    if len(models) > 1:
        raise DataError(f"the rows are of several models ({', '.join(models)}); import one model at a time")
    return ImportedRun(
        tool="mrcr",
        model=next(iter(models), None),
        tasks=[
            ImportedTask(label=label, capability="reasoning", family="coreference", source="MRCR (OpenAI, Google)")
            for label in sorted({sample.task for sample in samples})
        ],
        samples=samples,
        tokenizer=counter.name,
        notes=(f"Replies are compared up to {COMPARED} times the length of their reference.",),
        not_understood=tuple(strange),
    )


def reference_score(reply: str, answer: str, marker: str) -> float:
    """OpenAI's grader: 0 without the marker in front, else the ratio of `difflib.SequenceMatcher` after it."""
    if not reply.startswith(marker):
        return 0.0
    return sequence_ratio(reply.removeprefix(marker), answer.removeprefix(marker))


class _Counter:
    """Tokens of a prompt, by o200k where its vocabulary can be had."""

    def __init__(self) -> None:
        self.name = "as the table states them"
        self._tokenizer: Tokenizer | None = None

    def count(self, text: str) -> int:
        if self._tokenizer is None:
            try:
                self._tokenizer, self.name = open_tokenizer("tiktoken:o200k_base"), "tiktoken:o200k_base"
            except LongreachError:
                self._tokenizer, self.name = WordsTokenizer(), "words (estimated)"
        return self._tokenizer.count(text)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if path.suffix == ".jsonl":
        yield from read_lines(path)
        return
    header, *rows = read_table(path) or [[]]
    for number, row in enumerate(rows, start=2):
        yield number, dict(zip(header, row, strict=False))


def _sample(row: Mapping[str, Any], index: int, counter: _Counter) -> ImportedSample | str:
    reply = next((as_text(row[name]) for name in REPLIES if name in row), None)
    answer, marker = as_text(row.get("answer")), as_text(row.get("random_string_to_prepend"))
    if reply is None or not answer:
        return f"no `answer`, or no reply under {', '.join(REPLIES)}"
    score = reference_score(reply, answer, marker) if marker else as_score(row.get("score"))
    if score is None:
        return "neither a marker (`random_string_to_prepend`) nor a `score` between 0 and 1"
    tokens = next((found for name in LENGTHS if (found := whole(row.get(name)))), None)
    if tokens is None and row.get("prompt"):
        tokens = counter.count(as_text(row["prompt"])) + counter.count(answer)
    if tokens is None:
        return f"its length is not stated under {', '.join(LENGTHS)}, and there is no `prompt`"
    needles = whole(row.get("n_needles") or row.get("num_relevant"))
    return ImportedSample(
        task=f"mrcr:{needles}needle" if needles else "mrcr:needles",
        length=max(_SHORTEST_BIN, 1 << (tokens - 1).bit_length()),
        index=index,
        outcome="scored" if reply.strip() else "no_answer",
        score=score if reply.strip() else 0.0,
        published=score,
        parts={"marker_missing": float(not reply.startswith(marker))} if marker else {},
        text=reply,
        target=(answer,),
        n_tokens=tokens,
    )
