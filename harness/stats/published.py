"""Tables of published scores: averages and effective lengths as their authors reckon them, row by row.

RULER (Hsieh et al. 2024, readme of NVIDIA/RULER): the score at a length is the plain mean of 13 tasks; Avg the mean over
lengths; wAvg(inc) and wAvg(dec) weigh the k-th of n lengths by k and by n + 1 - k. Effective length: `effective_length`.
"""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from longreach.harness.errors import ConfigError, DataError
from longreach.harness.lengths import format_length, parse_length
from longreach.harness.stats.effective import Definition, Estimate, effective_length

RULER_TASKS = 13
_LENGTH_NAME = re.compile(r"(?:score|s|len|length)?[_ ]?(\d+(?:\.\d+)?[kKmM]?)")
_NAME_COLUMNS = ("model", "name")
_BASE_COLUMNS = ("base_score", "base")
_PRINTED_COLUMNS = ("effective_length", "effective")
_EMPTY = ("", "-", "--", "n/a", "na", "nan", "none")


def mean_of_tasks(scores: Mapping[str, float], n_tasks: int = RULER_TASKS) -> float:
    """RULER's score at one length: the plain mean over its tasks.

    Raises:
        ConfigError: not all of them are there; a mean of fewer is not RULER's.
    """
    if len(scores) != n_tasks:
        raise ConfigError(
            f"RULER's score is the mean of {n_tasks} tasks, and {len(scores)} are here; run the others too"
        )
    return sum(scores.values()) / n_tasks


def average(scores: Sequence[float]) -> float:
    """RULER's Avg: the plain mean over lengths."""
    return sum(scores) / len(scores)


def weighted_average(scores: Sequence[float], order: str) -> float:
    """RULER's wAvg over lengths in ascending order: `inc` weighs long ones more, `dec` short ones.

    >>> round(weighted_average([96.6, 96.3, 95.2, 93.2, 87.0, 81.2], "inc"), 1)
    89.0
    """
    if order not in ("inc", "dec"):
        raise ConfigError(f"the weights are 'inc' or 'dec', not {order!r}")
    weights = range(1, len(scores) + 1) if order == "inc" else range(len(scores), 0, -1)
    return sum(weight * score for weight, score in zip(weights, scores, strict=True)) / sum(weights)


ROUNDING = 0.1 + 1e-9
"""What an average of printed scores may differ by from the printed average."""
_AVERAGES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "avg": average,
    "wavg_inc": partial(weighted_average, order="inc"),
    "wavg_dec": partial(weighted_average, order="dec"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One model of a table."""

    line: int
    """Line of the file, the header being 1."""
    name: str
    scores: Mapping[int, float | None]
    """Length in tokens, ascending -> score; None where nothing was measured."""
    estimate: Estimate | None
    """None if the row says too little; `problem` says what is missing."""
    text: str
    """The effective length as the table's authors would print it."""
    printed: str
    """The effective length that the table prints; empty if it prints none."""
    problem: str = ""
    averages: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Column of an average -> what is printed there, and what follows from the scores."""

    @property
    def wrong_averages(self) -> dict[str, tuple[float, float]]:
        """Those that the rounding of scores and averages to one decimal does not explain."""
        return {name: pair for name, pair in self.averages.items() if abs(pair[0] - pair[1]) > ROUNDING}

    @property
    def agrees(self) -> bool | None:
        """Whether the rule gives what is printed; None if nothing is."""
        if not self.printed:
            return None
        return self.problem == "" and _same(self.text, self.printed)

    @property
    def deciding(self) -> tuple[tuple[int, float], ...]:
        """Length and score of those that lie between what the rule gives and what is printed: the first that fails."""
        threshold = self.estimate.threshold if self.estimate else None
        return tuple(
            (length, score)
            for length, score in self.scores.items()
            if score is not None and threshold is not None and score < threshold
        )[:1]


def _same(ours: str, printed: str) -> bool:
    return ours.casefold().replace(" ", "") == printed.casefold().replace(" ", "")


def read_table(
    text: str,
    definition: Definition,
    *,
    threshold: float | None = None,
    base_column: str | None = None,
    source: str = "table",
) -> tuple[TableRow, ...]:
    """Rows of a CSV of scores with their effective lengths.

    Args:
        text: header and rows. A column whose name is a length (`4k`, `score_4k`, `s_4K`, `128000`) holds scores; `model`
            (with `size` and `subset`) names the row, `base_score` is the base of `nolima`, and `effective_length` what
            the table prints.
        base_column: another name of the base's column.

    Raises:
        DataError: no header, no length columns, no rows, or a score that is no number.
        ConfigError: the definition needs a threshold or a base that is not there.
    """
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff")), skipinitialspace=True)
    header = [name.strip() for name in reader.fieldnames or ()]
    if not header:
        raise DataError(f"{source} is empty; it needs a header such as model,4k,8k,16k")
    reader.fieldnames = header
    columns = _length_columns(header, source)
    base = _base_column(header, base_column, definition, source)
    rows = tuple(
        _row(record, reader.line_num, columns, base, definition, threshold, source)
        for record in reader
        if any((value or "").strip() for value in record.values() if not isinstance(value, list))
    )
    if not rows:
        raise DataError(f"{source} has a header and no rows; give one row of scores per model")
    return rows


def _length_columns(header: Sequence[str], source: str) -> dict[int, str]:
    """Length in tokens -> column, ascending. Only the order counts, so that K may be 1,000 (NoLiMa) or 1,024 (RULER)."""
    found: dict[int, str] = {}
    for name in header:
        match = _LENGTH_NAME.fullmatch(name)
        if match is None:
            continue
        length = parse_length(match[1])
        if length in found:
            raise DataError(f"{source} has two columns for the length {name!r}; keep one of them")
        found[length] = name
    if not found:
        raise DataError(
            f"{source} has no column named after a length, such as 4k or score_4k; it has: {', '.join(header)}"
        )
    return dict(sorted(found.items()))


def _base_column(header: Sequence[str], asked: str | None, definition: Definition, source: str) -> str | None:
    if asked is not None and asked not in header:
        raise DataError(f"{source} has no column {asked!r} for the base score; it has: {', '.join(header)}")
    found = asked or next((name for name in _BASE_COLUMNS if name in header), None)
    if definition == "nolima" and found is None:
        raise ConfigError(
            f"definition 'nolima' needs a base score per row; name its column in {source} with --base-column"
        )
    return found


def _number(value: str | None, where: str) -> float | None:
    text = (value or "").strip()
    if text.casefold() in _EMPTY:
        return None
    try:
        return float(text.removesuffix("%"))
    except ValueError as error:
        raise DataError(f"{where}: {text!r} is no number; leave a cell empty where nothing was measured") from error


def _row(
    record: Mapping[str, str],
    line: int,
    columns: Mapping[int, str],
    base: str | None,
    definition: Definition,
    threshold: float | None,
    source: str,
) -> TableRow:
    where = f"{source}, line {line}"
    scores = {length: _number(record[name], f"{where}, column {name}") for length, name in columns.items()}
    value = _number(record[base], f"{where}, column {base}") if base and definition == "nolima" else None
    problem = ""
    if next(iter(scores.values())) is None:
        problem = f"no score at {format_length(min(scores)).upper()}"
    elif definition == "nolima" and value is None:
        problem = "no base score"
    estimate = None
    if not problem:
        estimate = effective_length(tuple(scores), tuple(scores.values()), definition, base=value, threshold=threshold)
    return TableRow(
        line=line,
        name=_name(record) or f"line {line}",
        scores=scores,
        estimate=estimate,
        text=printed_form(estimate, min(scores)) if estimate else "",
        printed=next((record[column].strip() for column in _PRINTED_COLUMNS if record.get(column)), ""),
        problem=problem,
        averages=_averages(record, [score for score in scores.values() if score is not None], where),
    )


def _averages(record: Mapping[str, str], scores: Sequence[float], where: str) -> dict[str, tuple[float, float]]:
    """RULER's averages of a row, as they are printed and as they follow from its scores."""
    found = {}
    for name, reckon in _AVERAGES.items():
        printed = _number(record.get(name), f"{where}, column {name}")
        if printed is not None and scores:
            found[name] = (printed, reckon(scores))
    return found


def _name(record: Mapping[str, str]) -> str:
    """Model, its size and the subset of tasks, where the table tells them apart."""
    name = next((record[column].strip() for column in _NAME_COLUMNS if record.get(column)), "")
    size, subset = (str(record.get(column) or "").strip() for column in ("size", "subset"))
    name += f" {size}" if size and size not in name else ""
    return name + (f" ({subset})" if subset and subset != "all" else "")


def printed_form(estimate: Estimate, shortest: int) -> str:
    """`64K`, `<4K` where the shortest length fails, `>128K` where the largest tested one passes: as RULER prints it."""
    if estimate.value is None:
        return f"<{format_length(shortest).upper()}"
    text = format_length(estimate.value).upper()
    return f">{text}" if estimate.censored == "above grid" else text
