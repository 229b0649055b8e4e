"""Our tasks as another harness runs them: one task with its grid, its points, and what a log keeps of each sample.

A sample travels as its recipe (`doc_of`), about 1 KB; its prompt is built when it is asked and again when it is scored. Prompts
are those of our own runner byte by byte, and `prompt_sha256` proves it.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from longreach.adapters.openai_stream import ThinkSplitter
from longreach.adapters.options import read_length, read_number
from longreach.harness.errors import ConfigError, InfeasibleCell
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Point, Sample
from longreach.harness.task import AsksTwice, Measured, Score, Task, Uneven, task_id
from longreach.harness.tokenizer import Tokenizer

SCHEMA = 1
"""Of the fields of a doc."""
LENGTHS = (4096, 8192, 16384, 32768)
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
SAMPLES = 4
"""Per length and depth. LENGTHS, DEPTHS and SAMPLES hold where nobody names others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One task and its grid."""

    task: str
    """Name of a registered task."""
    label: str
    """Name in its battery, usually that of the task."""
    params: Mapping[str, Any] = field(default_factory=dict)
    lengths: tuple[int, ...] = LENGTHS
    """Tokens, prompt and answer, ascending."""
    depths: tuple[float, ...] = DEPTHS
    samples: Mapping[int, int] = field(default_factory=lambda: {1: SAMPLES})
    """Length -> samples per depth; a length between two has the number of the shorter one."""
    seed: int = 42
    tokenizer: str | None = None
    """SPEC by which lengths are counted; None = the model's own."""
    is_explicit: bool = False
    """The user named the lengths: one that cannot be built, or does not fit the window, is an error and not left out."""
    reasoning_budget: int = 0
    """Tokens on top of the answer's."""
    is_beside: bool = False
    """Its battery keeps it out of the headline."""

    def open(self) -> Task:
        """The task with its parameters.

        Raises:
            UnknownName, ConfigError: no such task or parameter.
        """
        plain = get_task(self.task)
        known: dict[str, Any] = {}
        if is_dataclass(plain):
            known = {item.name: getattr(plain, item.name) for item in fields(plain)}
        given = {
            name: tuple(value) if isinstance(known.get(name), tuple) and isinstance(value, list) else value
            for name, value in self.params.items()
        }
        return get_task(self.task, **given)

    def n(self, length: int) -> int:
        """Samples per depth at `length`."""
        below = [known for known in sorted(self.samples) if known <= length]
        return self.samples[below[-1] if below else min(self.samples)]


def recipe_of(data: Mapping[str, Any], where: str) -> Recipe:
    """A recipe from JSON or YAML values, as `recipe_data` gives them.

    Raises:
        ConfigError: a value that makes no sense; `where` says whose it is.
    """
    if not isinstance(data.get("task"), str):
        raise ConfigError(f"{where}: names no task; export the folder again")
    plain = Recipe(
        task=data["task"], label=str(data.get("label") or data["task"]), params=dict(data.get("params") or {})
    )
    is_explicit, is_beside = (bool(data.get(name, False)) for name in ("is_explicit", "is_beside"))
    return replace(changed(plain, data, where), is_explicit=is_explicit, is_beside=is_beside)


def recipe_data(recipe: Recipe) -> dict[str, Any]:
    """JSON values of a recipe; what has its default is left out."""
    plain = Recipe(task=recipe.task, label=recipe.task)
    found: dict[str, Any] = {"task": recipe.task}
    for item in fields(Recipe):
        value = getattr(recipe, item.name)
        if value != getattr(plain, item.name):
            found[item.name] = list(value) if isinstance(value, tuple) else value
    return found | {name: _plain(found[name]) for name in ("params", "samples") if name in found}


def _plain(value: Mapping[Any, Any]) -> dict[Any, Any]:
    return {name: list(item) if isinstance(item, tuple) else item for name, item in value.items()}


def changed(recipe: Recipe, given: Mapping[str, Any], where: str) -> Recipe:
    """The recipe with what a user of the other harness gave: lengths, depths, samples, seed, tokenizer, reasoning_budget.

    `max_seq_lengths`, as lm-eval's ruler calls them, are lengths too. Lists may be lists, `4k,8k` or one value.

    Raises:
        ConfigError: a value that makes no sense.
    """
    found: dict[str, Any] = {}
    for name in ("lengths", "max_seq_lengths"):
        if given.get(name) is not None:
            lengths = {read_length(item, f"{where}, {name}") for item in _items(given[name])}
            found |= {"lengths": tuple(sorted(lengths)), "is_explicit": True}
    if given.get("depths") is not None:
        depths = {read_number(item, f"{where}, depths", high=1.0) for item in _items(given["depths"])}
        found["depths"] = tuple(sorted(depths))
    if given.get("samples") is not None:
        found["samples"] = _samples(given["samples"], f"{where}, samples")
    for name in ("seed", "reasoning_budget"):
        if given.get(name) is not None:
            found[name] = int(read_number(given[name], f"{where}, {name}"))
    if given.get("tokenizer") is not None:
        found["tokenizer"] = str(given["tokenizer"])
    if any(name in found and not found[name] for name in ("lengths", "depths")):
        raise ConfigError(f"{where}: an empty list of lengths or depths; write for example lengths=4k,8k")
    return replace(recipe, **found)


def _items(value: Any) -> list[Any]:
    if isinstance(value, str):
        value = [part for part in value.strip("[]() ").split(",") if part.strip()]
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def _samples(value: Any, where: str) -> dict[int, int]:
    counts = value if isinstance(value, Mapping) else {1: value}
    found = {read_length(length, where): int(read_number(n, where, low=1)) for length, n in counts.items()}
    if not found:
        raise ConfigError(f"{where}: no number of samples; write for example samples=10")
    return found


def points(
    recipe: Recipe, task: Task, tokenizer: Tokenizer, window: int | None = None
) -> tuple[list[Point], list[str]]:
    """The points of a recipe, the lengths in turn so that the first n are spread over them; and what was left out, in words.

    Args:
        window: tokens of prompt and answer that the model takes; None = unknown.

    Raises:
        InfeasibleCell: a length that the user named cannot be built. ConfigError: nothing is left.
    """
    left: list[str] = []
    lengths = [length for length in recipe.lengths if recipe.is_explicit or not window or length <= window]
    if skipped := [length for length in recipe.lengths if length not in lengths]:
        left.append(f"{recipe.label}: lengths {_list(skipped)} are above the window of {window:,} tokens")
    rows = _measured(recipe, task, lengths, tokenizer) if isinstance(task, Measured) else []
    for length in lengths if not rows else ():
        row = list(task.points(Grid(lengths=(length,), depths=recipe.depths, n=recipe.n(length), seed=recipe.seed)))
        problem = None if rows else _problem(task, row, tokenizer)  # what fits a short prompt fits a longer one
        if problem is None:
            rows.append(row)
        elif recipe.is_explicit:
            raise problem
        else:
            left.append(f"{recipe.label}: length {length:,} is left out: {problem}")
    found = [point for turn in itertools.zip_longest(*rows) for point in turn if point is not None]
    if not found:
        raise ConfigError(f"task {recipe.label!r} has nothing to ask: {'; '.join(left) or 'no row fits the lengths'}")
    return found, left


def _list(lengths: Sequence[int]) -> str:
    return ", ".join(f"{length:,}" for length in lengths)


def _measured(recipe: Recipe, task: Measured, lengths: Sequence[int], tokenizer: Tokenizer) -> list[list[Point]]:
    if not lengths:
        return []
    n = max(recipe.n(length) for length in lengths)
    by_length: dict[int, list[Point]] = {}
    grid = Grid(lengths=tuple(lengths), depths=recipe.depths, n=n, seed=recipe.seed)
    for point in task.measured_points(grid, tokenizer):
        here = by_length.setdefault(point.length, [])
        if len(here) < recipe.n(point.length) * len(recipe.depths):
            here.append(point)
    return [by_length[length] for length in sorted(by_length)]


def _problem(task: Task, row: Sequence[Point], tokenizer: Tokenizer) -> InfeasibleCell | None:
    tried = [*row[:1], *row[-1:], *(task.heaviest(row) if isinstance(task, Uneven) and row else ())]
    for point in {point.key: point for point in tried}.values():
        try:
            task.sample(point, tokenizer)
        except InfeasibleCell as error:
            return error
    return None


def doc_of(point: Point, recipe: Recipe, task: Task, tokenizer: Tokenizer) -> dict[str, Any]:
    """All that the prompt and its score can be made from again. JSON; `build` adds what the built prompt tells."""
    return {
        "longreach": SCHEMA,
        "label": recipe.label,
        "task": task.info.name,
        "task_id": task_id(task),
        "version": task.info.version,
        "params": _plain(recipe.params),
        "capability": task.info.capability,
        "family": task.info.family,
        "chance": task.info.chance,
        "length": point.length,
        "depth": point.depth,
        "index": point.index,
        "seed": point.seed,
        "reserve": task.info.reserve,
        "reasoning_budget": recipe.reasoning_budget,
        "is_beside": recipe.is_beside,
        "tokenizer": tokenizer.name,
        "tokenizer_spec": recipe.tokenizer,
        "is_estimate": tokenizer.is_estimate,
    }


def build(doc: dict[str, Any], task: Task, tokenizer: Tokenizer) -> Sample:
    """The sample of a doc; what its prompt tells goes to the doc: target, placed, n_tokens, prompt_sha256, groups.

    Raises:
        InfeasibleCell: its length cannot hold it. ConfigError: a protocol with two calls, which other harnesses lack.
    """
    names = {"task": "task_id", "length": "length", "depth": "depth", "index": "index", "seed": "seed"}
    sample = task.sample(Point(**{name: doc[key] for name, key in names.items()}), tokenizer)
    if isinstance(task, AsksTwice) and task.follow_up(sample, "") is not None:
        raise ConfigError(
            f"task {doc['label']!r} asks twice, which only longreach itself can; use its form with one call"
        )
    doc["target"] = list(sample.target)
    doc["placed"] = list(sample.placed)
    doc["n_tokens"] = sample.n_tokens
    doc["prompt_sha256"] = sample.prompt_sha256
    doc["groups"] = dict(sample.extra.get("groups", {}))
    return sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """An answer with its score, as our own runner gives it."""

    outcome: str
    """scored, or no_answer if nothing is left after the reasoning."""
    score: Score
    text: str
    """The answer without its reasoning."""


def grade(task: Task, sample: Sample, reply: str) -> Graded:
    """Takes inline reasoning off the reply and scores the rest; nothing left is worth 0."""
    split = ThinkSplitter()
    split.feed(reply)
    text = split.answer if split.answer.strip() else ""
    score = task.score(sample, Response(text=text, reasoning=split.reasoning or None, finish=None))
    if not text:
        return Graded(outcome="no_answer", score=replace(score, value=0.0), text="")
    return Graded(outcome="scored", score=score, text=text)
