"""Typer options made from the table in `options.py`, so that flags, Python names and help stand in one place."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from longreach.harness.errors import BatteryError
from longreach.harness.running.options import SEARCH, Options

SAMPLE_FIELDS = (
    "lengths",
    "depths",
    "samples",
    "tasks",
    "seed",
    "needles",
    "corpus",
    "language",
    "set",
    "tokenizer",
    "prove",
)
"""Options that shape prompts and need no model."""
ALL_FIELDS = tuple(item.name for item in dataclasses.fields(Options) if item.name not in ("battery", *SEARCH))
FIND_FIELDS = (*(name for name in ALL_FIELDS if name not in ("depths", "samples")), *SEARCH)


def path_of(text: str) -> Path:
    """An option's path; an empty one, as an unset shell variable leaves it, is a mistake and not the working folder."""
    if not text.strip():
        raise typer.BadParameter("it is empty; name a path, or leave the option out")
    return Path(text)


def path_option(help: str, **more: Any) -> Any:
    """A typer option that takes a path by `path_of`."""
    return typer.Option(help=help, parser=path_of, metavar="PATH", **more)


def with_options(
    handler: Callable[..., None],
    fields: Iterable[str],
    *,
    name: str,
    doc: str,
    first: tuple[str, Any] | None = None,
) -> Callable[..., None]:
    """A function that typer turns into a command: BATTERY and the named fields as options, handed over as Options.

    Args:
        first: name and annotation of an argument before BATTERY, handed over before the Options.
    """
    wanted = set(fields)

    def command(**values: Any) -> None:
        config = values.pop("config")
        before = [values.pop(first[0])] if first is not None else []
        if config is not None and values["battery"] is not None:
            raise BatteryError(
                f"BATTERY {values['battery']!r} and --config {config!r} name two batteries; give one of them"
            )
        values["battery"] = values["battery"] if values["battery"] is not None else config
        given = {key: value for key, value in values.items() if value is not None and value is not False}
        handler(*before, Options.of(**given))

    battery = Annotated[str | None, typer.Argument(help="Built-in battery, YAML file, or a run's config.yaml.")]
    config = Annotated[
        str | None, typer.Option("--config", "-C", help="The same as BATTERY.", rich_help_panel="What to test")
    ]
    parameters = [_parameter("battery", battery), _parameter("config", config)]
    if first is not None:
        parameters.insert(0, inspect.Parameter(first[0], inspect.Parameter.KEYWORD_ONLY, annotation=first[1]))
    for item in dataclasses.fields(Options):
        if item.name in wanted:
            parameters.append(_parameter(item.name, _annotation(item.name, item.metadata)))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__name__, command.__doc__ = name, doc
    return command


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _annotation(name: str, meta: Any) -> Any:
    flags = ["--" + name.replace("_", "-"), *filter(None, [meta["alias"]])]
    kind: Any = list[str] if meta["many"] else meta["kind"]
    if kind is bool:
        flags = [flags[0]]  # without a `--no-...` twin
    option = typer.Option(*flags, help=meta["help"], rich_help_panel=meta["panel"], show_default=False)
    return Annotated[kind | None, option]
