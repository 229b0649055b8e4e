"""Shards: part i of n of a plan, for job arrays. Each has a run folder of its own; merged they are one run.

The parts are dealt like cards, so that each holds every length and task, and together they hold every sample once.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from longreach.harness.errors import BatteryError
from longreach.harness.running.plan import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Part `index` (from 1) of `of`."""

    index: int
    of: int

    @property
    def text(self) -> str:
        """As it is given: 2/8."""
        return f"{self.index}/{self.of}"

    @property
    def name(self) -> str:
        """Name of its folder; sorts by number."""
        return f"shard-{self.index:0{len(str(self.of))}d}of{self.of}"

    def part(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """Every n-th item, from the i-th on."""
        return tuple(items[self.index - 1 :: self.of])


def parse_shard(value: Any) -> Shard:
    """A shard written as i/n.

    Raises:
        BatteryError: not of this form, or i outside 1 to n.

    >>> parse_shard("2/8").name
    'shard-2of8'
    """
    match = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", str(value))
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise BatteryError(f"--shard {value!r} is not of the form i/n with i from 1 to n, such as 2/8")
    return Shard(index=int(match[1]), of=int(match[2]))
