"""Shards, or other run folders of the same settings, merged to one: the same results as one process would have.

Unlike a card over several runs, this takes only what one command could have made; anything else is refused by name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach.harness.errors import RunFolderError
from longreach.harness.record import COUNTED, FINAL, Record
from longreach.harness.running.config import differences, merged
from longreach.harness.running.redact import api_keys
from longreach.harness.running.results import write_results
from longreach.harness.running.shards import parse_shard
from longreach.harness.running.store import CONFIG, merge_into, open_store, read_config, read_records, write_config
from longreach.harness.stats.scans import by_stratum

if TYPE_CHECKING:
    from longreach.harness.report.card import Card


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What came of it."""

    card: "Card"
    n: int
    """Samples."""
    folders: tuple[Path, ...]
    missing: tuple[str, ...]
    """Shards of the same run that were not given, as i/n."""
    untested: int
    """Planned cells without a counted sample, or with one that was cut or did not fit."""


def merge(folders: Sequence[Path], out: Path) -> Merged:
    """Writes `out` as the run folder of all of them; a folder of shards stands for its shards.

    Raises:
        RunFolderError: no run folder, or two runs of different settings.
    """
    found = [part for folder in folders for part in _parts(folder)]
    configs = [read_config(folder) for folder in found]
    if (out / CONFIG).exists() and out not in found:
        configs.append(read_config(out))  # what is there already must be of the same settings; it is added to
    for folder, config in zip([*found, out], configs, strict=False):
        if changed := differences(configs[0], config):
            raise RunFolderError(
                f"{folder} was made with other settings than {found[0]} ({'; '.join(changed)}); only runs of the same "
                f"settings merge: `longreach card` and `longreach compare` take different ones"
            )
    records: dict[str, Record] = {}
    for folder in found:
        for record in read_records(folder).values():
            merge_into(records, record)
    config = _whole(reduce(merged, configs))
    secrets = {key for config in configs for key in api_keys(config["model"].get("args") or {})}
    with open_store(out, sorted(secrets)) as store:
        write_config(out, config)
        store.add_all(record for record in records.values() if _is_news(record, store.records.get(record.key)))
        card, _ = write_results(out, store.records)
        n, untested = len(store.records), _untested(config, store.records)
    return Merged(card=card, n=n, folders=tuple(found), missing=tuple(_missing(configs)), untested=untested)


def _parts(folder: Path) -> list[Path]:
    """The folder itself, or the shards in it."""
    shards = sorted(path.parent for path in folder.glob(f"shard-*of*/{CONFIG}"))
    if (folder / CONFIG).exists() or not shards:
        return [folder]
    return shards


def _is_news(record: Record, old: Record | None) -> bool:
    return old is None or (record.outcome in FINAL and old.outcome not in FINAL)


def _whole(config: Mapping[str, Any]) -> dict[str, Any]:
    """Without a trace of shards."""
    found = {name: value for name, value in config.items() if name != "shard"}
    return found | {"command": re.sub(r" --shard[ =]\S+", "", str(config["command"]))}


def _missing(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    given = [parse_shard(config["shard"]) for config in configs if config.get("shard")]
    return [
        f"{index}/{of}"
        for of in sorted({shard.of for shard in given})
        for index in range(1, of + 1)
        if index not in {shard.index for shard in given if shard.of == of}
    ]


def _untested(config: Mapping[str, Any], records: Mapping[str, Record]) -> int:
    counted: dict[tuple[str, int, float | None], int] = {}
    spoilt = set()
    for record in records.values():
        shown = by_stratum(record) if config.get("strata") else record
        cell = (record.task, record.length, shown.depth)
        counted[cell] = counted.get(cell, 0) + (record.outcome in COUNTED)
        if record.outcome in ("overflow", "truncated"):
            spoilt.add(cell)
    cells = [(cell["task"], cell["length"], cell["depth"]) for cell in config["planned"]]
    return sum(1 for cell in cells if not counted.get(cell) or cell in spoilt)
