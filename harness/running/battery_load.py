"""From a battery file and flags to a Battery.

battery.yaml ─┐
built-in ─────┼─> Battery ──(flags override)──> Battery
config.yaml ──┘   (a run's own config.yaml can be given back)
"""

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from longreach.harness.errors import BatteryError, UnknownName
from longreach.harness.lengths import split
from longreach.harness.registry import did_you_mean, tasks
from longreach.harness.running.battery import Battery, validate, validate_entries
from longreach.harness.running.config import battery_of_config
from longreach.harness.running.malformed import check_size, shown
from longreach.harness.running.options import Options
from longreach.harness.running.store import CONFIG

DEFAULT = "quick"
TASKS_ONLY = "niah"
"""Battery whose grid `--tasks` uses when no battery is named."""


def builtin_names() -> list[str]:
    """Names of the batteries that come with the package."""
    return sorted(item.name.removesuffix(".yaml") for item in _shelf().iterdir() if item.name.endswith(".yaml"))


def builtin_text(name: str) -> str:
    """YAML text of a built-in battery."""
    if name not in builtin_names():
        raise UnknownName(f"there is no battery {name!r} and no such YAML file; {did_you_mean(name, builtin_names())}")
    text: str = _shelf().joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return text


def _shelf() -> Any:
    return files("longreach.suites").joinpath("batteries")


def load_battery(options: Options) -> Battery:
    """The battery that the options ask for: file or built-in, narrowed by `tasks`, overridden by flags.

    Raises:
        BatteryError: one line with the file, the key and the nearest right one. UnknownName: no such battery.
    """
    name = options.battery
    only = _named_once(split(options.tasks)) if options.tasks is not None else None
    if isinstance(name, Battery):
        name = name.model_dump()
    if name is None:
        _check_tasks(only or [], tasks(), "")
        data, origin = _builtin(TASKS_ONLY if only else DEFAULT), "the flags"
        data = data | (
            {"name": "+".join(only) if len(only) < 5 else "tasks", "tasks": only, "headline": {}, "description": ""}
            if only
            else {}
        )
    elif isinstance(name, Mapping):
        data, origin = dict(name), "the given battery"
    elif Path(str(name)).suffix in (".yaml", ".yml", ".json") or Path(str(name)).is_file():
        data, origin = _read(Path(str(name))), str(name)
    elif (Path(str(name)) / CONFIG).is_file():
        raise BatteryError(
            f"{name} is a run folder; to plan or run the same again, give its {Path(str(name)) / CONFIG}"
        )
    else:
        data, origin = _builtin(str(name)), f"battery {name!r}"
    for key in ("model_args", "headers", "price"):
        if not isinstance(data.get(key) or {}, Mapping):
            raise BatteryError(f"{origin}: {key}: {shown(data[key])} is not a mapping, such as {{name: value}}")
    if options.battery is not None and only:
        data = _narrow(data, only, origin)
    return validate(data | _overrides(options, data, origin), origin)


def _builtin(name: str) -> dict[str, Any]:
    return {"name": name} | _parse(builtin_text(name), f"battery {name!r}")


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BatteryError(
            f"battery {path} cannot be read ({error}); name a YAML file or one of: {', '.join(builtin_names())}"
        ) from error
    data = _parse(text, str(path))
    if "longreach" in data and "planned" in data:
        return battery_of_config(data, str(path))
    return {"name": path.stem} | data


def _parse(text: str, origin: str) -> dict[str, Any]:
    try:
        data = yaml.safe_load(text)
        check_size(data, origin)
    except yaml.YAMLError as error:
        raise BatteryError(f"{origin} is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise BatteryError(f"{origin} is nested too deeply to be a battery") from error
    if not isinstance(data, dict):
        raise BatteryError(f"{origin} holds no battery; `longreach batteries niah` prints one to start from")
    return data


def _named_once(names: list[str]) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise BatteryError(f"--tasks names {name!r} twice; name it once")
    return names


def _check_tasks(only: list[str], known: Iterable[str], origin: str) -> None:
    """Refuses names of `--tasks` that are not known; `origin` is the battery that they narrow, if any."""
    for name in only:
        if name in known:
            continue
        if name.casefold() in builtin_names():
            raise UnknownName(f"{name!r} is a battery and no task; run it with: longreach run {name.casefold()}")
        if not origin:
            raise UnknownName(f"there is no task {name!r}; {did_you_mean(name, known)}")
        raise BatteryError(f"task {name!r} is not in {origin}; {did_you_mean(name, known)}")


def _narrow(data: dict[str, Any], only: list[str], origin: str) -> dict[str, Any]:
    """The battery with only the named tasks (by label or by task), headlines cut to them."""
    entries = validate_entries(data, origin)
    _check_tasks(only, {entry.label for entry in entries} | {entry.task for entry in entries}, origin)
    kept = [entry for entry in entries if entry.label in only or entry.task in only]
    narrowed = data | {"tasks": [entry.model_dump() for entry in kept]}
    if not isinstance(data.get("headline"), Mapping):
        return narrowed  # `validate` looks at what it is
    labels = {entry.label for entry in kept}
    headline = {key: [label for label in split(group) if label in labels] for key, group in data["headline"].items()}
    return narrowed | {"headline": {key: group for key, group in headline.items() if group}}


_PLAIN = (
    *(
        "depths",
        "seed",
        "tokenizer",
        "prove",
        "model",
        "advertised",
        "concurrency",
        "temperature",
        "top_p",
        "reasoning_budget",
    ),
    *("system", "judge", "cold", "max_cost", "max_tokens", "max_time", "corpus", "needles", "language"),
)


def _overrides(options: Options, data: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Fields of the battery that flags replace."""
    found = {name: value for name in _PLAIN if (value := getattr(options, name)) is not None}
    entries = [entry.model_dump() for entry in validate_entries(data, origin)]
    cleared = [name for name in ("lengths", "depths", "samples") if getattr(options, name) is not None]
    for entry in entries:
        entry.update(dict.fromkeys(cleared))  # a flag holds for every task
        entry["flags"] |= _parameters(options.set, entry)
    if entries:
        found["tasks"] = entries
    _check_targets(options.set, entries)
    if options.lengths is not None:
        found |= {"lengths": options.lengths, "explicit_lengths": True, "cut_at_window": False}
    if options.samples is not None:
        found["samples"] = options.samples
    if options.depths is not None:
        found["strata"] = False
    for name, flag in (("extra_body", "extra_body"), ("chat_template_kwargs", "chat_template_kwargs")):
        if (value := getattr(options, flag)) is not None:
            found[name] = _json(value, flag)
    if options.header is not None:
        found["headers"] = dict(data.get("headers") or {}) | _pairs(options.header, "--header", sign="=:")
    args = dict(data.get("model_args") or {}) if options.model in (None, data.get("model")) else {}
    if options.model_args is not None:
        args |= _pairs(options.model_args, "--model-args")
    if options.base_url is not None:
        args["base_url"] = options.base_url
    found["model_args"] = args
    prices = {"input": options.price_in, "cached": options.price_cached, "output": options.price_out}
    found["price"] = dict(data.get("price") or {}) | {
        name: value for name, value in prices.items() if value is not None
    }
    return found


def _json(value: Any, flag: str) -> Any:
    if not isinstance(value, str):
        return value
    try:
        data = json.loads(value)
    except ValueError as error:
        raise BatteryError(f"--{flag.replace('_', '-')} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise BatteryError(f'--{flag.replace("_", "-")} must be a JSON object such as {{"key": 1}}')
    return data


def _pairs(value: Any, flag: str, sign: str = "=") -> dict[str, Any]:
    """`k=v,k=v`, a list of `k=v`, or a mapping."""
    if isinstance(value, Mapping):
        return dict(value)
    parts = [value] if isinstance(value, str) and flag == "--header" else split(value)
    found: dict[str, Any] = {}
    for part in parts:
        at = min((part.find(s) for s in sign if s in part), default=-1)
        if at < 1:
            raise BatteryError(f"{flag}: an item is not of the form name=value ({part[:12]!r}...)")
        found[part[:at].strip()] = part[at + 1 :].strip()
    return found


def _settings(value: Any) -> list[tuple[str, str, Any]]:
    """`task.param=value` as (task, param, value); the value is read as YAML (4, true, [a, b], text)."""
    if value is None:
        return []
    items = (
        [f"{k}={v}" for k, v in value.items()]
        if isinstance(value, Mapping)
        else [value]
        if isinstance(value, str)
        else list(value)
    )
    found = []
    for item in items:
        target, sign, text = str(item).partition("=")
        task, dot, param = target.rpartition(".")
        if not sign or not dot:
            raise BatteryError(f"--set {item!r} is not of the form task.param=value, such as niah.multi.needles=4")
        try:
            found.append((task.strip(), param.strip(), yaml.safe_load(text) if text.strip() else ""))
        except yaml.YAMLError:
            found.append((task.strip(), param.strip(), text))
    return found


def _parameters(value: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {param: item for task, param, item in _settings(value) if _means(task, entry)}


def _means(target: str, entry: Mapping[str, Any]) -> bool:
    """True if `--set TARGET.param` is for this task: its name, its label, or the suite that its name begins with."""
    return target in (entry["task"], entry["label"]) or str(entry["task"]).startswith(f"{target}.")


def _check_targets(value: Any, entries: list[dict[str, Any]]) -> None:
    known = {name for entry in entries for name in (entry["task"], entry["label"])}
    for task, param, _ in _settings(value):
        if (whole := f"{task}.{param}") in known:
            raise BatteryError(f"--set {whole} names a task and no parameter; write --set {whole}.PARAMETER=VALUE")
        if not any(_means(task, entry) for entry in entries):
            raise BatteryError(
                f"--set {task}.{param}: task {task!r} is not in this battery; {did_you_mean(task, known)}"
            )
