"""`longreach run` and `longreach plan`."""

import typer

from longreach.harness.commands.options import ALL_FIELDS, with_options
from longreach.harness.running.options import Options

_PLAN_FIELDS = tuple(name for name in ALL_FIELDS if name != "force")


def add_run_commands(app: typer.Typer) -> None:
    """Registers the commands."""
    run_doc = "Plan, run or resume, score, and write the run folder with its card."
    plan_doc = "The same plan with requests, tokens, price range and time; sends nothing."
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

    for line in forecast_lines(prepare(options)):
        typer.echo(line)
