"""What is wrong with a battery, in our words: pydantic's findings as one sentence, and YAML that unfolds too far."""

import reprlib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from longreach.harness.errors import BatteryError
from longreach.harness.registry import did_you_mean

MAX_NODES = 1_000_000
"""Values in a battery, each alias counted wherever it is used."""

_WRITE = {
    "tasks": "write a list of task names, such as [niah.single]",
    "task": "write its name, such as task: niah.single",
    "lengths": "write for example lengths: [4k, 8k]",
    "depths": "write for example depths: [0, 0.25, 0.5, 0.75, 1]",
}
"""How to mend what is missing."""

_BOUNDS = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le", "less_than": "lt"}
_SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "dict": "a mapping of names to values, such as {name: value}",
    "mapping": "a mapping of names to values, such as {name: value}",
    "model": "a mapping of names to values, such as {name: value}",
    "tuple": "a list",
    "list": "a list",
}
"""First word of pydantic's error type -> what is wanted."""

_SHORT = reprlib.Repr()  # its constructor takes the limits from Python 3.12 on
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 3, 40, 40


def shown(value: Any) -> str:
    """`value` as a message quotes it: short, whatever it holds."""
    return _SHORT.repr(value)


def refusal(error: ValidationError, origin: str, models: Mapping[str, type[BaseModel]], at: str = "") -> BatteryError:
    """The first finding as an error that names `origin`, the key and how to mend it, in one line.

    Args:
        models: the model whose keys a mapping takes, by the key that it stands under; "" for the whole.
        at: where the checked part stands in the whole, such as `tasks.0`.
    """
    # A misspelt key comes before what is missing because of it.
    first = min(error.errors(include_url=False), key=lambda item: item["type"] != "extra_forbidden")
    path = [*filter(None, at.split(".")), *map(str, first["loc"])]
    where = ".".join(path) or "battery"
    if first["type"] == "extra_forbidden":
        model = next((models[part] for part in reversed(path[:-1]) if part in models), models[""])
        return BatteryError(f"{origin}: unknown key {where!r}; {did_you_mean(path[-1], model.model_fields)}")
    return BatteryError(f"{origin}: {where}: {_sentence(first, path)}")


def _sentence(found: Any, path: list[str]) -> str:
    kind, value = found["type"], found.get("input")
    if kind in ("value_error", "assertion_error"):
        return str(found["msg"]).removeprefix("Value error, ")
    name = path[-1] if path else ""
    mend = _WRITE.get(name, "")
    if kind == "missing":
        return f"is missing; {mend or 'add it'}"
    if kind in ("too_short", "tuple_type", "list_type") and mend:
        return f"{shown(value)} is not a list of one or more; {mend}"
    if kind in _BOUNDS:
        bound = _BOUNDS[kind]
        return f"{shown(value)} is out of range; it must be {_SIGNS[bound]} {found['ctx'][bound]:g}"
    if kind == "literal_error":
        return f"{shown(value)} is not one of {found['ctx']['expected']}"
    wanted = _KINDS.get(kind.partition("_")[0])
    if wanted is None:
        return f"{shown(value)} does not fit here ({kind.replace('_', ' ')})"
    return f"{shown(value)} is not {wanted}"


def check_size(data: Any, origin: str) -> None:
    """Refuses data whose aliases hold themselves, or unfold to more than MAX_NODES values.

    Raises:
        BatteryError: one line that names `origin`.
    """
    if _size(data, {}, set(), origin) > MAX_NODES:
        raise BatteryError(f"{origin}: its YAML aliases unfold to more than {MAX_NODES:,} values; write fewer of them")


def _size(value: Any, known: dict[int, int], above: set[int], origin: str) -> int:
    if not isinstance(value, dict | list):
        return 1
    name = id(value)
    if name in above:
        raise BatteryError(f"{origin}: a YAML alias holds itself (&x ... *x); write the values out")
    if name not in known:
        parts = list(value.values()) if isinstance(value, dict) else value
        known[name] = 1 + sum(_size(part, known, above | {name}, origin) for part in parts)
    return known[name]
