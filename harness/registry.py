"""Entry points -> tasks, models and tokenizers by name, with "did you mean".

`LONGREACH_PLUGINS=""` (set and empty) leaves third-party distributions out; only what is named gets loaded.
"""

import dataclasses
import difflib
import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from longreach.harness.errors import ConfigError, LongreachError, UnknownName
from longreach.harness.imported import Reader
from longreach.harness.model import Model
from longreach.harness.task import Task
from longreach.harness.tokenizer import BytesTokenizer, Tokenizer, WordsTokenizer

OWN = "longreach"
_BUILTIN_TOKENIZERS: Mapping[str, Callable[[], Tokenizer]] = {"bytes": BytesTokenizer, "words": WordsTokenizer}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` with the nearest known name, or the names that begin so, or the list of all when none is near.

    >>> did_you_mean("Niah.s", ["niah.single", "ruler.vt"]), did_you_mean("ruler", ["ruler.vt", "ruler.cwe", "babi.qa1"])
    ("did you mean 'niah.single'?", "did you mean one of 'ruler.cwe', 'ruler.vt'?")
    """
    by_folded = {item.casefold(): item for item in sorted(known)}
    typed = name.casefold()
    near = [item for folded, item in by_folded.items() if typed and folded.startswith(typed)]
    if typed in by_folded or not near:
        near = [by_folded[folded] for folded in difflib.get_close_matches(typed, by_folded, n=1, cutoff=0.65)]
    if not near:
        return f"one of: {', '.join(by_folded.values())}"
    return f"did you mean {'one of ' if len(near) > 1 else ''}{', '.join(map(repr, near))}?"


def _points(group: str) -> list[EntryPoint]:
    own_only = os.environ.get("LONGREACH_PLUGINS") == ""
    found = [point for point in entry_points(group=group) if not own_only or _distribution(point) == OWN]
    return sorted(found, key=lambda point: (_distribution(point) != OWN, point.name))


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else ""


def _modules(target: ModuleType) -> Iterable[ModuleType]:
    if hasattr(target, "TASKS") or not hasattr(target, "__path__"):
        yield target
        return
    for item in sorted(pkgutil.walk_packages(target.__path__, target.__name__ + "."), key=lambda item: item.name):
        yield importlib.import_module(item.name)


@cache
def _tasks() -> dict[str, tuple[Task, str]]:
    found: dict[str, tuple[Task, str]] = {}
    for point in _points("longreach.tasks"):
        origin = f"{_distribution(point)} {point.dist.version if point.dist else ''}".strip()
        try:
            modules = list(_modules(point.load()))
        except LongreachError:
            raise
        except Exception as error:
            raise ConfigError(
                f"the tasks of '{origin}' cannot be loaded ({type(error).__name__}: {error}); "
                f"uninstall it, or set LONGREACH_PLUGINS= to leave third parties out"
            ) from error
        for module in modules:
            for task in getattr(module, "TASKS", ()):
                name = task.info.name
                if name in found:
                    raise ConfigError(f"two tasks are named {name!r}: from {found[name][1]} and from {origin}")
                found[name] = (task, origin)
    return dict(sorted(found.items()))


def tasks() -> Mapping[str, Task]:
    """Every registered task with its default parameters, by name."""
    return {name: task for name, (task, _) in _tasks().items()}


def task_origin(name: str) -> str:
    """Distribution and version that the task came from."""
    return _tasks()[name][1]


def get_task(name: str, /, **params: Any) -> Task:
    """The task `name` with some parameters replaced.

    Raises:
        UnknownName: no such task, or no such parameter.
        ConfigError: a value that the task refuses.
    """
    if name not in _tasks():
        raise UnknownName(f"there is no task {name!r}; {did_you_mean(name, _tasks())}")
    task = _tasks()[name][0]
    if not params:
        return task
    if not dataclasses.is_dataclass(task):
        raise UnknownName(f"task {name!r} takes no parameters")
    known = [item.name for item in dataclasses.fields(task)]
    for param in params:
        if param not in known:
            raise UnknownName(f"task {name!r} has no parameter {param!r}; {did_you_mean(param, known)}")
    try:
        return dataclasses.replace(task, **params)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"task {name!r}: {error}") from error


def _load(group: str, kind: str, spec: str) -> tuple[Callable[..., Any], str]:
    scheme, _, rest = spec.partition(":")
    found = {point.name: point for point in reversed(_points(group))}
    if scheme not in found:
        known = [*found, *(_BUILTIN_TOKENIZERS if kind == "tokenizer" else ())]
        raise UnknownName(
            f"there is no {kind} {spec!r}: its scheme {scheme!r} is unknown; {did_you_mean(scheme, known)}"
        )
    opener: Callable[..., Any] = found[scheme].load()
    return opener, rest


def model_schemes() -> Mapping[str, str]:
    """Scheme -> one line about it (first line of the opener's module docstring), without importing the module's libraries."""
    found = {}
    for point in _points("longreach.models"):
        module = importlib.import_module(point.module)
        found[point.name] = (module.__doc__ or "").strip().splitlines()[0] if module.__doc__ else ""
    return found


def takes_option(spec: str, option: str, *, kind: Literal["model", "tokenizer"] = "model") -> bool:
    """True if the opener of the model or tokenizer `spec` names an option so, or takes any."""
    if kind == "tokenizer" and spec in _BUILTIN_TOKENIZERS:
        return False
    opener, _ = _load(f"longreach.{kind}s", kind, spec)
    found = inspect.signature(opener).parameters
    return option in found or any(item.kind is item.VAR_KEYWORD for item in found.values())


def open_model(spec: str, **options: Any) -> Model:
    """The model that `spec` (`scheme:name`) names; options as its opener takes them.

    Raises:
        UnknownName: no such scheme or option. MissingExtra, ModelUnusable: from the opener.
    """
    opener, rest = _load("longreach.models", "model", spec)
    _check_options(spec, opener, options)
    try:
        model: Model = opener(rest, **options)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise UnknownName(f"model {spec!r}: {error}; see `longreach models`") from error
    return model


def _check_options(spec: str, opener: Callable[..., Any], options: Iterable[str]) -> None:
    found = inspect.signature(opener).parameters.values()
    if any(item.kind is item.VAR_KEYWORD for item in found):
        return
    known = [item.name for item in found if item.kind is item.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            mend = did_you_mean(name, known) if known else "it takes none"
            raise UnknownName(f"model {spec!r} has no option {name!r}; {mend}")


def importer(tool: str) -> Reader:
    """The function that reads results of `tool`.

    Raises:
        UnknownName: nobody reads that format.
    """
    found = {point.name: point for point in reversed(_points("longreach.imports"))}
    if tool not in found:
        raise UnknownName(f"there is no importer for {tool!r}; {did_you_mean(tool, found)}")
    read: Reader = found[tool].load()
    return read


def exporter(tool: str) -> Callable[..., dict[str, list[str]]]:
    """The function that writes our tasks for `tool`: write(folder, groups) -> group -> names of its tasks.

    Raises:
        UnknownName: nobody writes that format.
    """
    found = {point.name: point for point in reversed(_points("longreach.exports"))}
    if tool not in found:
        raise UnknownName(f"there is no exporter for {tool!r}; {did_you_mean(tool, found)}")
    write: Callable[..., dict[str, list[str]]] = found[tool].load()
    return write


def results_writer(tool: str) -> Callable[..., list[Path]]:
    """The function that writes a run's samples in the form of `tool`: write(folder, records, config, stamp) -> files.

    Raises:
        UnknownName: nobody writes that format.
    """
    found = {point.name: point for point in reversed(_points("longreach.results"))}
    if tool not in found:
        raise UnknownName(f"nobody writes results for {tool!r}; {did_you_mean(tool, found)}")
    write: Callable[..., list[Path]] = found[tool].load()
    return write


def open_tokenizer(spec: str, **options: Any) -> Tokenizer:
    """The tokenizer that `spec` names: `bytes`, `words`, or `scheme:name` through the entry points."""
    if spec in _BUILTIN_TOKENIZERS:
        return _BUILTIN_TOKENIZERS[spec]()
    opener, rest = _load("longreach.tokenizers", "tokenizer", spec)
    tokenizer: Tokenizer = opener(rest, **options)
    return tokenizer
