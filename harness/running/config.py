"""config.yaml of a run folder: what is needed to build the same requests again, and what a resumed run may not change."""

import platform
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from longreach.harness.errors import BatteryError
from longreach.harness.model import Model, Price
from longreach.harness.registry import task_origin
from longreach.harness.running.battery import Battery
from longreach.harness.running.plan import Plan
from longreach.harness.running.redact import REDACTED, is_secret, redact_mapping
from longreach.harness.running.resolve import NO_EFFECT, BatteryTask, Settings
from longreach.harness.task import Loaded, task_id
from longreach.harness.tokenizer import Tokenizer

SCHEMA = 1
ADDRESS = "base_url"
"""Model option that may change when a run is resumed; the keys of its records keep the first one."""
_PACKAGES = (
    *("longreach", "numpy", "scipy", "pandas", "pydantic", "openai", "tiktoken", "tokenizers", "transformers"),
    *("torch", "xllamacpp", "rapidfuzz"),
)


def make_config(
    *,
    battery: Battery,
    plan: Plan,
    model: Model,
    spec: str,
    tokenizer: Tokenizer,
    settings: Settings,
    price: Price,
    command: str,
) -> dict[str, Any]:
    """The config of one run, plain JSON values, secrets taken out."""
    return {
        "schema": SCHEMA,
        "longreach": version("longreach"),
        "battery": battery.name,
        "description": battery.description,
        "headline": {capability: list(labels) for capability, labels in plan.headline.items()},
        "lengths": list(plan.lengths),
        "depths": list(battery.depths),
        "samples": battery.samples if isinstance(battery.samples, int) else dict(battery.samples),
        **({"strata": True} if battery.strata else {}),
        "seed": battery.seed,
        "tasks": [_task(task, battery, plan) for task in plan.tasks.values()],
        "infeasible": [
            {"task": cell.task, "length": cell.length, "reason": cell.reason, "minimum": cell.minimum}
            | ({"rows": cell.n_rows, "refused": cell.is_refused} if cell.n_rows else {})
            for cell in plan.infeasible
        ],
        "planned": plan.cells(),
        "model": {
            "spec": spec,
            "name": model.name,
            "args": {name: v for name, v in settings.identity()["model_args"].items() if name != ADDRESS}
            | {name: v for name, v in redact_mapping(battery.model_args).items() if name in (*NO_EFFECT, ADDRESS)},
            "simulated": model.simulated,
            "window": model.window,
            "concurrency": battery.concurrency or model.concurrency,
            "facts": redact_mapping(dict(model.facts)),
            "price": {"input": price.input, "cached": price.cached, "output": price.output},
        },
        "tokenizer": {
            "spec": battery.tokenizer,
            "name": tokenizer.name,
            "knows_template": tokenizer.knows_template,
            "is_estimate": tokenizer.is_estimate,
            "prove": battery.prove,
        },
        "sampling": {
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "seed": "by sample" if settings.temperature > 0 else None,
            "reasoning_budget": settings.reasoning_budget,
            "system": settings.system,
            "chat_template_kwargs": settings.identity()["chat_template_kwargs"],
            "extra_body": settings.identity()["extra_body"],
            "headers": {name: REDACTED if is_secret(name) else value for name, value in battery.headers.items()},
            "judge": settings.judge,
            **({"cold": True} if settings.cold else {}),
        },
        "corpus": _corpus(plan.tasks.values()),
        **({"data": sets} if (sets := _data(plan.tasks.values())) else {}),
        "advertised": battery.advertised,
        "limits": {"max_cost": battery.max_cost, "max_tokens": battery.max_tokens, "max_time": battery.max_time},
        "environment": {
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
            "packages": {name: found for name in _PACKAGES if (found := _version(name))},
            "plugins": sorted({task_origin(task.task.info.name) for task in plan.tasks.values()}),
        },
        "command": command,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _task(task: BatteryTask, battery: Battery, plan: Plan) -> dict[str, Any]:
    """One task; its lengths where they are not those of the whole plan, which a control arm may have made longer."""
    info = task.task.info
    found: dict[str, Any] = {"task": info.name, "label": task.label, "params": _plain(task.params)}
    own = {item.point.length for item in plan.items if item.label == task.label}
    if own != set(plan.lengths):
        found["lengths"] = sorted(own) or list(task.lengths)
    if task.depths != battery.depths:
        found["depths"] = list(task.depths)
    if task.samples != battery.samples:
        found["samples"] = task.samples if isinstance(task.samples, int) else dict(task.samples)
    return found | {
        "id": task_id(task.task),
        "info": {
            "version": info.version,
            "capability": info.capability,
            "family": info.family,
            "chance": info.chance,
            "reserve": info.reserve,
            "has_depth": info.has_depth,
            **({"queries": info.queries} if info.queries > 1 else {}),
            **({"human": info.human} if info.human is not None else {}),
            "source": info.source,
            "license": info.license,
            "data_revision": info.data_revision,
            **({"departures": list(info.departures)} if info.departures else {}),
        },
    }


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in params.items()}


def _corpus(tasks: Iterable[BatteryTask]) -> dict[str, Any] | None:
    """The text that the haystacks are cut from, where it is not made by the tasks themselves."""
    from longreach.harness.data import read_corpus

    specs = sorted({str(task.params["haystack"]) for task in tasks if "haystack" in task.params})
    specs = [spec for spec in specs if spec not in ("mixed", "repeat", "noise")]
    if not specs:
        return None
    texts = [read_corpus(spec) for spec in specs]
    return {
        "spec": ", ".join(specs),
        "digest": ", ".join(text.digest for text in texts),
        "source": ", ".join(text.source for text in texts),
        "license": ", ".join(text.license for text in texts),
        "notes": [note for text in texts for note in text.notes],
    }


def _data(tasks: Iterable[BatteryTask]) -> list[dict[str, Any]]:
    """The published sets that rows come from."""
    return [{"task": task.label, **task.task.provenance()} for task in tasks if isinstance(task.task, Loaded)]


def identity(config: Mapping[str, Any]) -> dict[str, Any]:
    """What records of one folder must share, by dotted name: comparable between an old config and a new one."""
    args = {name: value for name, value in config["model"]["args"].items() if name not in NO_EFFECT}
    if first := addresses(config)[0]:
        args[ADDRESS] = first
    else:
        args.pop(ADDRESS, None)
    sampling = {name: value for name, value in config["sampling"].items() if name not in ("headers", "seed")}
    found = {"model": config["model"]["name"], "tokenizer": config["tokenizer"]["name"], "seed": config["seed"]}
    found |= {f"model.args.{name}": value for name, value in args.items()}
    found |= {f"sampling.{name}": value for name, value in sampling.items()}
    for capability, rule in ((config.get("scan") or {}).get("rules") or {}).items():
        # The guarantee of a scan holds for the rule that it began with; to certify is to go on with the same.
        found |= {f"scan.{capability}.{name}": value for name, value in rule.items() if name != "certify"}
    return found | {f"tasks.{task['label']}": task["id"] for task in config["tasks"]}


def addresses(config: Mapping[str, Any]) -> list[str]:
    """Where the model was asked, first address first; empty text for one that no option named."""
    model = config["model"]
    return list(model.get("addresses") or [str(model["args"].get(ADDRESS) or "")])


def moves(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Sentences on what may change when a run is resumed, but should not go unsaid."""
    before, after = old["model"]["args"], new["model"]["args"]
    return [
        f"model.args.{name} has changed: {before.get(name, '(none)')} -> {after.get(name, '(none)')}; the stored samples "
        f"count as of the same model"
        for name in (ADDRESS, "api_key_env")
        if before.get(name) != after.get(name)
    ]


def differences(old: Mapping[str, Any], new: Mapping[str, Any], *, may_move: bool = False) -> list[str]:
    """`name: old -> new` for each setting that would mix records of two kinds; more tasks are no difference.

    Args:
        may_move: another address of the server is no difference either, as when a folder is resumed.
    """
    before, after = identity(old), identity(new)
    shared = {name for name in before | after if not name.startswith("tasks.") or (name in before and name in after)}
    if may_move:
        shared.discard(f"model.args.{ADDRESS}")
    return [
        f"{name}: {_short(before.get(name))} -> {_short(after.get(name))}"
        for name in sorted(shared)
        if before.get(name) != after.get(name)
    ]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The new config with the tasks, lengths and planned cells that only the old one had."""
    cells = {(c["task"], c["length"], c["depth"]): dict(c) for c in old["planned"]}
    for cell in new["planned"]:
        place = (cell["task"], cell["length"], cell["depth"])
        cells[place] = dict(cell) | {"n": max(cell["n"], cells.get(place, cell)["n"])}
    labels = {task["label"] for task in new["tasks"]}
    ordered = sorted(cells.values(), key=lambda cell: cell["length"])
    model = dict(new["model"])
    model["facts"] = old["model"]["facts"] | model["facts"]  # a repeat that sends nothing does not probe again
    model["window"] = model["window"] or old["model"]["window"]
    if len(asked := list(dict.fromkeys([*addresses(old), *addresses(new)]))) > 1:
        model["addresses"] = asked
    return dict(new) | {
        "model": model,
        "lengths": sorted({*old["lengths"], *new["lengths"]}),
        "depths": sorted({*old["depths"], *new["depths"]}),
        "tasks": [*new["tasks"], *(task for task in old["tasks"] if task["label"] not in labels)],
        "planned": ordered,
        **({"data": data} if (data := _merged_data(old, new, labels)) else {}),
        "started": old["started"],
    }


def _merged_data(old: Mapping[str, Any], new: Mapping[str, Any], labels: AbstractSet[str]) -> list[dict[str, Any]]:
    return [*(new.get("data") or ()), *(entry for entry in old.get("data") or () if entry["task"] not in labels)]


def battery_of_config(config: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """The battery (as data) that a run folder's config.yaml stands for."""
    try:
        model, sampling, limits = config["model"], config["sampling"], config["limits"]
        tasks = [
            {"task": task["task"], "label": task["label"], "params": task["params"]}
            | {name: task[name] for name in ("lengths", "depths", "samples") if name in task}
            for task in config["tasks"]
        ]
        found = {name: config[name] for name in ("lengths", "depths", "samples", "seed", "headline", "advertised")}
        return found | {
            "name": config["battery"],
            "description": config.get("description", ""),
            "tasks": tasks,
            "tokenizer": config["tokenizer"]["spec"],
            "strata": config.get("strata", False),
            "prove": config["tokenizer"].get("prove", "always"),
            "model": model["spec"],
            "model_args": model["args"],
            "concurrency": model["concurrency"],
            "price": model["price"],
            "headers": sampling["headers"],
            **{name: sampling[name] for name in ("temperature", "top_p", "reasoning_budget", "system", "judge")},
            "cold": sampling.get("cold", False),
            **{name: sampling[name] for name in ("chat_template_kwargs", "extra_body")},
            **limits,
        }
    except (KeyError, TypeError) as error:
        raise BatteryError(
            f"{origin} looks like a run's config.yaml but lacks {error}; name its battery instead"
        ) from error
