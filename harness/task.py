"""TaskInfo, Score and the Task protocol; `task_id` names a task with its version and parameters."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.tokenizer import Tokenizer

Capability = Literal["retrieval", "reasoning", "documents"]
THRESHOLDS: Mapping[str, float] = {"retrieval": 0.90, "reasoning": 0.70}
"""Mean score that a length must reach, by capability; `documents` has no headline."""


def is_label(text: str) -> bool:
    """True for a name that tables, file names and terminals can show: one line of printable text without `|`.

    >>> is_label("niah.single[needles=4]"), is_label("a|b"), is_label(" "), is_label("a\\u2028b")
    (True, False, False, False)
    """
    return bool(text.strip()) and text.isprintable() and "|" not in text


QUERIES = 5
"""Questions that are asked of one shared context, one per equal stratum of depth."""
DEPTH_STEPS = 10_000
"""Depths are told apart in so many steps where contexts are shared."""


def place_in_context(depth: float) -> tuple[int, float]:
    """Number of the stratum that holds `depth`, and where in it the depth lies, 0.0 to 1.0.

    Points that differ in the stratum alone share their context.

    >>> place_in_context(0.5), place_in_context(0.9), place_in_context(1.0)
    ((2, 0.5), (4, 0.5), (4, 1.0))
    """
    steps, width = round(depth * DEPTH_STEPS), DEPTH_STEPS // QUERIES
    place = min(steps // width, QUERIES - 1)
    return place, (steps - place * width) / width


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """All that a card's reader must know about a task; checked when it is made."""

    name: str
    version: int
    """Raised whenever the same point would give other bytes or another score."""
    capability: Capability
    """Which headline it feeds."""
    family: str
    """needle, tracing, aggregation, qa, coreference, graph, documents: one curve each."""
    reserve: int
    """Tokens kept free for the answer."""
    chance: float
    """Expected score of a guess, 0 to 1."""
    has_depth: bool = True
    """False: `depth` and `position_ratio` stay blank."""
    queries: int = 1
    """Samples that share one context; more than 1: those whose depths lie alike in `QUERIES` equal strata."""
    summary: str
    """One line for `longreach tasks`."""
    source: str
    """Paper and section, or URL; "own" for tasks of this project."""
    license: str = "Apache-2.0"
    data_revision: str | None = None
    human: float | None = None
    """Score of people, 0 to 1, where it is published."""
    departures: tuple[str, ...] = ()
    """In what a published task differs here from its source, one whole sentence each."""

    def __post_init__(self) -> None:
        if not self.name or self.version < 1 or self.reserve < 1 or not 0.0 <= self.chance < 1.0:
            raise ValueError(f"TaskInfo of {self.name!r}: needs a name, version >= 1, reserve >= 1, 0 <= chance < 1")
        if self.queries not in (1, QUERIES) or (self.queries > 1 and not self.has_depth):
            raise ValueError(f"TaskInfo of {self.name!r}: one context serves one sample, or {QUERIES} by depth")
        if self.capability not in ("retrieval", "reasoning", "documents"):
            raise ValueError(f"TaskInfo of {self.name!r}: unknown capability {self.capability!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The value of one answer."""

    value: float
    """Strict score, 0 to 1."""
    published: float | None = None
    """Value by the published rule of the benchmark, where the task has one."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Finer values, 0 to 1 each but for `corrected`: found per needle, `distractor` = 1 if the answer names a distractor."""
    extracted: str | None = None
    """What was read out of the answer."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.value <= 1.0:
            raise ValueError(f"a score lies in [0, 1], not {self.value!r}")


@runtime_checkable
class Task(Protocol):
    """A recipe for samples and how they are scored. Parameters are the dataclass fields of the task."""

    @property
    def info(self) -> TaskInfo: ...

    def points(self, grid: Grid) -> Iterator[Point]:
        """The points of `grid` for this task: usually `grid.points(task_id(self), by_depth=...)`."""

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        """The prompt of one point, a pure function.

        Raises:
            InfeasibleCell: the length cannot hold needles and question.
        """

    def score(self, sample: Sample, response: Response) -> Score:
        """The value of an answer, a pure function."""


@runtime_checkable
class Solvable(Protocol):
    """A synthetic task that can be solved by a program which truly reads the prompt."""

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        """The answer read out of the prompt (no answer key); None unless the question is this task's own."""


@runtime_checkable
class Uneven(Protocol):
    """A task whose questions differ in the length that they need, so that one may not fit where others do."""

    def heaviest(self, points: Sequence[Point]) -> Sequence[Point]:
        """A few of `points`, those that need the longest prompts; found without building any."""


@runtime_checkable
class Measured(Protocol):
    """A task whose prompts have the length that they have: a set of rows, each of which is asked at the smallest length
    that holds it. The planner prefers this to `points`."""

    def measured_points(self, grid: Grid, tokenizer: Tokenizer) -> Iterator[Point]:
        """One point a row, at the smallest length of `grid` that holds its rendered prompt and the reserve.

        `Point.index` is the number of the row in the set, from 0. At most n x (number of depths) rows per length, spread
        over the set: the first ones of an order that depends on task and seed, so that a smaller n is a subset.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Rows of a set that are longer than every length of a grid."""

    n: int
    length: int
    """Smallest length that would hold them all, tokens."""
    reason: str
    """A whole sentence: how many, which is the longest, how to mend it."""
    is_refused: bool
    """True: the run is incomplete without them; false: the user asked to leave them out."""


@runtime_checkable
class Loaded(Measured, Protocol):
    """A measured task on published rows. Its field `data` is their spec, as `rows.read_rows` takes it."""

    @property
    def data(self) -> str: ...

    @property
    def hub(self) -> str:
        """The spec that stands for an empty `data`: where the set is published; "" if it has to be given."""

    def left_out(self, grid: Grid, tokenizer: Tokenizer) -> Iterator[LeftOut]:
        """The rows that `measured_points` has no place for."""

    def provenance(self) -> Mapping[str, Any]:
        """JSON: spec, digest, source, license, rows (number), excluded (where they stood), notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A second call, whose reply is the answer."""

    messages: tuple[Message, ...]
    reserve: int
    """Tokens for its reply."""


@runtime_checkable
class AsksTwice(Protocol):
    """A task whose protocol has two calls: steps first, then the answer."""

    def follow_up(self, sample: Sample, first: str) -> FollowUp | None:
        """The second call after the reply `first`; None: the first reply is the answer."""


def task_params(task: Task) -> dict[str, Any]:
    """Parameters of a task that differ from their defaults, by name. JSON values."""
    if not dataclasses.is_dataclass(task):
        return {}
    changed: dict[str, Any] = {}
    for item in dataclasses.fields(task):
        default = item.default_factory() if item.default_factory is not dataclasses.MISSING else item.default
        value = getattr(task, item.name)
        if value != default:
            changed[item.name] = value
    return changed


def task_id(task: Task) -> str:
    """`name@version`, and `?{"parameter":value}` for those that differ from their defaults.

    >>> task_id(get_task("niah.single", kind="code"))  # doctest: +SKIP
    'niah.single@1?{"kind":"code"}'
    """
    params = task_params(task)
    tail = "?" + json.dumps(params, sort_keys=True, ensure_ascii=False, separators=(",", ":")) if params else ""
    return f"{task.info.name}@{task.info.version}{tail}"
