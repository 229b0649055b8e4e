"""What tasks on published rows share: prompts of natural length, put into the smallest length that holds them.

A loader says which columns it needs and what one row asks; where rows come from, how long they are, what happens to
those that are too long, and what is recorded of the set, is here. A row that no length of the grid holds is, by
`over_length`:

    refuse    not asked, counted and named; the run is incomplete without it (default)
    skip      not asked, counted and named; the user wants it so
    middle    cut in the middle, where the published protocol does that (`cut_above`): see `cut_middle`
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from longreach.harness.errors import InfeasibleCell
from longreach.harness.model import Response
from longreach.harness.rows import Check, Row, Rows, Types, read_rows
from longreach.harness.sample import Grid, Message, Point, Sample, digest
from longreach.harness.task import LeftOut, Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer, WordsTokenizer
from longreach.suites.units import remembered

OCTAVE = 1024
"""Rows that are too long are told the power-of-two multiple of this that would hold them, tokens."""
NAMED = 3
"""Rows that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one row asks."""

    messages: tuple[Message, ...]
    target: tuple[str, ...]
    choices: tuple[str, ...] = ()
    answer_prefix: str = ""
    context: tuple[int, int] | None = None
    """[start, end) of the document in the last message, characters; None if it cannot be taken out."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """What the row belongs to, for tables: domain, difficulty, ..."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More for `Sample.extra`, JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTask(ABC):
    """A task on the rows of a published set."""

    columns: ClassVar[Types]
    """What each row must have."""
    optional: ClassVar[Types] = {}
    key: ClassVar[str | None] = None
    """Column that names a row."""
    hub: ClassVar[str] = ""
    """Where the set is published, `hf:NAME`; the revision is looked up when a run is planned, and pinned."""
    policies: ClassVar[tuple[str, ...]] = ("refuse", "skip")
    check: ClassVar[Check | None] = None
    per_row: ClassVar[int] = 1
    """Most questions of one row; sample number = row number x this + question."""

    data: str = ""
    """File or folder of the rows, or `hf:NAME@REVISION[/CONFIG][:SPLIT]`; "" = where the set is published."""
    exclude: tuple[str | int, ...] = ()
    """Rows to leave out: their number from 1, their id, or 16 hex digits of the SHA-256 of their JSON."""
    over_length: str = "refuse"
    """What becomes of rows that are longer than every length: refuse, skip, and middle where the protocol cuts."""

    def __post_init__(self) -> None:
        if self.over_length not in self.policies:
            raise ValueError(f"over_length {self.over_length!r} is not one of {', '.join(self.policies)}")

    @property
    @abstractmethod
    def info(self) -> TaskInfo: ...

    @property
    def cut_above(self) -> int | None:
        """Tokens of the last message above which its middle is cut out; None: never."""
        return None

    def n_parts(self, row: Row) -> int:
        """Questions of one row, at most `per_row`."""
        return 1

    @property
    def file(self) -> str | None:
        """Of a folder, the file whose rows are read (its name without ending); None: all."""
        return None

    def require(self) -> None:  # noqa: B027 - most need none
        """Says what to install if a library that scores the answers is missing.

        Raises:
            MissingExtra: with the command.
        """

    @abstractmethod
    def ask(self, row: Row, part: int) -> Asked:
        """The prompt and the target of question `part` of a row; 0 where a row asks one (see `per_row`)."""

    def keeps(self, row: Row) -> bool:
        """False for a row that the parameters of the task leave out."""
        return True

    def without_context(self) -> "LoadedTask | None":
        """The task that asks the same rows without their documents; None: the document is cut out of the prompt."""
        return None

    def notes(self) -> Iterator[str]:
        """What a reader of the card must know about the rows, one whole phrase each."""
        yield from ()

    @abstractmethod
    def score(self, sample: Sample, response: Response) -> Score: ...

    def rows(self) -> Rows:
        """The rows of the set.

        Raises:
            DataError: they cannot be had, or are not what was pinned.
        """
        return read_rows(
            self.data or self.hub,
            self.columns,
            optional=self.optional,
            exclude=self.exclude,
            key=self.key,
            check=type(self).check,
            file=self.file,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        """By the fallback tokenizer, for who has none."""
        return self.measured_points(grid, WordsTokenizer())

    def measured_points(self, grid: Grid, tokenizer: Tokenizer) -> Iterator[Point]:
        self.require()
        return binned(task_id(self), self.sizes(tokenizer), self.info.reserve, grid)

    def sizes(self, tokenizer: Tokenizer) -> Mapping[int, int]:
        """Row number -> tokens of its rendered prompt, cut where it is; counted once per process."""
        mark = tokenizer.render((Message(role="user", content="."),))  # system prompt and template count too
        return remembered(
            tokenizer,
            ("rows", task_id(self), mark),
            lambda: {
                row.index * self.per_row + part: self._built(row, part, tokenizer).n_tokens
                for row in self.rows().rows
                if self.keeps(row)
                for part in range(self.n_parts(row))
            },
        )

    def left_out(self, grid: Grid, tokenizer: Tokenizer) -> Iterator[LeftOut]:
        room = max(grid.lengths) - self.info.reserve
        sizes = self.sizes(tokenizer)
        long = sorted((index for index, size in sizes.items() if size > room), key=lambda index: (-sizes[index], index))
        if not long:
            return
        rows = self.rows()
        named = ", ".join(
            f"{rows.row(index // self.per_row).where} ({sizes[index] + self.info.reserve:,} tokens with the answer)"
            for index in long[:NAMED]
        )
        need = sizes[long[0]] + self.info.reserve
        length = OCTAVE << max(0, (-(-need // OCTAVE) - 1).bit_length())
        yield LeftOut(
            n=len(long),
            length=length,
            reason=(
                f"{len(long):,} of {len(sizes):,} rows are longer than the largest length {max(grid.lengths):,}: {named}"
                f"{', ...' if len(long) > NAMED else ''}; {self._mend(length)}"
            ),
            is_refused=self.over_length != "skip",
        )

    def _mend(self, length: int) -> str:
        if self.over_length == "skip":
            return "left out by over_length=skip"
        ways = [f"raise the lengths to {length:,}", f"leave them out by --set {self.info.name}.over_length=skip"]
        if self.over_length == "middle":
            ways.insert(1, f"cut them shorter by --set {self.info.name}.max_tokens=N")
        elif "middle" in self.policies:
            ways.append(f"cut them by --set {self.info.name}.over_length=middle")
        return ", or ".join(ways)

    def provenance(self) -> Mapping[str, Any]:
        rows = self.rows()
        return {
            "spec": self.data or self.hub,
            "digest": rows.digest,
            "source": rows.source,
            "license": rows.license,
            "rows": sum(self.n_parts(row) for row in rows.rows if self.keeps(row)),
            "excluded": list(rows.excluded),
            "notes": [*self.notes(), *rows.notes],
        }

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        number, part = divmod(point.index, self.per_row)
        found = replace(self._built(self.rows().row(number), part, tokenizer), point=point)
        need = found.n_tokens + self.info.reserve
        if need > point.length:
            raise InfeasibleCell(
                f"row {number + 1:,} of {self.info.name} needs {need:,} tokens, more than {point.length:,}",
                minimum=need,
            )
        return found

    def _built(self, row: Row, part: int, tokenizer: Tokenizer) -> Sample:
        """The sample of one question of a row, whatever the length."""
        asked = self.ask(row, part)
        messages, context, extra = asked.messages, asked.context, dict(asked.extra)
        n_tokens = tokenizer.count(tokenizer.render(messages, asked.answer_prefix))
        most = self.cut_above
        if most is not None and n_tokens > most:
            last = messages[-1]
            text, gone, before = cut_middle(last.content, most, tokenizer)
            if gone is not None:
                messages = (*messages[:-1], replace(last, content=text))
                n_tokens = tokenizer.count(tokenizer.render(messages, asked.answer_prefix))
                extra["cut"] = {"before": before, "after": tokenizer.count(text)}
                context = _kept(context, gone)
        if context is not None:
            extra["context"] = list(context)
        return Sample(
            point=Point(task=task_id(self), length=0, depth=None, index=row.index * self.per_row + part, seed=0),
            messages=messages,
            target=asked.target,
            choices=asked.choices,
            answer_prefix=asked.answer_prefix,
            n_tokens=n_tokens,
            tokenizer=tokenizer.name,
            extra=extra | {"row": row.where, "groups": dict(asked.groups) | self._whole("cut" in extra)},
        )

    def _whole(self, is_cut: bool) -> dict[str, str]:
        """The group that tells rows that were cut from the others, where any may be."""
        return {} if self.cut_above is None else {"text": "cut in the middle" if is_cut else "whole"}


def binned(task: str, sizes: Mapping[int, int], reserve: int, grid: Grid) -> Iterator[Point]:
    """A point for each row at the smallest length that holds `reserve` tokens more than its size, shortest length first.

    Per length the first n x (number of depths) rows of an order drawn from the task's name and the seed.
    """
    order = sorted(sizes)
    random.Random(int(digest(["rows", task, grid.seed])[:32], 16)).shuffle(order)
    lengths = sorted(grid.lengths)
    found: dict[int, list[int]] = {length: [] for length in lengths}
    for index in order:
        length = next((length for length in lengths if length >= sizes[index] + reserve), None)
        if length is not None:
            found[length].append(index)
    for length, indexes in found.items():
        for index in indexes[: grid.n * len(grid.depths)]:
            yield Point(task=task, length=length, depth=None, index=index, seed=grid.seed)


def cut_middle(text: str, most: int, tokenizer: Tokenizer) -> tuple[str, tuple[int, int] | None, int]:
    """`text` with its first `most` // 2 and its last `most` - `most` // 2 tokens, as LongBench v2 cuts (pred.py).

    Returns:
        The text, [start, end) of the characters that were taken out (None: it fits), and its tokens before.
    """
    starts, ends = tokenizer.spans(text)
    n = len(starts)
    if n <= most:
        return text, None, n
    head = most // 2
    start, end = int(ends[head - 1]) if head else 0, int(starts[n - (most - head)])
    return text[:start] + text[end:], (start, end), n


def _kept(context: tuple[int, int] | None, gone: tuple[int, int]) -> tuple[int, int] | None:
    """Where the document stands after the cut; None if the cut reaches beyond it."""
    if context is None or gone[0] < context[0] or gone[1] > context[1]:
        return None
    return context[0], context[1] - (gone[1] - gone[0])
