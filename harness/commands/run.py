"""`longreach run` and `longreach plan`."""

import typer

from longreach.harness.commands.options import ALL_FIELDS, with_options
from longreach.harness.running.options import SEARCH, Options

_SEARCH_FIELDS = tuple(name for name in SEARCH if name != "plan")
_PLAN_FIELDS = (*(name for name in ALL_FIELDS if name != "force"), *_SEARCH_FIELDS)


def add_run_commands(app: typer.Typer) -> None:
    """Registers the commands."""
    run_doc = "Plan, run or resume, score, and write the run folder with its card."
    plan_doc = (
        "The same plan with requests, tokens, price range and time; sends nothing.\n\n"
        "With an option of `find`, such as --max-length or --cache-mode, the plan of that search."
    )
    app.command("run")(with_options(_run, ALL_FIELDS, name="run", doc=run_doc))
    app.command("plan")(with_options(_plan, _PLAN_FIELDS, name="plan", doc=plan_doc))


def _run(options: Options) -> None:
    from longreach.harness.running.progress import Progress
    from longreach.harness.running.run import run_options

    finished = run_options(options, Progress())
    if finished.untested:
        task, length, depth = finished.untested[0]
        where = f"{task} at {length}" + ("" if depth is None else f", depth {depth:g}")
        typer.echo(
            f"longreach: incomplete: {len(finished.untested)} planned cells are not tested, first {where}", err=True
        )
    if finished.stopped is not None:
        typer.echo(f"longreach: stopped: {' '.join(finished.stopped.split())}", err=True)
    for line in finished.card.verdict_lines()[:9]:
        typer.echo(line)
    typer.echo(str(finished.folder / "card.md"))
    raise typer.Exit(finished.exit_code)


def _plan(options: Options) -> None:
    from longreach.harness.running.forecast import forecast_lines
    from longreach.harness.running.prepare import prepare

    if any(getattr(options, name) is not None for name in _SEARCH_FIELDS):
        from longreach.harness.running.find_forecast import find_forecast
        from longreach.harness.running.scan_plan import plan_find

        for line in find_forecast(plan_find(options)):
            typer.echo(line)
        return
    for line in forecast_lines(prepare(options)):
        typer.echo(line)
