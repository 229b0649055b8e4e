"""Batteries and tasks as recipes for another harness: what `longreach export FORMAT DIR` hands to the exporter of a format."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longreach.harness.errors import ConfigError
from longreach.harness.imported import is_beside
from longreach.harness.registry import exporter, tasks
from longreach.harness.running.battery import Battery
from longreach.harness.running.battery_load import builtin_names, load_battery
from longreach.harness.running.controls import FAMILY
from longreach.harness.running.options import Options
from longreach.harness.running.resolve import BatteryTask, resolve_tasks
from longreach.harness.task import Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export wrote."""

    groups: dict[str, list[str]]
    """Name of a group in the other harness -> names of its tasks."""
    left_out: tuple[str, ...]
    """What could not be exported, and why."""


def export_tasks(kind: str, options: Options, folder: Path) -> Exported:
    """Writes the battery of `options`; without one (and without tasks) every built-in battery, and every task by itself.

    Raises:
        ConfigError: a battery or option makes no sense, or the folder cannot be written.
    """
    write = exporter(kind)
    left: list[str] = []
    if options.battery is not None or options.tasks is not None:
        groups = [_group(options, left)]
    else:
        groups = [*_batteries(options, left), *_single(options, left)]
    return Exported(groups=write(folder, groups), left_out=tuple(left))


def _group(options: Options, left: list[str]) -> dict[str, Any]:
    battery = load_battery(options)
    found = resolve_tasks(battery)
    if any(task.task.info.family == FAMILY for task in found):
        left.append(f"{battery.name}: control arms, which only longreach itself asks")
    own = [_recipe(task, battery) for task in found if task.task.info.family != FAMILY]
    return {"name": battery.name, "tasks": own}


def _recipe(task: BatteryTask, battery: Battery) -> dict[str, Any]:
    samples = {1: task.samples} if isinstance(task.samples, int) else dict(task.samples)
    return {
        "task": task.task.info.name,
        "label": task.label,
        "params": dict(task.params),
        "lengths": list(task.lengths),
        "depths": list(task.depths),
        "samples": samples,
        "seed": battery.seed,
        "tokenizer": battery.tokenizer,
        "is_explicit": battery.explicit_lengths,
        "reasoning_budget": battery.reasoning_budget,
        "is_beside": is_beside(battery.headline, task.task.info.capability, task.label),
    }


def _batteries(options: Options, left: list[str]) -> Iterator[dict[str, Any]]:
    for name in builtin_names():
        try:
            yield _group(replace(options, battery=name), left)
        except ConfigError as error:
            left.append(f"battery {name}: {error}")


def _single(options: Options, left: list[str]) -> Iterator[dict[str, Any]]:
    """Every task by itself, with the grid of `--tasks`; those whose data is given by the user are left out."""
    for name, task in tasks().items():
        if isinstance(task, Loaded):
            left.append(f"{name}: its data is not shipped; name it: --tasks {name} --set {name}.data=PATH")
            continue
        try:
            yield _group(replace(options, tasks=[name]), left) | {"name": name, "single": True}
        except ConfigError as error:
            left.append(f"{name}: {error}")
