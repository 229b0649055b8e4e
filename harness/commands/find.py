"""`longreach find`: the adaptive search for effective lengths."""

import typer

from longreach.harness.commands.options import FIND_FIELDS, with_options
from longreach.harness.running.options import Options


def add_find_command(app: typer.Typer) -> None:
    """Registers the command."""
    doc = (
        "Search for both effective lengths with the fewest tokens: short lengths first, stop at the first that fails.\n\n"
        "BATTERY names the tasks (its headline; default `quick`). Repeating the command resumes."
    )
    app.command("find")(with_options(_find, FIND_FIELDS, name="find", doc=doc))


def _find(options: Options) -> None:
    if options.plan:
        from longreach.harness.running.find_forecast import find_forecast
        from longreach.harness.running.scan_plan import plan_find

        for line in find_forecast(plan_find(options)):
            typer.echo(line)
        return
    from longreach.harness.running.find import ScanProgress, find_options

    finished = find_options(options, ScanProgress())
    if finished.stopped is not None:
        typer.echo(f"longreach: stopped: {' '.join(finished.stopped.split())}", err=True)
    elif finished.untested:
        task, length, _ = finished.untested[0]
        typer.echo(f"longreach: incomplete: {task} at {length} tokens is not decided or not supported", err=True)
    for line in finished.card.verdict_lines()[:9]:
        typer.echo(line)
    typer.echo(str(finished.folder / "card.md"))
    raise typer.Exit(finished.exit_code)
