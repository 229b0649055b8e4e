"""Several runs of one model as one run folder: records united, each sample once, origins told apart.

Rule for a sample that two runs hold (same task, length, depth, index and seed): an answer beats a failure, and of two
answers the later one counts.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach.harness.errors import ConfigError, RunFolderError
from longreach.harness.files import replacing
from longreach.harness.record import FINAL, Record
from longreach.harness.running.results import write_results
from longreach.harness.running.store import CONFIG, RECORDS, read_config, read_records, write_config
from longreach.harness.stats.settings_diff import differences

if TYPE_CHECKING:
    from longreach.harness.report.card import Card

Place = tuple[str, int, float | None, int, int]
"""Task (label), length, depth, index, seed."""
UNITED = "united"
"""Key of config.yaml that lists the runs which a united folder was made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """What one folder holds."""

    folder: Path
    config: Mapping[str, Any]
    records: Mapping[str, Record]

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(self.config["model"].get("name") or self.config["model"].get("spec"))


def read_folder(folder: Path) -> RunFolder:
    """A run folder as it is on disk.

    Raises:
        RunFolderError: not a run folder, or damaged.
    """
    return RunFolder(folder=folder, config=read_config(folder), records=read_records(folder))


def unite(
    runs: Sequence[RunFolder], out: Path, say: Callable[[str], None] | None = None, baseline: Path | None = None
) -> "Card":
    """Writes `out` as the run folder of all runs together, with its card.

    Raises:
        ConfigError: two models, one label for two different tasks. RunFolderError: `out` is a run of its own.
    """
    config, records = united(runs)
    if (out / CONFIG).exists() and UNITED not in read_config(out):
        raise RunFolderError(f"{out} is a run of its own and is not overwritten; name another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    with replacing(out / RECORDS) as file:
        for record in records:
            file.write(record.to_json() + "\n")
    write_config(out, config)
    card, _ = write_results(out, {record.key: record for record in records}, say, baseline)
    return card


def united(runs: Sequence[RunFolder]) -> tuple[dict[str, Any], list[Record]]:
    """Configuration and records of all runs together; what the runs differ in is the first one's."""
    models = list(dict.fromkeys(run.model for run in runs))
    if len(models) > 1:
        raise ConfigError(f"runs of {', '.join(models)} cannot become one card; a comparison of models can")
    chosen: dict[Place, tuple[Record, int]] = {}
    held: Counter[int] = Counter()
    for number, run in enumerate(runs):
        for record in run.records.values():
            held[number] += 1
            place = (record.task, record.length, record.depth, record.index, record.seed)
            old = chosen.get(place)
            if old is None or _rank(record) >= _rank(old[0]):
                chosen[place] = (record, number)
    kept = Counter(number for _, number in chosen.values())
    first = runs[0].config
    config = dict(first) | {
        "battery": " + ".join(dict.fromkeys(str(run.config.get("battery")) for run in runs)),
        "headline": _headline(runs),
        "lengths": sorted({length for run in runs for length in run.config.get("lengths") or ()}),
        "depths": sorted({depth for run in runs for depth in run.config.get("depths") or ()}),
        "tasks": _tasks(runs),
        "planned": _planned(runs),
        "advertised": next((run.config["advertised"] for run in runs if run.config.get("advertised")), None),
        "command": str(first.get("command") or "longreach run"),
        "commands": list(dict.fromkeys(command for run in runs for command in _commands(run.config))),
        "started": min(str(run.config.get("started") or "") for run in runs) or None,
        "imported": None,
        UNITED: [
            {
                "run": run.folder.resolve().name,
                "longreach": run.config.get("longreach"),
                "battery": run.config.get("battery"),
                "started": run.config.get("started"),
                "records": held[number],
                "counted": kept[number],
                "differs": _differs(first, run.config),
                **({"imported": run.config["imported"]} if run.config.get("imported") else {}),
            }
            for number, run in enumerate(runs)
        ],
    }
    config["infeasible"] = _infeasible(runs, config["planned"])
    if data := {entry["task"]: dict(entry) for run in reversed(runs) for entry in run.config.get("data") or ()}:
        config["data"] = list(data.values())
    config.pop("scan", None)
    if (scan := _scan(runs)) is not None:
        config["scan"] = scan
    return config, [record for record, _ in chosen.values()]


def _rank(record: Record) -> tuple[bool, str]:
    return record.outcome in FINAL, record.at


def _commands(config: Mapping[str, Any]) -> list[str]:
    found: list[str] = config.get("commands") or [str(config.get("command") or "longreach run")]
    return found


def _headline(runs: Sequence[RunFolder]) -> dict[str, list[str]]:
    """Of each capability, what the first run that has it declares; a search's verdict is about its own tasks."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for capability, rule in ((run.config.get("scan") or {}).get("rules") or {}).items():
            found[capability] = list(rule["tasks"])
    for run in runs:
        for capability, labels in (run.config.get("headline") or {}).items():
            found.setdefault(capability, list(labels))
    return found


def _tasks(runs: Sequence[RunFolder]) -> list[dict[str, Any]]:
    found: dict[str, tuple[dict[str, Any], Path]] = {}
    for run in runs:
        for task in run.config.get("tasks") or ():
            label = task.get("label") or task["task"]
            old, folder = found.setdefault(label, (task, run.folder))
            if old.get("id") != task.get("id"):
                raise ConfigError(
                    f"{label!r} is {old.get('id')} in {folder} and {task.get('id')} in {run.folder}: two different tasks "
                    f"under one label cannot be counted together; leave one of the runs out"
                )
    return [task for task, _ in found.values()]


def _planned(runs: Sequence[RunFolder]) -> list[dict[str, Any]]:
    """Cells with the number of samples that the runs planned: shared ones once, those of another seed added."""
    by_seed: dict[tuple[str, int, float | None], dict[Any, int]] = {}
    for run in runs:
        for cell in run.config.get("planned") or ():
            seeds = by_seed.setdefault((cell["task"], cell["length"], cell.get("depth")), {})
            seed = run.config.get("seed")
            seeds[seed] = max(seeds.get(seed, 0), int(cell["n"]))
    cells = [
        {"task": task, "length": length, "depth": depth, "n": sum(seeds.values())}
        for (task, length, depth), seeds in by_seed.items()
    ]
    return sorted(cells, key=lambda cell: cell["length"])


def _infeasible(runs: Sequence[RunFolder], planned: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    built = {(cell["task"], cell["length"]) for cell in planned}
    found = {
        (entry["task"], entry["length"]): dict(entry) for run in runs for entry in run.config.get("infeasible") or ()
    }
    return [entry for place, entry in found.items() if place not in built]


def _scan(runs: Sequence[RunFolder]) -> dict[str, Any] | None:
    """The adaptive searches of all runs, None without one.

    Raises:
        ConfigError: samples of a search and others of the same task cannot be pooled: it chose its own sizes.
    """
    rules: dict[str, Any] = {}
    owners: dict[str, tuple[RunFolder, Any]] = {}
    scan: dict[str, Any] | None = None
    for run in runs:
        own = run.config.get("scan")
        for capability, rule in (own or {}).get("rules", {}).items():
            rules.setdefault(capability, rule)
            for task in rule["tasks"]:
                owners.setdefault(task, (run, [rule, run.config.get("seed")]))
        scan = scan or own
    for run in runs:
        own_rules = ((run.config.get("scan") or {}).get("rules") or {}).values()
        for task in sorted({record.task for record in run.records.values()} & owners.keys()):
            first, known = owners[task]
            rule = next((rule for rule in own_rules if task in rule["tasks"]), None)
            if [rule, run.config.get("seed")] != known:
                other = first if run is not first else run
                raise ConfigError(
                    f"{other.folder} holds a search on {task}, which chose its own sample sizes, and {run.folder} holds "
                    f"other samples of it: they cannot be pooled; leave one of the folders out"
                )
    return {**scan, "rules": rules} if scan is not None else None


def _differs(first: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Settings that may change an answer or a length, as `name: first -> other`."""
    if not other.get("planned") and not other.get("scan"):
        return []  # reported means: nothing of theirs is counted
    shaping = ("sampling.", "model.args.", "model.facts.", "tokenizer.")
    return [
        f"{item.setting}: {_short(item.base)} -> {_short(item.new)}"
        for item in differences(first, other)
        if item.setting.startswith(shaping)
    ]


def _short(value: Any) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
