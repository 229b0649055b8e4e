"""A folder for `lm-eval run --include_path DIR`: one YAML a task, one a battery (a group). `longreach export lm-eval DIR`.

The YAML names `lm_eval_class.LongreachTask` by its dotted name, so that the folder holds no code and moves with its user.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from longreach.adapters.bridge import recipe_data, recipe_of
from longreach.adapters.lm_eval_tasks import lm_eval_name
from longreach.harness.errors import ConfigError

CLASS = "longreach.adapters.lm_eval_class.LongreachTask"
OCTAVES = tuple(1 << power for power in range(7, 21))
"""128 to 1M: lengths for which a group shows a mean, beside those of its battery."""
MARK = "# Written by `longreach export lm-eval`; made anew by the next export.\n"


class _Function(str):
    """A dotted name that lm-eval imports."""


class _Dumper(yaml.SafeDumper):
    """YAML with lm-eval's tag."""


_Dumper.add_representer(_Function, lambda dumper, name: dumper.represent_scalar("!function", str(name)))


def write(folder: Path, groups: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Writes the folder and returns group -> names of its tasks; a group of one task named like it is just that task.

    Args:
        groups: {"name": battery, "version": number, "tasks": [recipe, ...]}, recipes as `bridge.recipe_of` reads them.

    Raises:
        ConfigError: the folder cannot be written, or holds YAML of somebody else under such a name.
    """
    files: dict[str, dict[str, Any]] = {}
    found: dict[str, list[str]] = {}
    for group in groups:
        own: list[str] = []
        for data in group["tasks"]:
            recipe = recipe_of(data, f"battery {group['name']!r}")
            name = lm_eval_name(*([] if group.get("single") else [group["name"]]), recipe.label)
            if name in files and group.get("single"):
                continue  # a battery of this name has it
            if name in files:
                raise ConfigError(f"two tasks would be named {name!r} in lm-eval; give one of them another label")
            files[name] = {"task": name, "class": _Function(CLASS), "longreach": recipe_data(recipe)}
            own.append(name)
        found |= {lm_eval_name(group["name"]): own} if own else {}
        if not group.get("single"):
            files[lm_eval_name(group["name"])] = _group(group, own)
    _save(folder, files)
    return found


def _group(group: Mapping[str, Any], own: Sequence[str]) -> dict[str, Any]:
    """Means of the tasks with equal weights, as our own headline has them."""
    lengths = {length for data in group["tasks"] for length in data.get("lengths", ())}
    names = ["score", *(f"score@{length}" for length in sorted(lengths | set(OCTAVES)))]
    return {
        "group": lm_eval_name(group["name"]),
        "task": list(own),
        "aggregate_metric_list": [{"metric": name, "weight_by_size": False} for name in names],
        "metadata": {"version": 1},
    }


def _save(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("longreach_*.yaml"):
            with path.open(encoding="utf-8") as file:
                if file.readline() != MARK:
                    raise ConfigError(f"{path} was not written by an export; move it, or name another folder")
        for path in folder.glob("longreach_*.yaml"):
            path.unlink()
        for name, data in files.items():
            text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
            folder.joinpath(f"{name}.yaml").write_text(MARK + text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{folder} cannot be written ({error}); name a folder of your own") from error
