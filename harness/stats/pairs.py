"""Pairs: samples that two runs share, proved by the hash of the prompt, and why the others have no partner."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from longreach.harness.record import COUNTED, Record
from longreach.harness.task import place_in_context

Reason = Literal["only in base", "only in new", "another prompt", "not scored in base", "not scored in new"]
Place = tuple[str, int, float | None, int, int]
"""task_id, length, depth, index, seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """What is compared: one run as stored."""

    name: str
    """Folder as the user gave it."""
    records: tuple[Record, ...]
    """Last state of each sample."""
    config: Mapping[str, Any]

    @property
    def model(self) -> str:
        return str((self.config.get("model") or {}).get("name") or "unknown model")

    @property
    def tokenizer(self) -> str:
        return str((self.config.get("tokenizer") or {}).get("name") or "unknown")


def read_run(folder: str | Path) -> RunData:
    """A run folder.

    Raises:
        RunFolderError: it is none, or damaged.
    """
    from longreach.harness.running.store import read_config, read_records

    path = Path(folder)
    return RunData(name=str(folder), config=read_config(path), records=tuple(read_records(path).values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One sample in both runs, scored in both."""

    base: Record
    new: Record

    @property
    def proven(self) -> bool:
        """The prompts are known to be identical (imported records may carry no hash)."""
        return self.base.prompt_sha256 is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The pairs of two runs, and what is left over."""

    pairs: tuple[Pair, ...]
    """In the order of the base run."""
    unpaired: Mapping[tuple[str, int], Mapping[Reason, int]]
    """Samples without a partner by (task, length)."""
    lost: Mapping[tuple[str, int], Mapping[str, int]]
    """Outcomes that are never scored, of the new run, at samples that the base run scored."""
    by_text: int
    """Pairs found by their text although their labels (length, index) differ."""
    unproven: int
    """Pairs without a hash."""

    @property
    def reasons(self) -> Counter[Reason]:
        total: Counter[Reason] = Counter()
        for reasons in self.unpaired.values():
            total.update(reasons)
        return total


def place(record: Record) -> Place:
    """Which sample it is, whatever the model."""
    return record.task_id, record.length, record.depth, record.index, record.seed


def sharing(config: Mapping[str, Any]) -> frozenset[str]:
    """Labels of the tasks whose samples share contexts."""
    entries = config.get("tasks") or ()
    return frozenset(
        entry.get("label") or entry["task"] for entry in entries if ((entry.get("info") or {}).get("queries") or 1) > 1
    )


def context_of(record: Record) -> tuple[str, int, float | None, int, int]:
    """Which context a sample of such a task belongs to."""
    where = None if record.depth is None else place_in_context(record.depth)[1]
    return record.task_id, record.length, where, record.index, record.seed


def match(base: Iterable[Record], new: Iterable[Record]) -> Pairing:
    """Pairs of the same task, length, depth, index, seed and prompt; then of the same task and prompt."""
    here = {place(record): record for record in base}
    there = {place(record): record for record in new}
    found: list[tuple[Record, Record]] = []
    left: list[tuple[Record, Reason]] = []
    for key, record in here.items():
        other = there.get(key)
        if other is not None and other.prompt_sha256 == record.prompt_sha256:
            found.append((record, other))
        else:
            left.append((record, "only in base" if other is None else "another prompt"))
    taken = {id(other) for _, other in found}
    waiting: dict[tuple[str, str | None], Record] = {
        (record.task_id, record.prompt_sha256): record
        for record in there.values()
        if id(record) not in taken and record.prompt_sha256 is not None
    }
    unpaired: dict[tuple[str, int], Counter[Reason]] = defaultdict(Counter)
    by_text = 0
    for record, reason in left:
        other = waiting.pop((record.task_id, record.prompt_sha256), None)
        if other is None:
            unpaired[record.task, record.length][reason] += 1
        else:
            found.append((record, other))
            taken.add(id(other))
            by_text += 1
    for key, record in there.items():
        if id(record) not in taken and key not in here:
            unpaired[record.task, record.length]["only in new"] += 1
    pairs, lost = _scored(found, unpaired)
    return Pairing(
        pairs=pairs,
        unpaired=unpaired,
        lost=lost,
        by_text=by_text,
        unproven=sum(not pair.proven for pair in pairs),
    )


def _scored(
    found: Sequence[tuple[Record, Record]], unpaired: dict[tuple[str, int], Counter[Reason]]
) -> tuple[tuple[Pair, ...], dict[tuple[str, int], Counter[str]]]:
    """Pairs with a score on both sides; the others are counted as unpaired, and as lost where the base had one."""
    pairs = []
    lost: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for record, other in found:
        cell = record.task, record.length
        if record.outcome not in COUNTED:
            unpaired[cell]["not scored in base"] += 1
        elif other.outcome not in COUNTED:
            unpaired[cell]["not scored in new"] += 1
            lost[cell][other.outcome] += 1
        else:
            pairs.append(Pair(base=record, new=other))
    return tuple(pairs), lost
