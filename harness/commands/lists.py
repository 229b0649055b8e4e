"""`longreach tasks`, `batteries` and `models`: what there is."""

import json
from typing import Annotated, Any

import typer

_Json = Annotated[bool, typer.Option("--json", help="For machines.")]


def add_list_commands(app: typer.Typer) -> None:
    """Registers the commands."""
    app.command("tasks")(_tasks)
    app.command("batteries")(_batteries)
    app.command("models")(_models)


def _tasks(as_json: _Json = False) -> None:
    """List the tasks."""
    from longreach.harness.registry import task_origin, tasks

    rows = [
        {
            "name": task.info.name,
            "version": task.info.version,
            "capability": task.info.capability,
            "family": task.info.family,
            "chance": task.info.chance,
            "reserve": task.info.reserve,
            "has_depth": task.info.has_depth,
            "summary": task.info.summary,
            "source": task.info.source,
            "license": task.info.license,
            "departures": list(task.info.departures),
            "from": task_origin(name),
        }
        for name, task in tasks().items()
    ]
    if not as_json:
        rows = [
            row | {"chance": f"{row['chance']:.3g}", "source": str(row["source"]).partition(" (")[0]} for row in rows
        ]
    _print(rows, ("name", "capability", "chance", "source", "summary"), as_json, head=True)


def _batteries(
    name: Annotated[str | None, typer.Argument(help="Print this battery's YAML, to start your own from.")] = None,
    as_json: _Json = False,
) -> None:
    """List the built-in batteries, or print one."""
    from longreach.harness.running.battery_load import builtin_names, builtin_text, load_battery
    from longreach.harness.running.options import Options

    if name is not None and not as_json:
        typer.echo(builtin_text(name), nl=False)
        return
    found = [load_battery(Options.of(battery=known)) for known in ([name] if name else builtin_names())]
    rows = [
        {
            "name": battery.name,
            "description": battery.description,
            "lengths": list(battery.lengths),
            "depths": list(battery.depths),
            "samples": battery.samples,
            "tasks": [entry.label for entry in battery.tasks],
        }
        for battery in found
    ]
    _print(rows, ("name", "description"), as_json)


def _models(as_json: _Json = False) -> None:
    """List the kinds of model."""
    from longreach.harness.registry import model_schemes

    rows = [{"scheme": scheme, "summary": summary} for scheme, summary in model_schemes().items()]
    _print(rows, ("scheme", "summary"), as_json)


def _print(rows: list[dict[str, Any]], columns: tuple[str, ...], as_json: bool, *, head: bool = False) -> None:
    """A table, its columns named above it where `head` says so; or all there is, as JSON."""
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    if head:
        rows = [{column: column for column in columns}, *rows]
    widths = [max([len(str(row[column])) for row in rows], default=0) for column in columns[:-1]]
    for row in rows:
        cells = [str(row[column]).ljust(width) for column, width in zip(columns, widths, strict=False)]
        typer.echo("  ".join([*cells, str(row[columns[-1]])]))
