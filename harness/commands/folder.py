"""`longreach card`, `rescore` and `verify`: run folders that exist already."""

from pathlib import Path
from typing import Annotated

import typer

_Folder = Annotated[Path, typer.Argument(help="Run folder.")]


def add_folder_commands(app: typer.Typer) -> None:
    """Registers the commands."""
    app.command("card")(_card)
    app.command("rescore")(_rescore)
    app.command("verify")(_verify)


def _card(runs: Annotated[list[Path], typer.Argument(help="Run folders.", metavar="RUN...")]) -> None:
    """(Re)write results.csv, the card and its figures from the stored records."""
    from longreach.harness.running.revisit import rewrite

    for folder in runs:
        for line in rewrite(folder, _say).verdict_lines():
            typer.echo(line)
        typer.echo(str(folder / "card.md"))


def _say(text: str) -> None:
    typer.echo(f"longreach: {text}", err=True)


def _rescore(run: _Folder) -> None:
    """Score stored answers again; nothing is sent."""
    from longreach.harness.running.revisit import rescore

    n, changed = rescore(run, _say)
    typer.echo(f"{n} answers scored again, {changed} scores changed", err=True)
    typer.echo(str(run / "card.md"))


def _verify(run: _Folder) -> None:
    """Rebuild every prompt from its recipe and compare hashes; exit 1 on a mismatch."""
    from longreach.harness.running.revisit import verify

    n, wrong = verify(run)
    for line in wrong[:20]:
        typer.echo(line)
    typer.echo(f"{n} prompts rebuilt, {len(wrong)} differ")
    raise typer.Exit(1 if wrong else 0)
